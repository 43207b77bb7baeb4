"""Several Nodes with their hands held: links that a test can hold back, cut and speak on, and one clock for all.

Every word between brokers goes through the codec and arrives a millisecond later, in order; a client's word arrives at
once. After every input of a Node its invariants are checked (or after every tenth, where many come). The simulator has
a world with real byte streams, chance and faults of its own; this one does nothing that the test did not ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, TypeVar

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.effects import Close, Dial, Effect, Note, Send, Store
from headgate.broker.core.inputs import (
    Admitted,
    DialFailed,
    Drain,
    Input,
    LinkDown,
    Loaded,
    PeerUp,
    Reachable,
    Received,
    Wake,
)
from headgate.broker.simulator.engine import World
from headgate.protocol.data import Batch
from headgate.protocol.messages import Deliver, Error, Hello, Message, Peer
from headgate.protocol.wire import decode, encode
from tests.support.builders import deliveries_of, make_publish, make_subscribe

__all__ = ["Client", "Host", "NodeCluster", "events_of"]

LATENCY_SECONDS = 0.001
DIAL_FAILS_SECONDS = 0.01
SETTLED_SECONDS = 6.0
"""After keys have changed hands nothing is confirmed for two leases; who comes after that is answered at once."""

Kind = TypeVar("Kind")


@dataclass(eq=False)
class Host:
    """One life of a broker: what its process has."""

    name: str
    node: Node
    alive: bool = True
    wake: object = None
    notes: list[Note] = field(default_factory=list)


@dataclass(eq=False)
class _End:
    """One side of a link between brokers."""

    host: Host
    link: int
    other: _End = field(init=False)
    open: bool = True


class Client:
    """A connection of a client; what it was told is kept until it is taken."""

    def __init__(self, cluster: NodeCluster, host: Host, link: int) -> None:
        self.cluster = cluster
        self.host = host
        self.link = link
        self.got: list[Message] = []
        self.sequence = 0

    def say(self, *messages: Message) -> list[Message]:
        """One read of the broker; what was answered at once."""
        self.take()
        self.cluster.feed(self.host, Received(self.link, list(messages)))
        return self.take()

    def send(self, *messages: Message) -> None:
        """As `say`, without taking anything."""
        self.cluster.feed(self.host, Received(self.link, list(messages)))

    def subscribe(self, number: int, pattern: str = "quotes", condition: str = "", **options: Any) -> None:
        """SUBSCRIBE, whose answer may come later."""
        self.send(make_subscribe(number, pattern, condition, **options))

    def publish(self, *batches: Batch) -> None:
        """Each as a PUBLISH, with the sequences that come next."""
        for batch in batches:
            self.sequence += 1
            self.send(make_publish(self.sequence, batch))

    def take(self) -> list[Message]:
        """What came since it was last taken."""
        got, self.got = self.got, []
        return got

    def of(self, kind: type[Kind]) -> list[Kind]:
        """What came of this kind and was not taken; it stays."""
        return [message for message in self.got if isinstance(message, kind)]

    @property
    def bodies(self) -> list[tuple[int, str]]:
        """(subscription, body) of the deliveries that came and were not taken."""
        return deliveries_of(self.got)


class NodeCluster(World):
    """Runs several Nodes whose links a test holds in its hands.

    `seeds` are names; brokers of a cluster without any are alone for ever.
    """

    def __init__(self, brokers: int = 0, seed: int = 1, check_every: int = 1, **config: Any) -> None:
        super().__init__(seed, now=1_000.0)
        self.hosts: dict[str, Host] = {}
        self.said: list[tuple[str, str, Message]] = []
        """Every word between brokers that was sent: from, to, what."""
        self.records: dict[str, dict[str, Any]] = {}
        self._config = config
        self._check_every = check_every
        self._inputs = 0
        self._links = count(1)
        self._ends: dict[int, _End] = {}
        self._clients: dict[int, Client] = {}
        self._held: dict[frozenset[str], list[tuple[_End, Message]]] = {}
        self.turned_away: dict[str, Error] = {}
        """Place -> how the host there, and not its Node, answers who greets it: the wire itself refuses some."""
        for number in range(brokers):
            self.start(f"b{number}", ["b0"] if number else [])
        if brokers:
            self.until(self.settled, 30.0)
            self.run(SETTLED_SECONDS)

    # --- brokers -----------------------------------------------------------------------------------------------------

    def start(self, place: str, seeds: Iterable[str] = ("b0",), life: int = 1, **config: Any) -> Host:
        """A broker begins a life at this place, with what its former ones stored; its name is the place's or `name`."""
        settings = {"name": place, "incarnation": life} | self._config | config
        at = tuple(address_of(one) for one in seeds)
        node = Node(NodeConfig(seeds=at, **settings), Random(self.random.random()), self.now)
        host = self.hosts[place] = Host(place, node)
        self.begin_life(host)
        self.feed(host, Loaded(dict(self.records.setdefault(place, {}))))
        self.feed(host, Reachable(address_of(place), f"{place}:7470"))
        return host

    def begin_life(self, host: Host) -> None:
        """What a host is told before anything else; nothing, when it has no disk for a log."""

    def kill(self, name: str) -> None:
        """The process is gone; the others' systems tell them that its links are."""
        host = self.hosts.pop(name)
        host.alive = False
        for end in [one for one in self._ends.values() if one.host is host]:
            self._end_link(end)

    def leave(self, name: str) -> None:
        """It stops in order."""
        self.feed(self.hosts[name], Drain())
        self.run(0.1)
        self.kill(name)

    def node(self, name: str) -> Node:
        """The Node of its present life."""
        return self.hosts[name].node

    @property
    def nodes(self) -> list[Node]:
        """All that live."""
        return [host.node for host in self.hosts.values()]

    def settled(self) -> bool:
        """Whether everybody answers for all the keys that it may, is linked to everybody, and the ring has its form."""
        nodes = self.nodes
        roles = {node.cluster.chord is not None and node.cluster.chord.ring is not None for node in nodes}
        return roles == {len(nodes) > 4} and all(
            node.cluster.settled(self.now)
            and len(node.cluster.linked()) == len(nodes) - 1
            and len(node.cluster.scope(self.now).stretches) == min(len(nodes), node.config.replicas + 1)
            for node in nodes
        )

    def owner(self, key: int) -> Host:
        """Whose arc the key is on."""
        return next(host for host in self.hosts.values() if host.node.cluster.owner_of(key) == host.node.cluster.me)

    # --- clients -----------------------------------------------------------------------------------------------------

    def connect(self, name: str, user: str = "", **hello: Any) -> Client:
        """A client with a session of its own at this broker, of a user if the broker asks."""
        client = Client(self, self.hosts[name], next(self._links))
        self._clients[client.link] = client
        if user:
            self.feed(client.host, Admitted(client.link, user, "pw"))
        settings: dict[str, Any] = {"name": f"client of {name}", "credit": 1 << 40}
        client.say(Hello(**settings | hello))
        return client

    def disconnect(self, client: Client) -> None:
        """Its connection is gone."""
        self._clients.pop(client.link)
        self.feed(client.host, LinkDown(client.link, "cut"))

    # --- links between brokers ---------------------------------------------------------------------------------------

    def hold(self, one: str, *others: str) -> None:
        """What they say to each other waits, and so does whoever dials."""
        for other in others:
            self._held.setdefault(frozenset((one, other)), [])

    def release(self) -> None:
        """All that was held goes on, in order."""
        held, self._held = self._held, {}
        for words in held.values():
            for end, message in words:
                self._carry(end, message)

    def cut(self, one: str, other: str) -> None:
        """The first one's side of their link breaks: what it said arrives, what it was being told is lost."""
        for end in [end for end in self._ends.values() if (end.host.name, end.other.host.name) == (one, other)]:
            self._closed(end.host, end.link)

    def tell(self, sender: str, recipient: str, *messages: Message) -> list[Message]:
        """The recipient gets this on the link to the sender, who did not say it; what it answers there at once."""
        node = self.node(recipient)
        info = node.cluster.peers.by_identifier[self.node(sender).cluster.me]
        assert info.link is not None
        before = len(self.said)
        self.feed(self.hosts[recipient], Received(info.link, [decode(encode(one)) for one in messages]))
        return [what for source, to, what in self.said[before:] if (source, to) == (recipient, sender)]

    def linked(self, one: str, other: str) -> bool:
        """Whether the first has a link to the second."""
        return any(info.name == other for info in self.node(one).cluster.linked())

    # --- time --------------------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Time goes on."""
        self.run_for(seconds)

    def until(self, condition: Callable[[], bool], seconds_max: float = 10.0) -> None:
        """Time goes on until this is so, which has to be within so long."""
        self.run_until(condition, seconds_max)

    def feed(self, host: Host, happened: Input) -> list[Effect]:
        """One input of one broker, and all that comes of it."""
        if not host.alive:
            return []
        effects = host.node.handle(happened, self.now)
        for effect in effects:
            self._carry_out(host, effect)
        self._inputs += 1
        if self._inputs % self._check_every == 0:
            host.node.validate()
        self._arm(host)
        return effects

    # --- inside ------------------------------------------------------------------------------------------------------

    def _arm(self, host: Host) -> None:
        deadline = host.node.next_deadline()
        token = host.wake = object()
        if deadline < float("inf"):
            pause = max(1e-6, deadline - self.now)
            self.after(pause, lambda: self._wake(host, token))

    def _wake(self, host: Host, token: object) -> None:
        if host.wake is token:
            self.feed(host, Wake())

    def _carry_out(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, Send):
            client = self._clients.get(effect.link)
            end = self._ends.get(effect.link)
            if client is not None:
                client.got.append(decode(encode(effect.message)))
            elif end is not None:
                message = decode(encode(effect.message))
                self.said.append((host.name, end.other.host.name, message))
                self._carry(end, message)
        elif isinstance(effect, Close):
            self._closed(host, effect.link)
        elif isinstance(effect, Dial):
            self.after(DIAL_FAILS_SECONDS, lambda: self._dial(host, effect.address))
        elif isinstance(effect, Store):
            self.records[host.name][effect.key] = effect.value
        else:
            host.notes.append(effect)

    def _carry(self, end: _End, message: Message) -> None:
        held = self._held.get(frozenset((end.host.name, end.other.host.name)))
        if held is not None:
            held.append((end, message))
            return

        def arrive() -> None:
            place = end.other.host.name
            if isinstance(message, Peer) and place in self.turned_away:
                self.feed(end.host, Received(end.link, [self.turned_away[place]]))
                self._closed(end.other.host, end.other.link)
            elif end.other.open:
                self.feed(end.other.host, Received(end.other.link, [message]))

        self.after(LATENCY_SECONDS, arrive)

    def _dial(self, host: Host, address: str) -> None:
        name = address.partition(":")[0]
        other = self.hosts.get(name)
        if other is None or frozenset((host.name, name)) in self._held:
            self.feed(host, DialFailed(address))
            return
        near, far = _End(host, next(self._links)), _End(other, next(self._links))
        near.other, far.other = far, near
        self._ends |= {near.link: near, far.link: far}
        self.feed(other, PeerUp(far.link))
        self.feed(host, PeerUp(near.link, address))

    def _closed(self, host: Host, link: int) -> None:
        end = self._ends.get(link)
        if end is not None:
            self._end_link(end)
            self.after(0.0, lambda: self._feed_down(end))
        elif self._clients.pop(link, None) is not None:
            self.after(0.0, lambda: self._client_gone(host, link))

    def _client_gone(self, host: Host, link: int) -> None:
        self.feed(host, LinkDown(link, "closed"))

    def _end_link(self, end: _End) -> None:
        """This side says and hears nothing more; the other one does as soon as it has heard what was said."""
        self._ends.pop(end.link, None)
        end.open = False
        if end.other.open:
            self.after(2 * LATENCY_SECONDS, lambda: self._hang_up(end.other))

    def _hang_up(self, end: _End) -> None:
        if end.open:
            end.open = False
            self._ends.pop(end.link, None)
            self._feed_down(end)

    def _feed_down(self, end: _End) -> None:
        self.feed(end.host, LinkDown(end.link, "the link is gone"))


def address_of(name: str) -> str:
    """Where others reach it."""
    return f"{name}:7401"


def events_of(messages: Sequence[object]) -> list[tuple[int, str, int]]:
    """(subscription, origin, place in its sequence) of every delivery in these messages, in order."""
    found: list[tuple[int, str, int]] = []
    for message in messages:
        if isinstance(message, Deliver):
            portion = message.portion
            places = iter(portion.rows())
            for numbers, events in message.runs():
                for _ in range(events):
                    place = portion.base + next(places)
                    found += [(number, portion.origin, place) for number in numbers]
            assert next(places, None) is None, "the routes do not cover the portion"
    return found

"""A ring of Nodes in one process that counts every message between them: the figures of the product, not of a model.

Each broker is the Node of the product. Links are a heap of messages that arrive a millisecond later, in order, through
the codec; there are no sockets, nothing fails, and time passes as fast as the messages are handled. Each is counted
where it is sent, so that a message which goes on over three brokers counts three times:

    store     PUT of subscriptions, anchored or counted: to the owner of a key, and on along the arc
    copy      the same to the owner's siblings (COPY)
    use       what tells all brokers of a dimension or a list that a broker's clients use first, copies included
    ask       questions for lists        lists     their answers
    forward   events on their way to who matches them        deliver    events on their way to a subscriber's broker

Everything else (leases, the ring's own letters, greetings, acknowledgements of the above) is the same for whatever
placement a stream has, and is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import NamedTuple

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.cluster import Routed, StoreMessage
from headgate.broker.core.effects import Close, Dial, Effect, Send
from headgate.broker.core.forwarding import AskLists, Lists
from headgate.broker.core.inputs import DialFailed, Input, LinkDown, PeerUp, Reachable, Received, Wake
from headgate.broker.core.kv import Copy, Put, TellAll
from headgate.broker.core.limits import DEFAULT_LIMITS, Limits
from headgate.broker.core.messages import CONTROLS, STORE
from headgate.broker.simulator.engine import World
from headgate.protocol.messages import Control, Deliver, Forward, Hello, Message
from headgate.protocol.wire import decode, encode

__all__ = ["Carried", "NodeClient", "NodeRing", "word_of"]

_LATENCY_SECONDS = 0.001
_SETTLE_SECONDS_MAX = 300.0
_REST_SECONDS = 6.0
"""After keys changed hands nothing is confirmed for two leases; who comes after that is answered at once."""

_STORE_WORDS = (CONTROLS.kind_of(StoreMessage), CONTROLS.kind_of(Routed))
_PUT, _COPY, _TELL_ALL = (STORE.kind_of(kind) for kind in (Put, Copy, TellAll))
_LIST_WORDS = {CONTROLS.kind_of(AskLists): "ask", CONTROLS.kind_of(Lists): "lists"}


def word_of(message: Message) -> str:
    """The kind under which a message counts; empty when it does not count."""
    if isinstance(message, Forward):
        return "forward"
    if isinstance(message, Deliver):
        return "deliver"
    if not isinstance(message, Control):
        return ""
    if message.kind in _LIST_WORDS:
        return _LIST_WORDS[message.kind]
    if message.kind not in _STORE_WORDS:
        return ""
    kind, fields = message.body[-1]
    if kind not in (_PUT, _COPY, _TELL_ALL):
        return ""
    names = {item[0][0] for item in fields[-1]}
    if "use" in names:
        return "use"
    if names & {"sub", "count"}:
        return "store" if kind == _PUT else "copy"
    return ""


@dataclass(eq=False)
class _Broker:
    node: Node
    wake: object = None


@dataclass(eq=False)
class _End:
    """One side of a link between brokers."""

    broker: _Broker
    link: int
    other: _End = field(init=False)
    open: bool = True


class Carried(NamedTuple):
    """A message that was sent: when, from which end of a link to which, how long it is, and what."""

    time: float
    sender: int
    receiver: int
    bytes: int
    message: Message


class NodeClient:
    """A client's connection, and what it was told."""

    def __init__(self, ring: NodeRing, broker: _Broker, link: int) -> None:
        self.broker = broker
        self.got: list[Message] = []
        self._ring, self._link = ring, link

    def say(self, *messages: Message) -> None:
        """Send these messages, which its broker gets in one read."""
        self._ring.feed(self.broker, Received(self._link, list(messages)))

    def take(self) -> list[Message]:
        """What came since this was last asked."""
        got, self.got = self.got, []
        return got


class NodeRing(World):
    """Runs real Nodes in memory, with counted messages, for rings of any size."""

    def __init__(self, brokers: int, seed: int, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(f"{seed} nodes", now=1_000.0)
        self.words: Counter[str] = Counter()
        self._limits = limits
        self.carried: list[Carried] | None = None
        """Every message between brokers from now on, for who wants more than their number."""
        self._links = count(1)
        self._ends: dict[int, _End] = {}
        self._clients: dict[int, NodeClient] = {}
        self._by_address: dict[str, _Broker] = {}
        for number in range(brokers):
            self._start(f"b{number}", ["b0:7401"] if number else [])
        self._until(self._settled)
        self.run(_REST_SECONDS)

    @property
    def nodes(self) -> list[Node]:
        """All Nodes."""
        return [broker.node for broker in self._by_address.values()]

    @property
    def links(self) -> dict[int, tuple[str, int]]:
        """The ends of the links that there are: whose it is, and the other end."""
        return {
            link: (end.broker.node.cluster.config.name, end.other.link) for link, end in self._ends.items() if end.open
        }

    def connect(self, place: int) -> NodeClient:
        """A client at one of the brokers."""
        broker = list(self._by_address.values())[place]
        link = next(self._links)
        client = self._clients[link] = NodeClient(self, broker, link)
        client.say(Hello(name=f"client {link}", credit=1 << 40))
        return client

    def run(self, seconds: float) -> None:
        """Run for so many seconds."""
        self.run_for(seconds)

    def feed(self, broker: _Broker, happened: Input) -> None:
        """Handle one input of one Node, and carry out its effects."""
        for effect in broker.node.handle(happened, self.now):
            self._carry_out(broker, effect)
        self._arm(broker)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _start(self, name: str, seeds: Sequence[str]) -> None:
        config = NodeConfig(name, 1, seeds=tuple(seeds), limits=self._limits)
        node = Node(config, Random(self.random.random()), self.now)
        broker = self._by_address[f"{name}:7401"] = _Broker(node)
        self.feed(broker, Reachable(f"{name}:7401", f"{name}:7400"))

    def _settled(self) -> bool:
        rings = [node.cluster.chord is not None and node.cluster.chord.ring is not None for node in self.nodes]
        if not (all(rings) or (len(rings) < 5 and not any(rings))):
            return False
        return all(node.cluster.settled(self.now) for node in self.nodes)

    def _until(self, condition: Callable[[], bool]) -> None:
        end = self.now + _SETTLE_SECONDS_MAX
        while not condition():
            assert self.now < end, f"the ring did not settle within {_SETTLE_SECONDS_MAX:g} seconds"
            self.run(0.5)

    def _arm(self, broker: _Broker) -> None:
        deadline = broker.node.next_deadline()
        token = broker.wake = object()
        if deadline < float("inf"):
            self.after(max(1e-6, deadline - self.now), lambda: self._wake(broker, token))

    def _wake(self, broker: _Broker, token: object) -> None:
        if broker.wake is token:
            self.feed(broker, Wake())

    def _carry_out(self, broker: _Broker, effect: Effect) -> None:
        if isinstance(effect, Send):
            client, end = self._clients.get(effect.link), self._ends.get(effect.link)
            if client is not None:
                client.got.append(effect.message)
            elif end is not None:
                self._send(end, effect.message)
        elif isinstance(effect, Close):
            self._close(effect.link)
        elif isinstance(effect, Dial):
            self.after(_LATENCY_SECONDS, lambda: self._dial(broker, effect.address))

    def _send(self, end: _End, message: Message) -> None:
        word = word_of(message)
        if word:
            self.words[word] += 1
        data = encode(message)
        if self.carried is not None:
            self.carried.append(Carried(self.now, end.link, end.other.link, len(data), message))
        read = decode(data)

        def arrive() -> None:
            if end.other.open:
                self.feed(end.other.broker, Received(end.other.link, [read]))

        self.after(_LATENCY_SECONDS, arrive)

    def _dial(self, broker: _Broker, address: str) -> None:
        other = self._by_address.get(address)
        if other is None:
            self.feed(broker, DialFailed(address))
            return
        near, far = _End(broker, next(self._links)), _End(other, next(self._links))
        near.other, far.other = far, near
        self._ends |= {near.link: near, far.link: far}
        self.feed(other, PeerUp(far.link))
        self.feed(broker, PeerUp(near.link, address))

    def _close(self, link: int) -> None:
        end = self._ends.pop(link, None)
        if end is None:
            return
        end.open = False
        for one in (end, end.other):
            self.after(2 * _LATENCY_SECONDS, lambda one=one: self._down(one))  # type: ignore[misc]

    def _down(self, end: _End) -> None:
        end.open = False
        self._ends.pop(end.link, None)
        self.feed(end.broker, LinkDown(end.link, "the link is gone"))

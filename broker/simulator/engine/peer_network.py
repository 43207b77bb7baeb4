"""Links between the brokers of a world: bytes in both directions through real Sessions, with all faults of a TCP link.

dial          PeerUp at both ends after a delay, or DialFailed when no broker listens or the way is blocked
latency       each read returns a random part of the data under way, in order
stalled       nothing arrives in one direction (a partition, perhaps of one direction only): bytes wait, and the
              sessions' heartbeats find the link dead
cut           the link breaks: data under way is lost, and each side finds out after a delay of its own
hung up       one side closed: what it wrote still arrives, then the other side learns of the end
host died     like hung up (a process that was killed), or without any sign (a machine that lost its power)
still         a paused host reads nothing and fires no timer; its sockets keep what comes
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from headgate.broker.core.cause import join_causes
from headgate.broker.core.inputs import DialFailed, LinkDown, LinkPaused, LinkResumed, PeerUp, Received
from headgate.protocol import Role, Session
from headgate.protocol.errors import HeadgateError
from headgate.protocol.messages import Message

from ..limits import DIAL_SECONDS_MAX, PEER_CLOSE_SECONDS
from .link import End, LinkOptions, Links
from .world import Host, World

__all__ = ["PeerEnd", "PeerLink", "PeerNetwork", "PeerNetworkOptions"]


@dataclass(frozen=True, slots=True)
class PeerNetworkOptions(LinkOptions):
    """How links between brokers behave."""

    latency_seconds_min: float = 0.0003
    latency_seconds_max: float = 0.01
    whole_probability: float = 0.6
    pipe_high: int = 64 * 1024
    pipe_low: int = 16 * 1024


class PeerEnd(End):
    """One side of a link between brokers, as its Host holds it."""

    def __init__(self, link: PeerLink, host: Host, number: int) -> None:
        super().__init__(link.network, Session(Role.PEER, link.network.world.now), "peer")
        self.link = link
        self.host = host
        self.number = number
        self.other: PeerEnd
        self.told = False
        self.stalled = False
        self.causes: deque[tuple[type, str]] = deque()
        self._closing = False
        host.links[number] = self

    # --- What the Host says ------------------------------------------------------------------------------------------

    def broker_send(self, message: Any) -> None:
        """Send a message to the broker at the other end."""
        if not self.session.closed:
            self.causes.append((type(message), self.host.cause))
            self.session.send(message)
            self.flush()

    def broker_close(self) -> None:
        """Close the link; messages sent before have some time to go out."""
        self.session.lost("closed here")
        self._look()

    def host_stands_still(self, still: bool) -> None:
        """Stop reading and firing timers, until it is resumed."""
        self.look_at_road()
        if not still:
            self.arm(anew=True)
            self.link.look()

    def host_died(self) -> None:
        """The process ended: written data and the end of the link still arrive, unless the machine lost its power."""
        self.told = True
        self.session.lost("the broker died")
        self.incoming.clear()
        if self.link.network.silent_deaths:
            self.other.incoming.clear()
            self.link.silent = True
        self.link.look()

    # --- Inside ------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Move the output of the session into the pipe."""
        data = b"".join(self.session.take())
        if data and self.link.open:
            self.other.incoming.write(data)
            self.watch_pressure(self.number, len(self.other.incoming.waiting))
        self._look()
        self.arm()

    def look_at_road(self) -> None:
        """Whether data can arrive at this side now."""
        self.incoming.stopped = self.stalled or self.host.paused
        self.incoming.go_on()

    def lose(self, reason: str) -> None:
        """Tell this side that the link is over."""
        if self.told:
            return
        self.told = True
        self.session.lost("the connection was lost")
        self.incoming.clear()
        if self.host.links.pop(self.number, None) is not None:
            self.host.feed(LinkDown(self.number, str(self.session.failure or reason)))
        self.link.look()

    def arrived(self, part: Any) -> None:
        """Handle what one read returned, unless this side knows of the end."""
        if self.told:
            self.link.look()
            return
        messages = self.receive(part)
        if messages:
            self.host.feed(Received(self.number, messages, cause=self._why(messages)))
        self.flush()
        self.other.watch_pressure(self.other.number, len(self.incoming.waiting))
        self.link.look()

    def _why(self, messages: Iterable[Message]) -> str:
        """The cause of what the other side sent. Causes travel beside the bytes, which only sessions read."""
        causes, said = [], self.other.causes
        for message in messages:
            while said and said[0][0] is not type(message):
                said.popleft()
            if said:
                causes.append(said.popleft()[1])
        return join_causes(causes)

    def tell(self, happened: LinkPaused | LinkResumed) -> None:
        """Pass an input to the Host."""
        if not self.told:
            self.host.feed(happened)

    def is_over(self) -> bool:
        """Whether this side was told of the end."""
        return self.told

    def stands_still(self) -> bool:
        """Whether its Host is paused."""
        return self.host.paused

    def _look(self) -> None:
        """When the session has ended, give the last messages some time to go out."""
        if self.session.closed and not self._closing:
            self._closing = True
            self.links.world.after(PEER_CLOSE_SECONDS, lambda: self.lose("goodbye"))
            self.link.look()


class PeerLink:
    """One link between two Hosts."""

    def __init__(self, network: PeerNetwork, dialler: Host, acceptor: Host) -> None:
        self.network = network
        self.open = True
        self.known = False
        """Whether both sides were told PeerUp; before that neither is told of the end."""
        self.silent = False
        """Whether one side lost its power, so that no packet tells the other."""
        self.ends = (PeerEnd(self, dialler, network.next_link()), PeerEnd(self, acceptor, network.next_link()))
        self.ends[0].other, self.ends[1].other = self.ends[1], self.ends[0]

    def cut(self) -> None:
        """Break the link: data under way is lost, and each side finds out after a delay of its own."""
        if self.open:
            self.open = False
            random, world = self.network.world.random, self.network.world
            for end in self.ends:
                end.incoming.clear()
                world.after(random.uniform(0.0, 0.5), partial(end.lose, "the connection broke"))

    def look(self) -> None:
        """End a side that closed once its last data arrived; then tell the other side."""
        if not self.known:
            return
        for end in self.ends:
            written = not end.other.incoming.waiting or not self.open
            if end.session.closed and written and not end.told:
                end.lose("goodbye")
            elif end.other.told and not end.incoming.waiting and not end.told and self._news_arrives(end):
                end.lose("the other side is gone")
        if self.ends[0].told and self.ends[1].told:
            self.network.links.pop(self, None)

    def _news_arrives(self, end: PeerEnd) -> bool:
        return not self.silent and not end.stalled and not end.host.paused


class PeerNetwork(Links):
    """All links between brokers."""

    options: PeerNetworkOptions

    def __init__(
        self,
        world: World,
        options: PeerNetworkOptions,
        next_link: Callable[[], int],
        failed: Callable[[str, HeadgateError], None],
    ) -> None:
        super().__init__(world, failed)
        self.options = options
        self.next_link = next_link
        self.links: dict[PeerLink, None] = {}
        self.hosts: dict[str, Host] = {}
        """Address -> the Host that listens there."""
        self.silent_deaths = False
        self._blocked: dict[tuple[str, str], None] = {}
        """(from, to): directions in which nothing arrives."""

    def dial(self, dialler: Host, address: str) -> None:
        """Try to connect; PeerUp or DialFailed comes after a delay."""
        latency = self.world.random.uniform(self.options.latency_seconds_min, self.options.latency_seconds_max)
        self.world.after(latency, lambda: self._connect(dialler, address))

    def block(self, one: str, other: str) -> None:
        """Block the direction from one broker to another."""
        self._blocked[one, other] = None
        self._look_at_roads()

    def heal(self) -> None:
        """Unblock all directions."""
        self._blocked.clear()
        self._look_at_roads()

    def isolate(self, one: str, others: Iterable[str]) -> None:
        """Block both directions between this broker and all others."""
        for other in others:
            if other != one:
                self._blocked[one, other] = self._blocked[other, one] = None
        self._look_at_roads()

    def slow_down(self, one: str, other: str, seconds: float) -> None:
        """Delay everything on the present links between these two by so many seconds."""
        for link in self.between(one, other):
            for end in link.ends:
                end.incoming.delay_seconds = seconds

    def cut_any(self, random: Random) -> bool:
        """Break a random link; tells whether there was one."""
        links = list(self.links)
        if links:
            random.choice(links).cut()
        return bool(links)

    def between(self, one: str, other: str) -> list[PeerLink]:
        """The links between these two brokers."""
        wanted = sorted((one, other))
        return [link for link in self.links if sorted(end.host.node.config.name for end in link.ends) == wanted]

    def _connect(self, dialler: Host, address: str) -> None:
        if not dialler.alive:
            return
        acceptor = self.hosts.get(address)
        name = dialler.node.config.name
        if acceptor is None or not acceptor.alive:
            dialler.feed(DialFailed(address))
            return
        other = acceptor.node.config.name
        if (name, other) in self._blocked or (other, name) in self._blocked:
            self.world.after(DIAL_SECONDS_MAX, lambda: dialler.feed(DialFailed(address)))
            return
        link = PeerLink(self, dialler, acceptor)
        self.links[link] = None
        for end in link.ends:
            end.look_at_road()
            end.arm()
        acceptor.feed(PeerUp(link.ends[1].number, ""))
        dialler.feed(PeerUp(link.ends[0].number, address))
        link.known = True
        link.look()

    def _look_at_roads(self) -> None:
        for link in list(self.links):
            for end in link.ends:
                way = (end.other.host.node.config.name, end.host.node.config.name)
                end.stalled = way in self._blocked
                end.look_at_road()
            link.look()

"""Bare Peers with real sessions between them, and a network whose every delivery is in the test's hand.

net = PeerNet(random)                     or with names: "ann" is at "ann:1"
ann, bob = net.add("ann"), net.add("bob")
ann.keep("bob:1"); net.settle()           all bytes are carried, time stands still
net.run(2.0)                              time goes on, everything is woken in time

`net.step()` moves a random part of what is under way on one random direction; `net.cut(link)` breaks a connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from headgate.broker.core.config import NodeConfig
from headgate.broker.core.delivery import Subscribers
from headgate.broker.core.effects import Close, Dial, Effect, Note, Send
from headgate.broker.core.inputs import (
    DialFailed,
    Input,
    LinkDown,
    LinkPaused,
    LinkResumed,
    PeerUp,
    Reachable,
    Received,
)
from headgate.broker.core.links import PeerHooks, PeerInfo, Peers
from headgate.broker.core.timers import Timers
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Control, Copy, Deliver, Forward, Gap, Letter
from headgate.protocol.wire import Role, Session

__all__ = ["PeerNet", "Station", "Wire"]


class Wire:
    """One connection: two sessions, bytes under way in both directions. Side 0 dialled."""

    def __init__(self, net: PeerNet, dialler: Station, acceptor: Station, address: str) -> None:
        self.net = net
        self.address = address
        self.stations = (dialler, acceptor)
        self.sessions = [Session(Role.PEER, net.now), Session(Role.PEER, net.now)]
        self.under_way = [b"", b""]  # towards side 0, towards side 1
        self.stalled = [False, False]
        self.links = [net.next_link(), net.next_link()]
        self.told = [False, False]  # of its end
        self.open = True

    def side_of(self, station: Station, link: int) -> int:
        return self.links.index(link)

    def flush(self, side: int) -> None:
        data = b"".join(self.sessions[side].take())
        if self.open:
            self.under_way[1 - side] += data

    def arrive(self, side: int, count: int) -> None:
        """So many bytes come in at a side."""
        data, self.under_way[side] = self.under_way[side][:count], self.under_way[side][count:]
        session, station = self.sessions[side], self.stations[side]
        if self.told[side]:
            return
        messages = session.receive(data, self.net.now)
        if messages:
            station.feed(Received(self.links[side], messages))
        self.flush(side)
        self.look()

    def look(self) -> None:
        """A side whose session is over, and whose last words are out, hangs up; the other one hears it, if it can."""
        for side in (0, 1):
            if self.sessions[side].closed and not self.under_way[1 - side]:
                self.lose(side)
            elif self.open and self.told[1 - side] and not self.under_way[side]:
                self.lose(side, "the other side is gone")
        if all(self.told):
            self.net.wires.pop(self, None)

    def flush_nothing_more(self) -> None:
        """One side is dead: what it wrote still arrives, then the other one learns of its end."""
        self.sessions[self.told.index(True)].lost("killed")
        other = self.told.index(False)
        if not self.under_way[other]:
            self.lose(other, "the other side is gone")
            self.look()

    def lose(self, side: int, reason: str = "") -> None:
        """A side learns that the connection is over; the other one does when nothing is under way to it."""
        if not self.told[side]:
            self.told[side] = True
            self.sessions[side].lost("the connection was lost")
            text = reason or str(self.sessions[side].failure or "goodbye")
            self.stations[side].wires.pop(self.links[side], None)
            self.stations[side].feed(LinkDown(self.links[side], text))
            other = 1 - side
            if self.open and not self.told[other] and not self.under_way[other]:
                self.lose(other, "the other side hung up")


class Station:
    """One broker: its Peers, and what they told it."""

    def __init__(self, net: PeerNet, name: str, life: int, address: str, begun: bool, **config: Any) -> None:
        self.net = net
        self.address = address
        self.config = NodeConfig(name=name, incarnation=life, **config)
        self.effects: list[Effect] = []
        self.timers = Timers()
        self.subscribers = Subscribers(self.config, self.effects, self.timers)
        self.wires: dict[int, Wire] = {}
        self.told: list[tuple[Any, ...]] = []
        self.handled: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.returned: list[Forward] = []
        self.delivered = 0
        self.at_once = True  # acknowledge what comes at once
        self.dials: list[str] = []
        self.copies: list[Copy] = []
        self.notes: list[Note] = []
        self.refuses = ""
        self.seeds: list[str] = []
        hooks = PeerHooks(
            lambda info, now: self.told.append(("up", info.name, info.life)),
            lambda info, reason, now: self.told.append(("down", info.name, reason)),
            self._letter,
            self._control,
            lambda info, message, now: self.copies.append(message),
            self._forward,
            self._deliver,
            self._gap,
            self._lost,
            lambda info, forwards, now: self.returned.extend(forwards),
            lambda info, message, now: None,
        )
        self.peers = Peers(self.config, self.effects, self.subscribers, hooks, Random(net.random.getrandbits(32)))
        if begun:
            self.begin()

    # --- what a test says --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Others can reach it."""
        assert not self.peers.handle(Reachable(self.address, f"{self.address}0"), self.net.now)
        self.carry_out()

    def accept(self, link: int) -> None:
        """A connection came in."""
        self.feed(PeerUp(link, ""))

    def keep(self, *addresses: str) -> None:
        self.peers.keep(addresses, self.net.now)
        self.carry_out()

    def tell(self, address: str, text: str) -> None:
        self.peers.tell(address, Control(20, [text]), self.net.now)
        self.carry_out()

    def send(self, name: str, message: Forward | Deliver) -> None:
        self.peers.send_events(self.info(name), message, self.net.now)
        self.carry_out()

    def acknowledge(self, name: str, count: int) -> None:
        self.peers.acknowledge(self.info(name), count, self.net.now)
        self.carry_out()

    def info(self, name: str) -> PeerInfo:
        (found,) = [info for info in self.peers.by_identifier.values() if info.name == name]
        return found

    def linked(self) -> list[str]:
        return sorted(info.name for info in self.peers.by_link.values())

    def wire(self, name: str) -> Wire:
        link = self.info(name).link
        assert link is not None
        return self.wires[link]

    def heard(self, kind: str) -> list[tuple[Any, ...]]:
        """What the hooks were told, of one kind."""
        return [told[1:] for told in self.told if told[0] == kind]

    # --- the host ----------------------------------------------------------------------------------------------------

    def feed(self, happened: Input) -> None:
        self.peers.handle(happened, self.net.now)
        self.carry_out()

    def deadline(self) -> float:
        return min(self.peers.timers.next, self.timers.next)

    def wake(self) -> None:
        self.timers.due(self.net.now)
        self.subscribers.drain(self.net.now)
        self.peers.wake(self.net.now)
        self.carry_out()

    def carry_out(self) -> None:
        effects = self.effects[:]
        self.effects.clear()
        for effect in effects:
            if isinstance(effect, Send):
                wire = self.wires.get(effect.link)
                if wire is not None and not wire.sessions[wire.links.index(effect.link)].closed:
                    side = wire.links.index(effect.link)
                    wire.sessions[side].send(effect.message)
                    wire.flush(side)
            elif isinstance(effect, Close):
                wire = self.wires.get(effect.link)
                if wire is not None:
                    side = wire.links.index(effect.link)
                    wire.sessions[side].lost("closed here")
                    wire.look()
            elif isinstance(effect, Dial):
                self.dials.append(effect.address)
                self.net.dialled.append((self, effect.address))
            elif isinstance(effect, Note):
                self.notes.append(effect)
        self.peers.validate()

    def pause(self, name: str) -> None:
        """The link takes no more for now."""
        link = self.info(name).link
        assert link is not None
        self.feed(LinkPaused(link))

    def resume(self, name: str) -> None:
        link = self.info(name).link
        assert link is not None
        self.feed(LinkResumed(link))

    # --- hooks -------------------------------------------------------------------------------------------------------

    def _letter(self, info: PeerInfo, message: Letter, now: float) -> None:
        self.told.append(("letter", info.name, message.kind))

    def _control(self, info: PeerInfo, message: Control, now: float) -> None:
        if self.refuses == "control":
            raise ProtocolViolation("no such thing")
        self.told.append(("control", info.name, *message.body))

    def _forward(self, info: PeerInfo, message: Forward, now: float) -> None:
        stream = message.batch.topics.partition("/")[0]
        self.handled[stream] = self.handled.get(stream, 0) + message.batch.count
        self.told.append(("forward", info.name, message.base, message.batch.count))
        if self.at_once:
            self.peers.acknowledge(info, message.batch.count, now)

    def _deliver(self, info: PeerInfo, message: Deliver, now: float) -> None:
        self.delivered += message.portion.count
        self.told.append(("deliver", info.name, message.portion.base, message.portion.count))
        if self.at_once:
            self.peers.acknowledge(info, message.portion.count, now)

    def _gap(self, info: PeerInfo, message: Gap, now: float) -> None:
        self.told.append(("gap", info.name, message.subscription, message.count))

    def _lost(self, info: PeerInfo, stream: str, count: int, now: float) -> None:
        self.lost[stream] = self.lost.get(stream, 0) + count


class PeerNet:
    """Stations, and the wires between them."""

    def __init__(self, random: Random | None = None) -> None:
        self.random = random if random is not None else Random(1)
        self.now = 100.0
        self.stations: dict[str, Station] = {}  # by address
        self.also: dict[str, str] = {}  # other names of an address
        self.wires: dict[Wire, None] = {}
        self.dialled: list[tuple[Station, str]] = []
        self._links = 0

    def next_link(self) -> int:
        self._links += 1
        return self._links

    def add(self, name: str, life: int = 1, address: str = "", begun: bool = True, **config: Any) -> Station:
        address = address or f"{name}:1"
        station = self.stations[address] = Station(self, name, life, address, begun, **config)
        return station

    def kill(self, station: Station) -> None:
        """The process is gone; the others hear so at once, as from any kernel."""
        del self.stations[station.address]
        for wire in list(station.wires.values()):
            side = wire.stations.index(station)
            wire.told[side] = True
            wire.under_way[side] = b""
            wire.flush_nothing_more()
        station.wires.clear()

    def replace_silently(self, station: Station, life: int) -> Station:
        """The same after a power cut: nobody hears of it."""
        del self.stations[station.address]
        for wire in list(station.wires.values()):
            wire.told[wire.stations.index(station)] = True
            self.break_silently(wire)
        return self.add(station.config.name, life, station.address)

    def replace(self, station: Station, life: int) -> Station:
        """The process is gone, and another one of the same name is there at once."""
        self.kill(station)
        return self.add(station.config.name, life, station.address)

    def connect(self) -> None:
        """Everything that was dialled is tried."""
        while self.dialled:
            self._connect(*self.dialled.pop(0))

    def settle(self) -> None:
        """Carry everything that is under way, until nothing is."""
        for _ in range(10_000):
            if self.dialled:
                self.connect()
                continue
            moving = [(wire, side) for wire, side in self._moving()]
            if not moving:
                return
            wire, side = moving[0]
            wire.arrive(side, len(wire.under_way[side]))
        raise AssertionError("they never stop talking")

    def step(self) -> bool:
        """One random thing of what is under way happens; False when nothing is."""
        choices: list[tuple[Wire, int] | None] = [*self._moving()]
        if self.dialled:
            choices.append(None)
        if not choices:
            return False
        chosen = self.random.choice(choices)
        if chosen is None:
            self._connect(*self.dialled.pop(self.random.randrange(len(self.dialled))))
        else:
            wire, side = chosen
            size = len(wire.under_way[side])
            wire.arrive(side, size if self.random.random() < 0.5 else self.random.randint(1, size))
        return True

    def run(self, seconds: float, carry: bool = True) -> None:
        """Time goes on; with `carry`, whatever is said arrives at once."""
        end = self.now + seconds
        if carry:
            self.settle()
        while True:
            deadline = min([self._deadline(), end])
            self.now = max(self.now, deadline)
            self.wake()
            if carry:
                self.settle()
            if self.now >= end and self._deadline() > end:
                return

    def wake(self) -> None:
        """Whoever is due looks at the clock."""
        for station in list(self.stations.values()):
            if station.deadline() <= self.now:
                station.wake()
        for wire in list(self.wires):
            for side in (0, 1):
                session = wire.sessions[side]
                if session.next_deadline() <= self.now:
                    session.wake(self.now)
                    wire.flush(side)
            wire.look()

    def cut(self, wire: Wire) -> None:
        """The connection breaks: what is under way is lost, and each side learns at once."""
        self.break_silently(wire)
        for side in (0, 1):
            wire.lose(side, "cut")
        wire.look()

    def break_silently(self, wire: Wire) -> None:
        """The connection breaks, and nobody is told."""
        wire.open = False
        wire.under_way = [b"", b""]

    def _deadline(self) -> float:
        stations = [station.deadline() for station in self.stations.values()]
        return min([*stations, *(session.next_deadline() for wire in self.wires for session in wire.sessions)])

    def _moving(self) -> Iterator[tuple[Wire, int]]:
        for wire in self.wires:
            for side in (0, 1):
                if wire.under_way[side] and not wire.stalled[side]:
                    yield wire, side

    def _connect(self, dialler: Station, address: str) -> None:
        if dialler not in self.stations.values():
            return  # it died meanwhile
        acceptor = self.stations.get(self.also.get(address, address))
        if acceptor is None:
            dialler.feed(DialFailed(address))
            return
        wire = Wire(self, dialler, acceptor, address)
        self.wires[wire] = None
        dialler.wires[wire.links[0]] = wire
        acceptor.wires[wire.links[1]] = wire
        acceptor.feed(PeerUp(wire.links[1], ""))
        dialler.feed(PeerUp(wire.links[0], address))

"""Whatever breaks, every forwarded event is handled, reported lost or returned: two brokers, links cut at random."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.core.links import PeerInfo
from headgate.protocol.messages import Forward
from tests.support.peer_events import deliver, forward
from tests.support.peer_net import PeerNet, Station


class Trial:
    """Two brokers that send each other events over links that break at random places, and an account of every event."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.net = PeerNet(self.random)
        self.stations = [self.net.add("ann"), self.net.add("bob")]
        self.sent: list[dict[str, int]] = [{}, {}]
        self.base = 0
        self.gave_up = False
        for station, other in zip(self.stations, self.stations[::-1], strict=True):
            station.at_once = False
            station.keep(other.address)
            self.watch(station)

    def watch(self, station: Station) -> None:
        """See when a station waits no longer for a count: then it may report too much, never too little."""
        give_up = station.peers.traffic.give_up

        def watched(info: PeerInfo, now: float) -> None:
            self.gave_up = self.gave_up or bool(info.ledger)
            give_up(info, now)

        station.peers.traffic.give_up = watched  # type: ignore[method-assign]  # the real one, and a look at it

    def act(self) -> None:
        side = self.random.randrange(2)
        station, name = self.stations[side], ("bob", "ann")[side]
        infos = [info for info in station.peers.by_identifier.values() if info.name == name]
        action = self.random.random()
        if action < 0.45:
            self.net.step()
        elif action < 0.8 and infos:
            stream, events = self.random.choice("xy"), self.random.choice((1, 2, 4096))
            message = forward(stream, events, base=self.base) if self.random.random() < 0.7 else None
            self.base += events
            if message is not None:
                self.sent[side][stream] = self.sent[side].get(stream, 0) + events
                station.send(name, message)
            else:
                station.send(name, deliver(self.random.choice((1, 3)), self.base))
        elif action < 0.9 and infos and infos[0].got > infos[0].handled:
            station.acknowledge(name, self.random.randint(1, infos[0].got - infos[0].handled))
        elif action < 0.93 and infos and infos[0].link is not None:
            (station.resume if infos[0].session.paused else station.pause)(name)
        elif action < 0.95 and self.net.wires:
            self.net.cut(self.random.choice(list(self.net.wires)))
        else:
            self.net.run(self.random.choice((0.0, 0.05, 0.3)), carry=False)

    def finish(self) -> None:
        for station, name in zip(self.stations, ("bob", "ann"), strict=True):
            station.at_once = True
            if name in station.linked() and station.info(name).session.paused:
                station.resume(name)
        self.net.run(4.0)
        for station, name in zip(self.stations, ("bob", "ann"), strict=True):
            info = station.info(name)
            station.acknowledge(name, info.got - info.handled)
        self.net.run(1.0)

    def check(self) -> None:
        for side, (station, other) in enumerate(zip(self.stations, self.stations[::-1], strict=True)):
            accounted: dict[str, int] = {}
            back = [("lost", station.lost), ("handled", other.handled), ("returned", _by_stream(station.returned))]
            for _, counts in back:
                for stream, count in counts.items():
                    accounted[stream] = accounted.get(stream, 0) + count
            if self.gave_up:
                assert all(accounted[stream] >= count for stream, count in self.sent[side].items()), back
            else:
                assert accounted == self.sent[side], (self.sent[side], back)
            bases = [base for _, base, _ in other.heard("forward")]
            assert bases == sorted(bases), "in order, none twice"
            info = station.info(("bob", "ann")[side])
            assert not info.ledger and not info.forwards and not info.session.outbox
            assert info.session.sent == other.info(("ann", "bob")[side]).got


def _by_stream(messages: list[Forward]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for message in messages:
        stream = message.batch.topics.partition("/")[0]
        counts[stream] = counts.get(stream, 0) + message.batch.count
    return counts


def play(seed: int) -> Trial:
    trial = Trial(seed)
    for _ in range(trial.random.choice((50, 300))):
        trial.act()
    trial.finish()
    trial.check()
    return trial


@pytest.mark.parametrize("seed", range(60))
def test_every_forwarded_event_is_handled_or_reported_lost_or_returned(seed: int) -> None:
    assert not play(seed).gave_up, "this seed shows too little"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 2_000))
def test_every_forwarded_event_is_accounted_for_in_many_runs(seed: int) -> None:
    play(seed)

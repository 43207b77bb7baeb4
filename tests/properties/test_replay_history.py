"""Replay: each event once, in the order of its log, whatever is appended, trimmed and delivered meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client import Chunk, ClientLimits, LogInfo, Replay, Step, Survey
from headgate.protocol.data import LogName, Row


def info(broker: str, first: int, following: int) -> LogInfo:
    return LogInfo(LogName(broker, 1, 0, "q"), first, following, 0, 0, 0, (broker,))


@dataclass
class Twin:
    """Logs as lists of (position, origin, number); other streams of a broker take numbers of its origin too."""

    rows: dict[str, list[list[tuple[int, str, int]]]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    firsts: dict[str, int] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)

    def end(self, broker: str) -> int:
        rows = self.rows[broker]
        return rows[-1][-1][0] + 1 if rows else 0

    def append(self, broker: str, count: int, skipped: int) -> list[tuple[int, str, int]]:
        rows = self.rows.setdefault(broker, [])
        origin = f"{broker}.{self.lives.get(broker, 0)}"
        number = self.numbers.get(origin, 0) + skipped
        end = self.end(broker)
        rows.append([(end + place, origin, number + place) for place in range(count)])
        self.numbers[origin] = number + count
        return rows[-1]

    def infos(self) -> list[LogInfo]:
        return [info(broker, self.firsts.get(broker, 0), self.end(broker)) for broker in self.rows]

    def chunk(self, broker: str, position: int, most: int) -> Chunk:
        first = self.firsts.get(broker, 0)
        assert position <= self.end(broker)
        looked = [row for row in self.rows[broker] if row[-1][0] >= max(position, first)][:most]
        rows = [
            Row(row[0][0], len(row), row[0][0], row[0][1], row[0][2], b"", "q", bytes(4 * len(row)), {}, True, b"")
            for row in looked
        ]
        following = looked[-1][-1][0] + 1 if looked else max(position, first)
        return Chunk(rows, first, following, self.end(broker))


class Reader:
    """A subscriber that replays; `live` is what was delivered and not taken yet."""

    def __init__(self, twin: Twin, start: str, limits: ClientLimits) -> None:
        self.twin = twin
        self.lost = 0
        self.replay = Replay(start, self.lose, limits)
        self.is_subscribed = False
        self.live: list[tuple[int, str, int]] = []
        self.seen: list[tuple[str, int, int]] = []

    def lose(self, count: int, _: str) -> None:
        self.lost += count

    def step(self, most: int) -> None:
        replay = self.replay
        if replay.step is Step.SURVEY:
            replay.surveyed(Survey(self.twin.infos(), (), 1, True))
        elif replay.step is Step.READ:
            name, position, _ = replay.next_read
            replay.taken(name, self.twin.chunk(name.broker, position, most))
        elif replay.step is Step.SUBSCRIBE:
            self.is_subscribed = True
            replay.subscribed()
        else:
            for position, origin, number in self.live:
                broker = origin.split(".")[0]
                if replay.delivered.fresh(f"{broker}@1", 0, [position]):
                    self.seen.append((broker, position, number))
            self.live.clear()
        for piece in replay.drain():
            for row in piece.rows:
                for place in row.places():
                    self.seen.append((piece.name.broker, row.first + place, row.base + place))


def live_through(draw: Random) -> None:
    """A random history; at the end the subscriber has seen each event from its beginning on once, log by log."""
    limits = ClientLimits(replay_near_events=draw.randint(0, 6))
    twin = Twin()
    for _ in range(draw.randint(0, 8)):
        twin.append(draw.choice("ab"), draw.randint(1, 4), draw.randint(0, 2))
    old = {broker: len(rows) for broker, rows in twin.rows.items()}
    begin = {broker: draw.randint(0, twin.end(broker)) for broker in twin.rows}
    start = ",".join(f"{broker}@1:{position}" for broker, position in begin.items()) if draw.random() < 0.7 else "start"
    begin = begin if start and start != "start" else {}
    reader = Reader(twin, start or "start", limits)
    # On the disk and not matched yet: who subscribes meanwhile is told of it, though it is in the log.
    in_flight = [row for rows in twin.rows.values() for row in rows[-draw.randint(1, 2) :]]
    for _ in range(draw.randint(0, 40)):
        act = draw.random()
        if act < 0.4:
            reader.step(draw.randint(1, 3))
        elif act < 0.75:
            broker = draw.choice("abc")
            in_flight.append(twin.append(broker, draw.randint(1, 4), draw.randint(0, 2)))
        elif act < 0.9 and in_flight:
            events = in_flight.pop(0)
            if reader.is_subscribed:
                reader.live += events
        elif act < 0.97:
            # What a broker began to match before it stopped, it has matched.
            reader.live += [event for events in in_flight for event in events if reader.is_subscribed]
            in_flight.clear()
            broker = draw.choice("abc")
            twin.lives[broker] = twin.lives.get(broker, 0) + 1
        elif old:
            # Retention takes what is old, never what is still being matched.
            broker = draw.choice(sorted(old))
            rows = [row[0][0] for row in twin.rows[broker][: old[broker]]]
            twin.firsts[broker] = max(twin.firsts.get(broker, 0), draw.choice(rows))
    while reader.replay.step is not Step.LIVE:
        reader.step(2)
    for events in in_flight:
        reader.live += events
    reader.step(1)
    assert len(set(reader.seen)) == len(reader.seen), "once"
    total = 0
    for broker in twin.rows:
        positions = [position for log, position, _ in reader.seen if log == broker]
        assert positions == sorted(positions), "in the order of the log"
        assert all(position >= begin.get(broker, 0) for position in positions), "nothing from before the beginning"
        place = reader.replay._logs.get(LogName(broker, 1, 0, "q"))
        # Where it was listed for the first time, that was as far back as it went.
        total += twin.end(broker) - (place.wanted if place else 0)
    assert len(reader.seen) + reader.lost == total, "nothing is missing that nobody told of"
    assert not reader.lost or any(twin.firsts.values())


def test_any_history_shows_each_event_once() -> None:
    for seed in range(1500):
        live_through(Random(seed))


@given(st.randoms(use_true_random=False))
def test_any_history_that_is_found_shows_each_event_once(draw: Random) -> None:
    live_through(draw)

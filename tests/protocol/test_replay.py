"""Replay: each event once, in the order of its log, whatever is appended, trimmed and delivered meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.batch import join_u32, make_batch
from protocol.errors import ErrorCode, LocalError, Refused
from protocol.limits import REPLAY_NEAR_EVENTS
from protocol.log_catalogue import Chunk, LogInfo
from protocol.log_rows import LogName, Row
from protocol.replay import Replay, Step, begins_in_the_past, parse_start


def nothing_lost(count: int, reason: str) -> None:
    raise AssertionError(reason)


def info(broker: str, first: int, following: int, time: int = 0) -> LogInfo:
    return LogInfo(LogName(broker, 1, 0, "q"), first, following, 0, time, time, (broker,))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("start", "start"),
        (0, 0),
        (17, 17),
        ("ann@17:120", {"ann@17": 120}),
        ("ann@17:120, bob@18:7", {"ann@17": 120, "bob@18": 7}),
        ("a:b@17:0", {"a:b@17": 0}),
    ],
)
def test_where_to_begin(text: str | int, start: object) -> None:
    assert parse_start(text) == start
    assert begins_in_the_past(text)


@pytest.mark.parametrize(
    "text", ["", "end", "12", "ann@17", "ann:12", "ann@17:-1", "ann@17:x", "ann@1:1,", "ann@1:²", -1, True]
)
def test_what_is_no_place_to_begin(text: str | int) -> None:
    with pytest.raises(LocalError):
        parse_start(text)


def test_now_is_not_the_past() -> None:
    assert not begins_in_the_past(None) and not begins_in_the_past("now")


def step_of(replay: Replay) -> Step:
    """What comes next; it changes with every word."""
    return replay.step


def test_a_stream_without_a_log_is_subscribed_to_at_once() -> None:
    replay = Replay("start", nothing_lost)
    assert step_of(replay) is Step.LIST
    replay.listed([])
    assert step_of(replay) is Step.SUBSCRIBE
    replay.subscribed()
    assert step_of(replay) is Step.LIST
    replay.listed([])
    assert step_of(replay) is Step.LIVE


def test_it_subscribes_near_the_ends_and_reads_the_rest_up_to_them() -> None:
    replay, far = Replay("start", nothing_lost), 3 * REPLAY_NEAR_EVENTS
    replay.listed([info("ann", 0, far)])
    replay.taken(replay.next_read[0], Chunk([], 0, REPLAY_NEAR_EVENTS, far, {"ann.1": 5}))
    assert step_of(replay) is Step.READ
    replay.taken(replay.next_read[0], Chunk([], 0, 2 * REPLAY_NEAR_EVENTS, far + 10, {"ann.1": 7}))
    assert step_of(replay) is Step.READ, "the log has grown"
    replay.taken(replay.next_read[0], Chunk([], 0, 2 * REPLAY_NEAR_EVENTS + 10, far + 10, {"ann.1": 9}))
    assert step_of(replay) is Step.SUBSCRIBE
    replay.subscribed()
    replay.listed([info("ann", 0, far + 20), info("bob", 5, 6)])
    assert step_of(replay) is Step.READ
    assert replay.next_read == (LogName("ann", 1, 0, "q"), 2 * REPLAY_NEAR_EVENTS + 10)
    replay.taken(replay.next_read[0], Chunk([], 0, far + 20, far + 99, {"ann.1": 11}))
    assert replay.next_read == (LogName("bob", 1, 0, "q"), 5)
    replay.taken(replay.next_read[0], Chunk([], 5, 6, 6, {"bob.1": 3}))
    assert step_of(replay) is Step.LIVE and replay.covered == {"ann.1": 11, "bob.1": 3}


def test_the_log_whose_last_event_is_the_oldest_comes_next() -> None:
    replay = Replay("start", nothing_lost)
    replay.listed([info("ann", 0, 9000, time=5), info("bob", 0, 9000, time=3)])
    assert replay.next_read[0].broker == "bob"
    row = Row(0, 1, 7, "o", 0, b"", "q", b"", {}, True, b"")
    replay.taken(replay.next_read[0], Chunk([row], 0, 1, 9000, {}))
    assert replay.next_read[0].broker == "ann"


def test_a_number_is_a_position_in_the_only_log() -> None:
    replay = Replay(5, nothing_lost)
    replay.listed([info("ann", 0, 9000)])
    name, position = replay.next_read
    assert position == 4, "to know the number of the event before"
    assert replay.taken(name, Chunk([], 0, 7, 9000, {})).position == 5
    with pytest.raises(Refused, match="ann@1:0,bob@1:3"):
        Replay(5, nothing_lost).listed([info("bob", 3, 9), info("ann", 0, 9)])


@pytest.mark.parametrize(
    ("start", "words"), [("ann@1:10", "ends at 9"), ("cyd@1:0", "no log cyd@1"), (10, "ends at 9")]
)
def test_a_place_that_does_not_exist_is_refused(start: str | int, words: str) -> None:
    with pytest.raises(Refused, match=words) as caught:
        Replay(start, nothing_lost).listed([info("ann", 0, 9)])
    assert caught.value.code == ErrorCode.NOT_FOUND


def test_what_retention_took_is_told() -> None:
    told: list[int] = []
    replay = Replay("ann@1:5", lambda count, reason: told.append(count))
    replay.listed([info("ann", 20, 30000)])
    name, position = replay.next_read
    assert position == 5
    replay.taken(name, Chunk([], 20, 25, 30000, {}))
    replay.taken(name, Chunk([], 40, 45, 30000, {}))
    replay.taken(name, Chunk([], 40, 50, 30000, {}))
    assert told == [15, 15]


def test_a_copy_that_ends_early_ends_the_reading() -> None:
    replay = Replay("start", nothing_lost)
    replay.listed([info("ann", 0, 9000)])
    replay.taken(replay.next_read[0], Chunk([], 0, 0, 9000, {}))
    assert replay.step is Step.SUBSCRIBE


def produced(first: int, number: int, count: int, offsets: bytes = b"") -> Row:
    """A row of the producer "p"."""
    batch = make_batch(["q"], {}, [b"x"] * count)
    return Row(first, count, 7, "o", first, offsets, "q", batch.lengths, {}, True, batch.records, "p", 1, number)


def test_an_event_that_is_in_two_logs_is_shown_where_it_is_read_first() -> None:
    replay = Replay("start", nothing_lost)
    replay.listed([info("ann", 0, 30_000), info("bob", 0, 30_000)])
    ann, bob = sorted([replay.next_read[0], LogName("bob", 1, 0, "q")])
    shown = replay.taken(ann, Chunk([produced(0, 0, 5), produced(5, 5, 5)], 0, 10, 30_000, {}))
    assert [row.count for row in shown.rows] == [5, 5]
    rows = [produced(0, 3, 3), produced(3, 8, 4), produced(7, 20, 2, join_u32([1, 4]))]
    shown = replay.taken(bob, Chunk(rows, 0, 12, 30_000, {}))
    assert [(row.first, list(row.places()), row.number) for row in shown.rows] == [(3, [2, 3], 8), (7, [1, 4], 20)]
    assert replay.repeated == 5
    assert replay.taken(ann, Chunk([produced(10, 20, 2, join_u32([1, 4]))], 0, 20, 30_000, {})).rows == []


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
        covered = {row[-1][1]: row[-1][2] for row in looked}
        rows = [
            Row(row[0][0], len(row), row[0][0], row[0][1], row[0][2], b"", "q", b"", {}, True, b"") for row in looked
        ]
        following = looked[-1][-1][0] + 1 if looked else max(position, first)
        return Chunk(rows, first, following, self.end(broker), covered)


class Reader:
    """A subscriber that replays; `live` is what was delivered and not taken yet."""

    def __init__(self, twin: Twin, start: str) -> None:
        self.twin = twin
        self.lost = 0
        self.replay = Replay(start, self.lose)
        self.is_subscribed = False
        self.live: list[tuple[int, str, int]] = []
        self.seen: list[tuple[str, int, int]] = []

    def lose(self, count: int, _: str) -> None:
        self.lost += count

    def step(self, most: int) -> None:
        replay = self.replay
        if replay.step is Step.LIST:
            replay.listed(self.twin.infos())
        elif replay.step is Step.READ:
            name, position = replay.next_read
            piece = replay.taken(name, self.twin.chunk(name.broker, position, most))
            for row in piece.rows:
                for place in row.places():
                    if row.first + place >= piece.position:
                        self.seen.append((name.broker, row.first + place, row.base + place))
        elif replay.step is Step.SUBSCRIBE:
            self.is_subscribed = True
            replay.subscribed()
        else:
            for position, origin, number in self.live:
                if number > replay.covered.get(origin, -1):
                    self.seen.append((origin.split(".")[0], position, number))
            self.live.clear()


def live_through(draw: Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random history; at the end the subscriber has seen each event from its beginning on once, log by log."""
    monkeypatch.setattr("protocol.replay.REPLAY_NEAR_EVENTS", draw.randint(0, 6))
    twin = Twin()
    for _ in range(draw.randint(0, 8)):
        twin.append(draw.choice("ab"), draw.randint(1, 4), draw.randint(0, 2))
    old = {broker: len(rows) for broker, rows in twin.rows.items()}
    begin = {broker: draw.randint(0, twin.end(broker)) for broker in twin.rows}
    start = ",".join(f"{broker}@1:{position}" for broker, position in begin.items()) if draw.random() < 0.7 else "start"
    begin = begin if start and start != "start" else {}
    reader = Reader(twin, start or "start")
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
        place = reader.replay._places.get(LogName(broker, 1, 0, "q"))
        # Where it was listed for the first time, that was as far back as it went.
        total += twin.end(broker) - (place.wanted if place else 0)
    assert len(reader.seen) + reader.lost == total, "nothing is missing that nobody told of"
    assert not reader.lost or any(twin.firsts.values())


def test_any_history_shows_each_event_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1500):
        live_through(Random(seed), monkeypatch)


@given(st.randoms(use_true_random=False))
def test_any_history_that_is_found_shows_each_event_once(draw: Random) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        live_through(draw, monkeypatch)

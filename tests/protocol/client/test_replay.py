"""Replay step by step; `tests/properties/test_replay_history.py` and `test_replay_heals.py` have whole histories."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headgate.protocol.client import Chunk, LogInfo, Replay, Step, begins_in_the_past, parse_start
from headgate.protocol.client.merging import Piece
from headgate.protocol.data import LogName, Row, join_u32, make_batch
from headgate.protocol.errors import ErrorCode, LocalError, Refused
from headgate.protocol.limits import REPLAY_NEAR_EVENTS


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
        ("now", "now"),
        ("ann@17:1,00000000000000aa-1f.7, 00000000000000aa-1f.5", {"ann@17": 1, "00000000000000aa-1f": 7}),
    ],
)
def test_where_to_begin(text: str | int, start: object) -> None:
    assert parse_start(text) == start
    assert begins_in_the_past(text) == (text != "now")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "end",
        "12",
        "ann@17",
        "ann:12",
        "ann@17:-1",
        "ann@17:x",
        "ann@1:1,",
        "ann@1:²",
        "0aa-1f.7",
        "00000000000000aa-1f.",
        -1,
        True,
    ],
)
def test_what_is_no_place_to_begin(text: str | int) -> None:
    with pytest.raises(LocalError):
        parse_start(text)


def test_now_is_not_the_past() -> None:
    assert not begins_in_the_past(None) and not begins_in_the_past("now")


def read(replay: Replay, name: LogName, chunk: Chunk) -> list[Piece]:
    """What comes after a chunk."""
    replay.taken(name, chunk)
    return list(replay.drain())


def rows_of(pieces: list[Piece]) -> list[Row]:
    return [row for piece in pieces for row in piece.rows]


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
    (piece,) = read(replay, name, Chunk([produced(4, 0, 3)], 0, 7, 9000, {}))
    assert piece.position == 5
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


def produced(first: int, number: int, count: int, offsets: bytes = b"", time: int = 7) -> Row:
    """A row of the producer "p"."""
    batch = make_batch(["q"], {}, [b"x"] * count)
    return Row(first, count, time, "o", first, offsets, "q", batch.lengths, {}, True, batch.records, "p", 1, number)


def test_an_event_that_is_in_two_logs_is_shown_where_it_is_read_first() -> None:
    replay = Replay("start", nothing_lost)
    replay.listed([info("ann", 0, 30_000, time=7), info("bob", 0, 30_000, time=7)])
    ann, bob = sorted([replay.next_read[0], LogName("bob", 1, 0, "q")])
    shown = rows_of(read(replay, ann, Chunk([produced(0, 0, 5), produced(5, 5, 5)], 0, 10, 30_000, {})))
    assert [row.count for row in shown] == [5, 5]
    rows = [produced(0, 3, 3), produced(3, 8, 4), produced(7, 20, 2, join_u32([1, 4]))]
    shown = rows_of(read(replay, bob, Chunk(rows, 0, 12, 30_000, {})))
    assert [(row.first, list(row.places()), row.number) for row in shown] == [(3, [2, 3], 8), (7, [1, 4], 20)]
    assert replay.repeated == 5
    assert read(replay, ann, Chunk([produced(10, 20, 2, join_u32([1, 4]))], 0, 20, 30_000, {})) == []


def test_a_publisher_that_moved_and_came_back_is_read_in_its_order() -> None:
    replay = Replay("start", nothing_lost)
    replay.listed([info("ann", 0, 10, time=1), info("bob", 0, 5, time=4)])
    ann, bob = LogName("ann", 1, 0, "q"), LogName("bob", 1, 0, "q")
    first, last = produced(0, 0, 5, time=1), produced(5, 10, 5, time=9)
    assert rows_of(read(replay, ann, Chunk([first, last], 0, 10, 10, {}))) == [first], "bob may have older ones"
    between = produced(0, 5, 5, time=4)
    assert rows_of(read(replay, bob, Chunk([between], 0, 5, 5, {}))) == [between, last]
    assert step_of(replay) is Step.SUBSCRIBE


def test_now_begins_at_the_ends_and_in_new_logs_at_their_beginnings() -> None:
    replay = Replay("now", nothing_lost)
    replay.listed([info("ann", 0, 9000)], away=["cyd"], copies=2)
    assert step_of(replay) is Step.READ, "to know the number of the event before"
    assert read(replay, replay.next_read[0], Chunk([], 0, 9000, 9000, {"ann-1": 4})) == []
    replay.subscribed()
    replay.listed([info("ann", 0, 9000), info("bob", 0, 5), info("cyd", 0, 100)])
    assert replay.next_read == (LogName("bob", 1, 0, "q"), 0) and replay.begins["cyd@1"] == 100


def events(first: int, origin: str, base: int, count: int = 10) -> Row:
    batch = make_batch(["q"], {}, [b"x"] * count)
    return Row(first, count, 7, origin, base, b"", "q", batch.lengths, {}, True, batch.records)


def sought(replay: Replay, rows: list[Row]) -> int:
    """Answer its looks from these rows of one log, as whoever has it would; how many looks it took."""
    looks = 0
    while step_of(replay) is Step.SEEK:
        name, position = replay.next_look
        row = next(row for row in rows if position < row.first + row.count)
        replay.looked(name, Chunk([row], 0, row.first + row.count, rows[-1].first + rows[-1].count, {}))
        looks += 1
    return looks


ANN, LATER = "00000000000000aa-1", "00000000000000aa-2"
LOG = [events(10 * place, ANN if place < 400 else LATER, 20 * (place % 400)) for place in range(1000)]


@pytest.mark.parametrize(
    ("event", "first", "shown"),
    [
        (f"{ANN}.0", 0, 1),
        (f"{ANN}.9", 10, 10),
        (f"{ANN}.15", 10, 10),
        (f"{ANN}.2005", 1000, 1006),
        (f"{ANN}.999999", 4000, 4000),
        (f"{LATER}.25", 4010, 4016),
        (f"{ANN}.3,{LATER}.25", 4010, 4016),
        (f"{LATER}.25,ann@1:5000", 5000, 5000),
    ],
)
def test_it_begins_behind_an_event_that_is_named(event: str, first: int, shown: int) -> None:
    replay = Replay(event, nothing_lost)
    replay.listed([info("ann", 0, 10_000)])
    assert sought(replay, LOG) <= 12
    name, position = replay.next_read
    assert position == first or position == first - 1
    place = position // 10
    pieces = read(replay, name, Chunk(LOG[place : place + 2], 0, 10 * place + 20, 10_000, {}))
    wanted = [(row, piece.position) for piece in pieces for row in piece.rows]
    positions = [row.first + one for row, begin in wanted for one in row.places() if row.first + one >= begin]
    assert positions[0] == shown


def test_an_event_that_no_log_knows_of_is_refused() -> None:
    replay = Replay("00000000000000bb-1.7", nothing_lost)
    replay.listed([info("ann", 0, 10_000)])
    with pytest.raises(Refused, match=r"no log with event 00000000000000bb-1\.7") as caught:
        sought(replay, LOG)
    assert caught.value.code == ErrorCode.NOT_FOUND
    with pytest.raises(Refused):
        Replay(f"{ANN}.7", nothing_lost).listed([])
    Replay(f"{ANN}.7", nothing_lost).listed([], away=["ann"], copies=2)


def live_at(end: int, *rows: Row) -> Replay:
    """A replay of ann's log that has gone live."""
    replay = Replay("start", nothing_lost)
    replay.listed([info("ann", 0, end)])
    for _ in range(2):
        if step_of(replay) is Step.READ:
            replay.taken(replay.next_read[0], Chunk(list(rows), 0, end, end, {}))
        if step_of(replay) is Step.SUBSCRIBE:
            replay.subscribed()
            replay.listed([info("ann", 0, end)])
    assert step_of(replay) is Step.LIVE
    return replay


def test_after_a_loss_it_reads_what_was_not_handed_out() -> None:
    replay = live_at(0)
    replay.delivered.add(ANN, 0, [0, 1, 2, 20, 21])
    replay.lost()
    assert step_of(replay) is Step.SUBSCRIBE and replay.is_subscribed
    replay.subscribed()
    replay.listed([info("ann", 0, 30)])
    assert replay.next_read == (LogName("ann", 1, 0, "q"), 0)
    rows = rows_of(read(replay, replay.next_read[0], Chunk(LOG[:3], 0, 30, 30, {ANN: 49})))
    assert [[row.base + place for place in row.places()] for row in rows] == [
        list(range(3, 10)),
        list(range(22, 30)),
        list(range(40, 50)),
    ]
    assert step_of(replay) is Step.LIVE and replay.covered == {ANN: 49}


def test_after_a_loss_it_polls_for_where_to_go_on() -> None:
    replay = live_at(0)
    replay.delivered.settle(ANN, 20 * 300 + 4)
    replay.lost()
    replay.subscribed()
    replay.listed([info("ann", 0, 10_000)])
    assert sought(replay, LOG) <= 12
    assert replay.next_read == (LogName("ann", 1, 0, "q"), 3000)
    rows = rows_of(read(replay, replay.next_read[0], Chunk(LOG[300:301], 0, 3010, 10_000, {})))
    assert [list(row.places()) for row in rows] == [[5, 6, 7, 8, 9]]


@pytest.mark.parametrize(
    ("heard", "settled", "told"),
    [
        (range(15, 2000), None, []),
        (range(10, 1999), None, [0]),
        ([*range(10, 1500), *range(1501, 4000)], None, [0]),
        ([1999], 1998, []),
        ([2001], 1998, [0]),
    ],
)
def test_what_retention_took_after_it_was_handed_out_is_no_loss(
    heard: Sequence[int], settled: int | None, told: list[int]
) -> None:
    replay = live_at(10, LOG[0])
    replay.covered[ANN] = 14
    counts: list[int] = []
    replay._on_loss = lambda count, reason: counts.append(count)
    if settled is not None:
        replay.delivered.settle(ANN, settled)
    replay.delivered.add(ANN, 0, heard)
    replay.lost()
    replay.subscribed()
    replay.listed([info("ann", 1000, 10_000)])
    sought(replay, LOG[100:])
    name, _ = replay.next_read
    replay.taken(name, Chunk(LOG[100:], 1000, 10_000, 10_000, {ANN: 7989}))
    assert counts == told and step_of(replay) is Step.LIVE


def test_what_came_before_a_silence_need_not_be_looked_through() -> None:
    replay = live_at(0)
    for end in (20, 30, 40):
        replay.look_again()
        replay.listed([info("ann", 0, end)], mark=end < 40)
        assert step_of(replay) is Step.LIVE
    replay.lost()
    replay.subscribed()
    replay.listed([info("ann", 0, 50)])
    assert replay.next_read == (LogName("ann", 1, 0, "q"), 20), "where it ended before the last silence"


def test_logs_that_are_back_are_read_and_others_are_not() -> None:
    told: list[str] = []
    replay = Replay("start", lambda count, reason: told.append(f"{count} {reason}"))
    replay.listed([info("ann", 0, 0)], away=["bob", "cyd"], copies=2)
    replay.subscribed()
    replay.listed([info("ann", 0, 0)], away=["bob", "cyd"], copies=2)
    assert step_of(replay) is Step.LIVE and replay.away == ("bob", "cyd")
    assert told == ["0 brokers bob, cyd cannot be reached: what is in their logs alone comes when they are back"]
    replay.look_again()
    replay.listed([info("ann", 0, 30), info("bob", 0, 20)], away=["cyd"], copies=2)
    assert replay.next_read == (LogName("bob", 1, 0, "q"), 0)
    replay.taken(replay.next_read[0], Chunk([], 0, 20, 20, {}))
    assert step_of(replay) is Step.LIVE and len(told) == 1, "fewer than two: whatever was acknowledged is there"
    replay.look_again()
    replay.listed([info("ann", 0, 30), info("bob", 0, 20)], away=["ann", "bob"], copies=2)
    assert len(told) == 2 and "ann, bob" in told[1]


def test_a_log_that_cannot_be_read_is_told_of_once_and_tried_again() -> None:
    told: list[str] = []
    replay = Replay("start", lambda count, reason: told.append(reason))
    replay.listed([info("ann", 0, 9000)])
    replay.unreadable(replay.next_read[0], "nobody has it")
    assert step_of(replay) is Step.SUBSCRIBE
    replay.subscribed()
    for _ in range(2):
        replay.listed([info("ann", 0, 9000)])
        assert step_of(replay) is Step.READ
        replay.unreadable(replay.next_read[0], "nobody has it")
        assert step_of(replay) is Step.LIVE and replay.away == ("ann",)
        replay.look_again()
    assert told == ["log ann@1 cannot be read, it is tried again every few seconds: nobody has it"]


def test_a_log_that_somebody_else_holds_is_read_on_when_that_one_is_back() -> None:
    told: list[str] = []
    replay = Replay("start", lambda count, reason: told.append(reason))
    replay.listed([info("ann", 0, 9000)])
    name = replay.next_read[0]
    replay.taken(name, Chunk(LOG[:1], 0, 10, 9000, {}))
    replay.unreadable(name, "bob, who has its only copy, died")
    replay.subscribed()
    replay.listed([], away=["bob"])
    assert step_of(replay) is Step.LIVE and replay.delivered.keeps_old
    for _ in range(3):
        replay.look_again()
        replay.listed([], away=["bob"], mark=True)
        assert step_of(replay) is Step.LIVE and replay.away == ("bob",)
    replay.look_again()
    replay.listed([info("ann", 0, 10)], mark=True)
    assert step_of(replay) is Step.LIVE and replay.delivered.keeps_old, "a copy that has no more than what was read"
    replay.look_again()
    replay.listed([info("ann", 0, 20)], mark=True)
    assert step_of(replay) is Step.READ and replay.next_read == (name, 10) and not replay.delivered.keeps_old
    replay.taken(name, Chunk(LOG[1:2], 0, 20, 20, {}))
    assert step_of(replay) is Step.LIVE
    replay.look_again()
    replay.listed([info("ann", 0, 30)])
    assert step_of(replay) is Step.LIVE, "what it grows by comes live"


def test_what_is_not_on_enough_disks_yet_is_read_later_and_what_is_before_it_now() -> None:
    told: list[str] = []
    replay = Replay(f"{ANN}.2005", lambda count, reason: told.append(reason))
    replay.listed([info("ann", 0, 10_000)])
    while step_of(replay) is Step.SEEK:
        name, position = replay.next_look
        if position >= 1020:
            replay.unreadable(name, "it is on too few disks", True)
        else:
            row = LOG[position // 10]
            replay.looked(name, Chunk([row], 0, row.first + 10, 10_000, {}))
    assert replay.next_read == (LogName("ann", 1, 0, "q"), 1000) and not told
    replay.taken(replay.next_read[0], Chunk(LOG[100:102], 0, 1020, 10_000, {}))
    replay.unreadable(replay.next_read[0], "it is on too few disks", True)
    assert step_of(replay) is Step.SUBSCRIBE and replay.away == ("ann",) and len(told) == 1
    replay.subscribed()
    replay.listed([info("ann", 0, 10_000)])
    assert step_of(replay) is Step.SEEK and replay.next_look == (LogName("ann", 1, 0, "q"), 1020)

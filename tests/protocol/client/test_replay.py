"""Replay step by step; `tests/properties/test_replay_history.py` and `test_replay_heals.py` have whole histories."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headgate.protocol.client import Chunk, LogInfo, Replay, Step, Survey, begins_in_the_past, parse_start
from headgate.protocol.client.merging import Piece
from headgate.protocol.data import LogName, Row, make_batch
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
        "00000000000000aa-1f.7",
        -1,
        True,
    ],
)
def test_what_is_no_place_to_begin(text: str | int) -> None:
    with pytest.raises(LocalError):
        parse_start(text)


def test_now_is_not_the_past() -> None:
    assert not begins_in_the_past(None) and not begins_in_the_past("now")


def survey(replay: Replay, logs: Sequence[LogInfo], away: Sequence[str] = (), copies: int = 1) -> None:
    replay.surveyed(Survey(list(logs), tuple(away), copies, True))


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
    assert step_of(replay) is Step.SURVEY
    survey(replay, [])
    assert step_of(replay) is Step.SUBSCRIBE
    replay.subscribed()
    assert step_of(replay) is Step.SURVEY
    survey(replay, [])
    assert step_of(replay) is Step.LIVE


def test_it_subscribes_near_the_ends_and_reads_the_rest_up_to_them() -> None:
    replay, far = Replay("start", nothing_lost), 3 * REPLAY_NEAR_EVENTS
    survey(replay, [info("ann", 0, far)])
    replay.taken(replay.next_read[0], Chunk([], 0, REPLAY_NEAR_EVENTS, far))
    assert step_of(replay) is Step.READ
    replay.taken(replay.next_read[0], Chunk([], 0, 2 * REPLAY_NEAR_EVENTS, far + 10))
    assert step_of(replay) is Step.READ, "the log has grown"
    replay.taken(replay.next_read[0], Chunk([], 0, 2 * REPLAY_NEAR_EVENTS + 10, far + 10))
    assert step_of(replay) is Step.SUBSCRIBE
    replay.subscribed()
    survey(replay, [info("ann", 0, far + 20), info("bob", 5, 6)])
    assert step_of(replay) is Step.READ
    assert replay.next_read == (LogName("ann", 1, 0, "q"), 2 * REPLAY_NEAR_EVENTS + 10, False)
    replay.taken(replay.next_read[0], Chunk([], 0, far + 20, far + 99))
    assert replay.next_read == (LogName("bob", 1, 0, "q"), 5, False)
    replay.taken(replay.next_read[0], Chunk([], 5, 6, 6))
    assert step_of(replay) is Step.LIVE


def test_the_log_whose_last_event_is_the_oldest_comes_next() -> None:
    replay = Replay("start", nothing_lost)
    survey(replay, [info("ann", 0, 9000, time=5), info("bob", 0, 9000, time=3)])
    assert replay.next_read[0].broker == "bob"
    row = Row(0, 1, 7, "o", 0, b"", "q", b"", {}, True, b"")
    replay.taken(replay.next_read[0], Chunk([row], 0, 1, 9000))
    assert replay.next_read[0].broker == "ann"


def test_a_number_is_a_position_in_the_only_log() -> None:
    replay = Replay(5, nothing_lost)
    survey(replay, [info("ann", 0, 9000)])
    name, position, _ = replay.next_read
    assert position == 5
    (row,) = rows_of(read(replay, name, Chunk([events(4, 3)], 0, 7, 9000)))
    assert [row.first + place for place in row.places()] == [5, 6], "of a row that begins before it"
    with pytest.raises(Refused, match="ann@1:0,bob@1:3"):
        survey(Replay(5, nothing_lost), [info("bob", 3, 9), info("ann", 0, 9)])


@pytest.mark.parametrize(
    ("start", "words"), [("ann@1:10", "ends at 9"), ("cyd@1:0", "no log cyd@1"), (10, "ends at 9")]
)
def test_a_place_that_does_not_exist_is_refused(start: str | int, words: str) -> None:
    with pytest.raises(Refused, match=words) as caught:
        survey(Replay(start, nothing_lost), [info("ann", 0, 9)])
    assert caught.value.code == ErrorCode.NOT_FOUND


def test_what_retention_took_is_told() -> None:
    told: list[int] = []
    replay = Replay("ann@1:5", lambda count, reason: told.append(count))
    survey(replay, [info("ann", 20, 30000)])
    name, position, _ = replay.next_read
    assert position == 5
    replay.taken(name, Chunk([], 20, 25, 30000))
    replay.taken(name, Chunk([], 40, 45, 30000))
    replay.taken(name, Chunk([], 40, 50, 30000))
    assert told == [15, 15]


def test_a_copy_that_ends_early_ends_the_reading() -> None:
    replay = Replay("start", nothing_lost)
    survey(replay, [info("ann", 0, 9000)])
    replay.taken(replay.next_read[0], Chunk([], 0, 0, 9000))
    assert replay.step is Step.SUBSCRIBE


def events(first: int, count: int = 10, time: int = 7, number: int | None = None) -> Row:
    """A row, of the producer "p" if it is numbered."""
    batch = make_batch(["q"], {}, [b"x"] * count)
    parts = (first, count, time, "o", 1000 + first, b"", "q", batch.lengths, {}, True, batch.records)
    return Row(*parts) if number is None else Row(*parts, "p", 1, number)


def test_a_publisher_that_moved_and_came_back_is_read_in_its_order() -> None:
    replay = Replay("start", nothing_lost)
    survey(replay, [info("ann", 0, 10, time=1), info("bob", 0, 5, time=4)])
    ann, bob = LogName("ann", 1, 0, "q"), LogName("bob", 1, 0, "q")
    first, last = events(0, 5, 1, 0), events(5, 5, 9, 10)
    assert rows_of(read(replay, ann, Chunk([first, last], 0, 10, 10))) == [first], "bob may have older ones"
    between = events(0, 5, 4, 5)
    assert rows_of(read(replay, bob, Chunk([between], 0, 5, 5))) == [between, last]
    assert step_of(replay) is Step.SUBSCRIBE


def test_now_begins_at_the_ends_and_in_new_logs_at_their_beginnings() -> None:
    replay = Replay("now", nothing_lost)
    survey(replay, [info("ann", 0, 9000)], away=["cyd"], copies=2)
    assert step_of(replay) is Step.SUBSCRIBE
    replay.subscribed()
    survey(replay, [info("ann", 0, 9000), info("bob", 0, 5), info("cyd", 0, 100)])
    assert replay.next_read == (LogName("bob", 1, 0, "q"), 0, False) and replay.begins["cyd@1"] == 100


ANN = LogName("ann", 1, 0, "q")
LOG = [events(10 * place) for place in range(1000)]


def live_at(end: int, told: list[str] | None = None) -> Replay:
    """A replay of ann's log that has gone live."""
    replay = Replay("start", nothing_lost if told is None else lambda count, reason: told.append(f"{count} {reason}"))
    survey(replay, [info("ann", 0, end)])
    for _ in range(2):
        if step_of(replay) is Step.READ:
            replay.taken(ANN, Chunk([], 0, end, end))
        if step_of(replay) is Step.SUBSCRIBE:
            replay.subscribed()
            survey(replay, [info("ann", 0, end)])
    assert step_of(replay) is Step.LIVE
    return replay


def lost_up_to(replay: Replay, end: int, first: int = 0) -> None:
    """Something was lost, and the log of ann ends there by now."""
    replay.lost()
    assert step_of(replay) is Step.SUBSCRIBE and replay.is_subscribed
    replay.subscribed()
    survey(replay, [info("ann", first, end)])


def test_after_a_loss_it_reads_what_was_not_handed_out() -> None:
    replay = live_at(0)
    assert list(replay.delivered.fresh("ann@1", 0, [0, 1, 2])) == [0, 1, 2]
    assert list(replay.delivered.fresh("ann@1", 0, [10, 11])) == [10, 11]
    lost_up_to(replay, 30)
    assert replay.next_read == (ANN, 3, False), "the cursor follows what has no hole"
    rows = rows_of(read(replay, ANN, Chunk(LOG[:3], 0, 30, 30)))
    found = [[row.first + place for place in row.places()] for row in rows]
    assert found == [list(range(3, 10)), list(range(12, 20)), list(range(20, 30))]
    assert step_of(replay) is Step.LIVE
    assert replay.delivered.fresh("ann@1", 0, [28, 29, 30]) == [30], "what was read does not come live as well"


def test_what_came_live_behind_the_end_is_no_reason_to_read() -> None:
    replay = live_at(0)
    replay.delivered.fresh("ann@1", 0, range(40))
    lost_up_to(replay, 30)
    assert step_of(replay) is Step.LIVE


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        (range(10, 1000), []),
        (range(10, 999), ["0"]),
        ([*range(10, 500), *range(501, 4000)], ["0"]),
        (range(11, 1500), ["0"]),
        (range(999, 1001), ["0"]),
    ],
)
def test_what_retention_took_after_it_was_handed_out_is_no_loss(heard: Sequence[int], told: list[str]) -> None:
    losses: list[str] = []
    replay = live_at(10, losses)
    replay.delivered.fresh("ann@1", 0, heard)
    lost_up_to(replay, 10_000, 1000)
    replay.taken(ANN, Chunk(LOG[100:], 1000, 10_000, 10_000))
    assert [text.split()[0] for text in losses] == told and step_of(replay) is Step.LIVE


def test_what_came_before_a_silence_need_not_be_looked_through() -> None:
    losses: list[str] = []
    replay = live_at(0, losses)
    assert replay.was_quiet()
    lost_up_to(replay, 10_000, 500)
    assert replay.next_read == (ANN, 0, True)
    replay.taken(ANN, Chunk([], 500, 9_000, 10_000), passes=True)
    assert replay.next_read == (ANN, 9_000, True) and not losses, "what retention took was older"
    assert [row.first for row in rows_of(read(replay, ANN, Chunk(LOG[900:], 500, 10_000, 10_000)))] == [
        *range(9_000, 10_000, 10)
    ]


def test_what_retention_took_since_a_silence_is_a_loss() -> None:
    losses: list[str] = []
    replay = live_at(0, losses)
    assert replay.was_quiet()
    lost_up_to(replay, 10_000, 500)
    replay.taken(ANN, Chunk([], 500, 500, 10_000), passes=True)
    assert replay.next_read == (ANN, 500, True) and len(losses) == 1


def test_a_silence_says_nothing_of_logs_that_cannot_be_read_nor_of_those_that_come_later() -> None:
    replay = live_at(0)
    replay.look_again()
    survey(replay, [info("ann", 0, 0)], away=["bob"], copies=2)
    assert not replay.was_quiet()
    replay.look_again()
    survey(replay, [info("ann", 0, 0), info("bob", 0, 20)])
    assert replay.next_read == (LogName("bob", 1, 0, "q"), 0, False) and not replay.was_quiet()
    replay.taken(replay.next_read[0], Chunk([], 0, 20, 20))
    assert replay.was_quiet()
    replay.lost()
    replay.subscribed()
    survey(replay, [info("bob", 0, 30), info("cyd", 0, 10)])
    assert replay.next_read == (LogName("bob", 1, 0, "q"), 20, True)
    replay.taken(replay.next_read[0], Chunk([], 0, 30, 30))
    assert replay.next_read == (LogName("cyd", 1, 0, "q"), 0, False)


def test_logs_that_are_back_are_read_and_others_are_not() -> None:
    told: list[str] = []
    replay = Replay("start", lambda count, reason: told.append(f"{count} {reason}"))
    survey(replay, [info("ann", 0, 0)], away=["bob", "cyd"], copies=2)
    replay.subscribed()
    survey(replay, [info("ann", 0, 0)], away=["bob", "cyd"], copies=2)
    assert step_of(replay) is Step.LIVE and replay.away == ("bob", "cyd")
    assert told == ["0 brokers bob, cyd cannot be reached: what is in their logs alone comes when they are back"]
    replay.look_again()
    survey(replay, [info("ann", 0, 30), info("bob", 0, 20)], away=["cyd"], copies=2)
    assert replay.next_read == (LogName("bob", 1, 0, "q"), 0, False)
    replay.taken(replay.next_read[0], Chunk([], 0, 20, 20))
    assert step_of(replay) is Step.LIVE and len(told) == 1, "fewer than two: whatever was acknowledged is there"
    replay.look_again()
    survey(replay, [info("ann", 0, 30), info("bob", 0, 20)], away=["ann", "bob"], copies=2)
    assert len(told) == 2 and "ann, bob" in told[1]


def test_a_log_that_cannot_be_read_is_told_of_once_and_tried_again() -> None:
    told: list[str] = []
    replay = Replay("start", lambda count, reason: told.append(reason))
    survey(replay, [info("ann", 0, 9000)])
    replay.unreadable(replay.next_read[0], "nobody has it")
    assert step_of(replay) is Step.SUBSCRIBE
    replay.subscribed()
    for _ in range(2):
        survey(replay, [info("ann", 0, 9000)])
        assert step_of(replay) is Step.READ
        replay.unreadable(replay.next_read[0], "nobody has it")
        assert step_of(replay) is Step.LIVE and replay.away == ("ann",)
        replay.look_again()
    assert told == ["log ann@1 cannot be read, it is tried again every few seconds: nobody has it"]


def test_a_log_that_somebody_else_holds_is_read_on_when_that_one_is_back() -> None:
    told: list[str] = []
    replay = Replay("start", lambda count, reason: told.append(reason))
    survey(replay, [info("ann", 0, 9000)])
    name = replay.next_read[0]
    replay.taken(name, Chunk(LOG[:1], 0, 10, 9000))
    replay.unreadable(name, "bob, who has its only copy, died")
    replay.subscribed()
    survey(replay, [], away=["bob"])
    assert step_of(replay) is Step.LIVE and replay.delivered.keeps_old
    for _ in range(3):
        replay.look_again()
        survey(replay, [], away=["bob"])
        assert step_of(replay) is Step.LIVE and replay.away == ("bob",)
    replay.look_again()
    survey(replay, [info("ann", 0, 10)])
    assert step_of(replay) is Step.LIVE and replay.delivered.keeps_old, "a copy that has no more than what was read"
    replay.look_again()
    survey(replay, [info("ann", 0, 20)])
    assert step_of(replay) is Step.READ and replay.next_read == (name, 10, False) and not replay.delivered.keeps_old
    replay.taken(name, Chunk(LOG[1:2], 0, 20, 20))
    assert step_of(replay) is Step.LIVE
    replay.look_again()
    survey(replay, [info("ann", 0, 30)])
    assert step_of(replay) is Step.LIVE, "what it grows by comes live"

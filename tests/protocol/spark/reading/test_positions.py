"""Positions: offsets in and out of JSON, what one step reads, and how it is shared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client import LogInfo
from headgate.protocol.data import LogName
from headgate.protocol.spark.errors import BadOffsets
from headgate.protocol.spark.limits import PARTITIONS_MAX, RANGE_EVENTS_MAX, RANGE_EVENTS_MIN
from headgate.protocol.spark.reading import capped
from headgate.protocol.spark.reading.positions import (
    EARLIEST,
    LATEST,
    by_partition,
    offsets_from,
    ranges_between,
    ranks,
)


def log(broker: str, epoch: int, first: int, after: int) -> LogInfo:
    return LogInfo(LogName(broker, epoch, 0, "q"), first, after, 0, 0, 0, (broker,))


LOGS = by_partition([log("bob", 7, 0, 30), log("ann", 9, 10, 50), log("ann", 7, 5, 5)])


def test_logs_stand_in_the_order_of_epoch_and_broker() -> None:
    assert list(LOGS) == ["ann@7", "bob@7", "ann@9"]
    assert ranks(["z@10", "a@9", "a@10", "a@9"]) == {"a@9": 0, "a@10": 1, "z@10": 2}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("earliest", [5, 0, 10]),
        ("Latest", [5, 30, 50]),
        ('{"bob@7": 12}', [5, 12, 10]),
        ('{"1": 12, "2": -1}', [5, 12, 50]),
        ('{"ann@9": -2, "bob@7": 30}', [5, 30, 10]),
        ('{"ann@9": 3}', [5, 0, 3]),  # retention may have taken it: the reader will see
        ("{}", [5, 0, 10]),
    ],
)
def test_offsets(text: str, wanted: list[int]) -> None:
    assert list(offsets_from("startingOffsets", text, LOGS, EARLIEST).values()) == wanted


def test_logs_that_are_not_named_stand_where_the_caller_says() -> None:
    assert offsets_from("endingOffsets", '{"bob@7": 1}', LOGS, LATEST) == {"ann@7": 5, "bob@7": 1, "ann@9": 50}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("soon", "neither a word nor JSON"),
        ("[1]", "not a map"),
        ('{"cyd@7": 1}', "no log 'cyd@7'"),
        ('{"3": 1}', "no log '3'"),
        ('{"bob@7": "1"}', "no position"),
        ('{"bob@7": -3}', "no position"),
        ('{"bob@7": true}', "no position"),
        ('{"bob@7": 31}', "ends at 30"),
    ],
)
def test_bad_offsets_are_refused_by_the_options_name(text: str, word: str) -> None:
    with pytest.raises(BadOffsets, match="'startingOffsets'") as caught:
        offsets_from("startingOffsets", text, LOGS, EARLIEST)
    assert word in str(caught.value)


def test_a_trigger_takes_all_or_shares() -> None:
    assert capped({"a": 0, "b": 5}, {"a": 10, "b": 10}, None) == {"a": 10, "b": 10}
    assert capped({"a": 0, "b": 5}, {"a": 10, "b": 10}, 15) == {"a": 10, "b": 10}
    assert capped({"a": 0, "b": 5}, {"a": 10, "b": 10}, 3) == {"a": 2 + 0, "b": 5 + 1}
    assert capped({}, {"a": 10}, 4) == {"a": 4}
    assert capped({"gone": 7, "a": 3}, {"a": 2}, None) == {"gone": 7, "a": 3}


@given(
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 100)),
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 100)),
    st.integers(1, 300),
)
def test_a_share_never_goes_back_or_over_and_all_of_the_limit_is_used(
    start: dict[str, int], end: dict[str, int], events_max: int
) -> None:
    found = capped(start, end, events_max)
    waiting = {name: max(0, end.get(name, 0) - start.get(name, 0)) for name in {*start, *end}}
    taken = {name: found[name] - start.get(name, 0) for name in found}
    assert taken.keys() == waiting.keys()
    assert all(0 <= taken[name] <= waiting[name] for name in waiting)
    assert sum(taken.values()) == min(events_max, sum(waiting.values()))


def test_ranges_carry_the_rank_and_leave_out_what_is_empty() -> None:
    ranges = ranges_between(0, "q", {"ann@7": 5, "bob@7": 30}, {"ann@7": 5, "bob@7": 35, "ann@9": 4})
    assert [(one.name, one.rank, one.start, one.end) for one in ranges] == [
        (LogName("bob", 7, 0, "q"), 1, 30, 35),
        (LogName("ann", 9, 0, "q"), 2, 0, 4),
    ]
    assert ranges_between(0, "q", {"ann@7": 5}, {"ann@7": 5}) == []


@given(st.dictionaries(st.sampled_from(["a@1", "b@1", "a@2"]), st.integers(0, 20_000), min_size=1), st.integers(1, 50))
def test_pieces_cover_everything_once(end: dict[str, int], pieces: int) -> None:
    start = dict.fromkeys(list(end)[:1], 100)
    ranges = ranges_between(0, "q", start, end, pieces)
    for partition, last in end.items():
        mine = [(one.start, one.end) for one in ranges if one.name.partition == partition]
        assert all(low < high for low, high in mine)
        covered = [place for low, high in mine for place in (low, high)]
        if last > start.get(partition, 0):
            assert (covered[0], covered[-1]) == (start.get(partition, 0), last)
            assert covered[1:-1:2] == covered[2::2]
        else:
            assert not mine
    total = sum(one.end - one.start for one in ranges)
    if total >= pieces * RANGE_EVENTS_MIN:
        assert len(ranges) >= pieces


def test_a_large_log_is_read_by_several_tasks() -> None:
    pieces = ranges_between(0, "q", {"ann@1": 10}, {"ann@1": 10 + 3 * RANGE_EVENTS_MAX - 1})
    assert [piece.end - piece.start <= RANGE_EVENTS_MAX for piece in pieces] == [True] * 3
    assert (pieces[0].start, pieces[-1].end) == (10, 10 + 3 * RANGE_EVENTS_MAX - 1)
    huge = ranges_between(0, "q", {}, {"ann@1": 2 * RANGE_EVENTS_MAX * PARTITIONS_MAX})
    assert len(huge) == PARTITIONS_MAX


def test_logs_of_several_streams_are_told_apart() -> None:
    logs = [LogInfo(LogName("ann", 7, 0, stream), 0, 4, 0, 0, 0, ("ann",)) for stream in ("b", "a")]
    known = by_partition(logs, several=True)
    assert list(known) == ["a/ann@7", "b/ann@7"]
    assert [piece.name.stream for piece in ranges_between(0, "a", {}, {"a/ann@7": 4, "b/ann@7": 2})] == ["a", "b"]

"""Fences: what starts shut out, checked against a dumb twin that remembers every opening; and as a disk keeps them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.limits import FENCE_STARTS_MAX
from headgate.broker.core.log.fences import NO_FENCE, Ballot, Fence, Start, decode_fence, encode_fence
from headgate.protocol.data import LogKind, LogName


def log(broker: str, epoch: int = 1) -> LogName:
    return LogName(broker, epoch, int(LogKind.EVENTS), "quotes")


HISTORIES = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), min_size=1, max_size=FENCE_STARTS_MAX)
"""Openings in their order: how many events it went on by before, and whose log."""


def starts_of(history: list[tuple[int, str]]) -> list[Start]:
    number, starts = 0, []
    for generation, (step, broker) in enumerate(history, 1):
        number += step
        starts.append(Start(number, generation, broker, 1))
    return starts


@given(HISTORIES, st.integers(0, 40), st.integers(1, 3), st.data())
def test_a_row_is_shut_out_by_a_newer_opening_of_another_log_that_begins_before_its_end(
    history: list[tuple[int, str]], number: int, count: int, data: st.DataObject
) -> None:
    starts = starts_of(history)
    fence = NO_FENCE.learn(data.draw(st.permutations(starts)))
    for broker in "abc":
        own = max((one.ballot for one in starts if one.broker == broker and one.number <= number), default=Ballot())
        newer = [one for one in starts if one.ballot > own and one.broker != broker]
        assert fence.shuts_out(log(broker), number, number + count) == any(one.number < number + count for one in newer)


@given(HISTORIES, st.data())
def test_starts_are_learnt_in_any_order_and_from_several_brokers(
    history: list[tuple[int, str]], data: st.DataObject
) -> None:
    starts = starts_of(history)
    cut = data.draw(st.integers(0, len(starts)))
    here, there = NO_FENCE.learn(starts[:cut]), NO_FENCE.learn(starts[cut:])
    assert here.learn(there.starts) == there.learn(here.starts) == NO_FENCE.learn(starts)


def test_the_one_number_that_two_logs_have_stays_in_one() -> None:
    fence = NO_FENCE.learn([Start(0, 1, "a", 1), Start(5, 2, "b", 1)])
    assert not fence.shuts_out(log("a"), 4, 5), "it was known when b opened the producer"
    assert fence.shuts_out(log("a"), 5, 6) and fence.shuts_out(log("a"), 4, 6)
    assert not fence.shuts_out(log("b"), 5, 6)
    renewed = fence.learn([Start(5, 3, "a", 1)])
    assert renewed.shuts_out(log("b"), 5, 6) and not renewed.shuts_out(log("a"), 5, 6)


def test_rows_of_a_log_from_before_a_backup_are_shut_out_by_those_of_its_later_epoch() -> None:
    fence = NO_FENCE.learn([Start(0, 1, "a", 1), Start(3, 2, "a", 9)])
    assert fence.shuts_out(log("a", 1), 3, 4) and not fence.shuts_out(log("a", 9), 3, 4)


def test_there_is_a_bound_and_openings_of_one_log_in_turn_do_not_push_out_others() -> None:
    others = [Start(0, 1, "a", 1), Start(5, 2, "b", 1)]
    many = [Start(5 + number, 2 + number, "c", 1) for number in range(1, 3 * FENCE_STARTS_MAX)]
    fence = NO_FENCE
    for one in [*others, *many]:
        fence = fence.learn([one])
    assert len(fence.starts) == FENCE_STARTS_MAX
    assert {*others, many[0], many[-1]} <= set(fence.starts)
    for number in range(2 * FENCE_STARTS_MAX):
        fence = fence.learn([Start(500, 500 + number, "ab"[number % 2], 1)])
    assert len(fence.starts) <= FENCE_STARTS_MAX


def test_what_says_nothing_more_is_left_out() -> None:
    fence = NO_FENCE.learn([Start(4, generation, "a", 1) for generation in range(1, 20)])
    assert fence.starts == (Start(4, 19, "a", 1),)


@given(HISTORIES, st.booleans())
def test_a_disk_gives_back_what_it_was_given(history: list[tuple[int, str]], is_unsure: bool) -> None:
    starts = starts_of(history)
    fence = Fence(starts[-1].ballot, (), is_unsure).learn(starts)
    assert decode_fence(encode_fence(fence)) == fence
    assert decode_fence(b"") == NO_FENCE

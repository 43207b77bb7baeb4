"""The mailbox of a durable subscription, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from headgate.broker.core.durable import (
    Cursor,
    DurableLimits,
    DurableState,
    HandedOut,
    Mailbox,
    Place,
    Run,
    count_of,
    decode_state,
    encode_state,
    join,
)
from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.messages import AckVerb

ANN, BOB = Place("ann", 1), Place("bob", 7)
ACK, NAK, PROGRESS, TERM, SKIP = range(5)


def mailbox(**fields: object) -> Mailbox:
    return Mailbox(DurableState("orders", generation=1, **fields), 0.0)  # type: ignore[arg-type]


def tell(box: Mailbox, runs: Sequence[Run], upto: int, start: int = 0, place: Place = ANN, first: int = 0) -> int:
    missed = box.fed(place, first, start, upto, runs, [0] * sum(b - a for a, b in runs), 1_000_000, 0.0)
    box.validate()
    return missed


def write(box: Mailbox) -> DurableState:
    snapshot = box.snapshot()
    box.written(snapshot)
    return snapshot


def hand_out(box: Mailbox, now: float = 0.0) -> list[HandedOut]:
    box.reserve()
    write(box)
    out = box.hand_out(now)
    box.validate()
    return out


def settle(
    box: Mailbox, client: str, verb: int, *spans: int, delay: float | None = None, now: float = 0.0
) -> list[int]:
    stale = box.settle(client, verb, spans, delay, "poison", now)
    box.validate()
    return stale


FIRST = (1 << 32) + 1


def test_a_limit_counts_nothing_that_is_skipped() -> None:
    box = mailbox()
    tell(box, [(0, 6)], 6)
    box.attach("x", 9, 0.0, limit=2)
    assert hand_out(box) == [HandedOut("x", FIRST, (), ANN, [(0, 2)])]
    settle(box, "x", ACK, FIRST, FIRST)
    assert hand_out(box) == []
    settle(box, "x", SKIP, FIRST + 1, FIRST + 1)
    assert hand_out(box) == [HandedOut("x", FIRST + 2, (), ANN, [(2, 3)])]
    assert (box.settled, box.unacked) == (2, 1)


def test_events_go_out_in_order_and_are_settled() -> None:
    box = mailbox()
    assert box.place_of(ANN) is None
    tell(box, [(0, 3), (5, 7)], 10)
    assert (box.waiting, box.unacked, box.place_of(ANN)) == (5, 0, 10)
    assert box.attach("x", 4, 0.0) == []
    assert hand_out(box) == [HandedOut("x", FIRST, (), ANN, [(0, 3), (5, 6)])]
    assert (box.waiting, box.unacked, box.redelivered) == (1, 4, 0)
    assert hand_out(box) == []
    assert settle(box, "x", ACK, FIRST + 1, FIRST + 1) == []
    assert hand_out(box) == [HandedOut("x", FIRST + 4, (), ANN, [(6, 7)])]
    assert write(box).cursors == {ANN: Cursor(10, ((0, 1), (2, 3), (5, 7)))}
    assert box.position() == {ANN: 0}
    assert settle(box, "x", ACK, 0, FIRST + 4) == []
    assert write(box).cursors == {ANN: Cursor(10)}
    assert box.position() == {ANN: 10}


def test_nothing_goes_out_before_its_mark_is_written() -> None:
    box = mailbox()
    tell(box, [(0, 5)], 5)
    box.attach("x", 10, 0.0)
    assert box.hand_out(0.0) == []
    assert box.reserve()
    assert box.dirty
    snapshot = box.snapshot()
    assert not box.dirty
    assert box.hand_out(0.0) == []
    box.written(snapshot)
    assert not box.reserve()
    assert [one.runs for one in box.hand_out(0.0)] == [[(0, 5)]]


def test_acknowledgements_of_others_and_old_ones_are_stale() -> None:
    box = mailbox(sharing="shared")
    tell(box, [(0, 10)], 10)
    box.attach("x", 5, 0.0)
    box.attach("y", 5, 0.0)
    first, second = hand_out(box)
    assert settle(box, str(second.client), ACK, first.first, second.first) == [first.first, first.first + 4]
    assert settle(box, "nobody", ACK, 1, 3) == [1, 3]
    assert settle(box, str(second.client), ACK, second.first, second.first + 1) == [second.first, second.first]


def test_a_client_that_leaves_has_its_events_handed_out_again() -> None:
    box = mailbox(sharing="failover")
    tell(box, [(0, 6)], 6)
    box.attach("x", 3, 0.0)
    box.attach("y", 9, 0.0)
    hand_out(box)
    box.detach("x", 1.0)
    assert hand_out(box) == [
        HandedOut("y", FIRST + 3, (2, 2, 2), ANN, [(0, 3)]),
        HandedOut("y", FIRST + 6, (), ANN, [(3, 6)]),
    ]
    assert box.redelivered == 3


def test_what_a_client_had_not_begun_with_when_it_left_was_no_attempt() -> None:
    """Of five it has settled the first: it may have died of the second, and of no other."""
    box = mailbox(sharing="failover", max_deliver=2)
    tell(box, [(0, 5)], 5)
    counts = []
    for turn in range(4):
        box.attach(f"x{turn}", 5, 0.0)
        (out,) = hand_out(box)
        counts.append(out.counts)
        if not turn:
            settle(box, "x0", ACK, out.first, out.first)
        box.detach(f"x{turn}", 1.0)
        box.validate()
    assert counts == [(), (2, 2, 2, 2), (2, 2, 2), (2, 2)]
    assert [(letter.position, letter.delivered) for letter in box.take_dead()] == [(1, 2), (2, 2), (3, 2)]


def test_a_dead_letter_goes_back_to_the_client_of_its_key() -> None:
    box = mailbox(sharing="key:symbol")
    box.attach("x", 100, 0.0)
    box.attach("y", 100, 0.0)
    box.fed(ANN, 0, 0, 40, [(0, 40)], [at % 20 for at in range(40)], 0, 0.0)
    whose = {}
    for out in hand_out(box):
        positions = [position for run in out.runs for position in range(*run)]
        whose |= dict.fromkeys(positions, out.client)
        settle(box, str(out.client), TERM, out.first, out.first + len(positions) - 1)
    assert set(whose.values()) == {"x", "y"} and box.replay_dead(lambda letter: True) == 40
    again = {position: out.client for out in hand_out(box) for run in out.runs for position in range(*run)}
    assert again == whose


def test_an_exclusive_one_is_refused_or_taken_over() -> None:
    box = mailbox()
    box.attach("x", 3, 0.0)
    with pytest.raises(Refused, match=r"exclusive.*client x.*--takeover") as refused:
        box.attach("y", 3, 0.0)
    assert refused.value.code == ErrorCode.DUPLICATE
    assert box.attach("y", 3, 0.0, takeover=True) == ["x"]
    assert box.clients == 1


def test_what_is_not_acknowledged_in_time_goes_out_again_and_is_given_up_at_last() -> None:
    box = mailbox(max_deliver=2, ack_wait=5.0)
    tell(box, [(0, 1)], 1)
    box.attach("x", 3, 0.0)
    hand_out(box)
    assert box.next_deadline() == 5.0
    box.wake(5.0)
    (again,) = hand_out(box, 5.0)
    assert again.counts == (2,)
    box.wake(10.0)
    assert hand_out(box, 10.0) == []
    (dead,) = box.take_dead()
    assert dead[:3] == (ANN, 0, 2)
    assert "2 times: not acknowledged within 5 s" in dead.reason
    assert box.take_dead() == []
    assert write(box).dead == (dead,)
    assert box.replay_dead(lambda letter: letter.position == 0) == 1
    (back,) = hand_out(box, 10.0)
    assert (back.runs, back.counts) == ([(0, 1)], (2,))
    assert write(box).dead == ()


def test_a_restart_hands_out_what_is_owed_first_and_flags_it() -> None:
    box = mailbox()
    tell(box, [(0, 4), (6, 9)], 10)
    box.attach("x", 5, 0.0)
    hand_out(box)
    settle(box, "x", ACK, FIRST + 1, FIRST + 2)
    state = write(box)
    state.generation = 2
    box = Mailbox(state, 0.0)
    assert (box.waiting, box.place_of(ANN)) == (3, 0)
    tell(box, [(0, 4), (6, 9), (10_000, 10_001)], 10_001)
    box.attach("y", 9, 0.0)
    first, second = hand_out(box)
    assert first == HandedOut("y", (2 << 32) + 1, (2, 2, 2), ANN, [(0, 1), (3, 4), (6, 7)])
    assert (second.runs, second.counts) == ([(7, 9), (10_000, 10_001)], (2, 2, 1))


def test_retention_is_counted_once() -> None:
    box = mailbox(cursors={ANN: Cursor(10, ((2, 5),))}, handed={ANN: 10})
    assert tell(box, [], 20, start=15, first=15) == 3 + 5
    assert tell(box, [(20, 22)], 25, start=15, first=15) == 0
    assert tell(box, [(20, 22), (30, 31)], 40, start=20, first=21) == 1
    assert box.waiting == 2


def test_keys_stay_with_their_client() -> None:
    box = mailbox(sharing="key:symbol")
    box.attach("x", 100, 0.0)
    box.attach("y", 100, 0.0)
    box.fed(ANN, 0, 0, 100, [(0, 100)], [at % 10 for at in range(100)], 0, 0.0)
    out = hand_out(box)
    assert sorted(one.client for one in out) == ["x", "y"]
    whose = {position % 10: one.client for one in out for run in one.runs for position in range(*run)}
    for one in out:
        assert all(whose[position % 10] == one.client for run in one.runs for position in range(*run))


def test_a_seek_lets_go_and_flags_what_was_handed_out() -> None:
    box = mailbox()
    tell(box, [(0, 5)], 5)
    box.attach("x", 5, 0.0)
    hand_out(box)
    rewinds = box.state.rewinds
    box.seek({ANN: 2})
    assert (box.unacked, box.waiting, box.place_of(ANN), box.state.rewinds) == (0, 0, 2, rewinds + 1)
    tell(box, [(2, 5)], 5, start=2)
    assert settle(box, "x", ACK, FIRST, FIRST) == [FIRST, FIRST]
    assert [one.counts for one in hand_out(box)] == [(2, 2, 2)]


def test_work_in_progress_puts_the_deadline_off() -> None:
    box = mailbox(ack_wait=5.0)
    tell(box, [(0, 3)], 3)
    box.attach("x", 3, 0.0)
    hand_out(box)
    assert settle(box, "x", PROGRESS, FIRST + 1, FIRST + 1, now=4.0) == []
    box.wake(5.0)
    assert [(one.runs, one.counts) for one in hand_out(box, 5.0)] == [([(0, 1)], (2,))]
    assert settle(box, "x", PROGRESS, FIRST, FIRST + 2, now=5.0) == [FIRST, FIRST]
    box.wake(10.0)
    assert [one.runs for one in hand_out(box, 10.0)] == [[(0, 3)]]


def test_a_slow_client_is_not_late_with_what_it_has_not_begun_with() -> None:
    box = mailbox(ack_wait=5.0)
    tell(box, [(0, 6)], 6)
    box.attach("x", 6, 0.0)
    hand_out(box)
    for number in range(3):
        assert settle(box, "x", ACK, FIRST + number, FIRST + number, now=4.0 * (number + 1)) == []
        box.wake(box.next_deadline())
        assert hand_out(box, 4.0 * (number + 1)) == []
    assert settle(box, "x", ACK, FIRST + 4, FIRST + 4, now=14.0) == []
    box.wake(16.9)
    assert hand_out(box, 16.9) == []
    box.wake(17.0)
    # It passed that one over: its time began when it settled the one before it.
    assert [one.runs for one in hand_out(box, 17.0)] == [[(3, 4)]]
    box.wake(19.0)
    assert [one.runs for one in hand_out(box, 19.0)] == [[(5, 6)]]


def test_a_client_that_says_something_of_a_number_it_never_had_is_late_all_the_same() -> None:
    box = mailbox(ack_wait=5.0)
    tell(box, [(0, 2)], 2)
    box.attach("x", 1, 0.0)
    hand_out(box)
    assert settle(box, "x", ACK, 0, 1 << 62) == []
    assert [one.runs for one in hand_out(box)] == [[(1, 2)]]
    box.wake(5.0)
    assert [one.runs for one in hand_out(box, 5.0)] == [[(1, 2)]]


def test_a_late_confirmation_confirms_no_more_than_was_written() -> None:
    box = mailbox()
    tell(box, [(0, 2)], 2)
    box.attach("x", 9, 0.0)
    box.reserve()
    early = box.snapshot()
    far = 10_000_000
    tell(box, [(far, far + 1)], far + 1, start=2)
    hand = box.state.handed[ANN]
    assert hand < far
    box.written(early)
    assert [one.runs for one in box.hand_out(0.0)] == [[(0, 2)]]
    assert box.reserve()
    box.written(early)
    assert box.hand_out(0.0) == []
    write(box)
    assert [one.runs for one in box.hand_out(0.0)] == [[(far, far + 1)]]


def test_what_an_amendment_adds_goes_out_when_its_mark_is_written_and_survives_older_states() -> None:
    box = mailbox()
    tell(box, [], 20)
    before = write(box)
    box.attach("x", 9, 0.0)
    box.amended(replace(before, version=2, condition="a = 1"), {ANN: [(3, 5), (19, 25)]})
    assert (box.waiting, box.place_of(ANN)) == (3, 20)
    assert box.hand_out(0.0) == []
    assert box.reserve()
    after = write(box)
    assert [(one.runs, one.counts) for one in box.hand_out(0.0)] == [([(3, 5), (19, 20)], ())]
    assert join(after, before).cursors == {ANN: Cursor(20, ((3, 5), (19, 20)))}


def test_what_is_written_with_each_state_is_bounded() -> None:
    box = Mailbox(DurableState("orders", generation=1), 0.0, DurableLimits(owed_runs=3, hand_out_events=2))
    tell(box, [(2 * at, 2 * at + 1) for at in range(20)], 40)
    box.attach("x", 100, 0.0)
    assert box.unacked == 0
    hand_out(box)
    assert box.unacked == 4
    box = Mailbox(DurableState("orders", generation=1), 0.0, DurableLimits(owed_events=5))
    tell(box, [(0, 20)], 20)
    box.attach("x", 100, 0.0)
    hand_out(box)
    assert box.unacked == 5


def test_a_full_mailbox_takes_facts_again_when_half_of_it_is_handed_out() -> None:
    box = Mailbox(DurableState("orders", generation=1), 0.0, DurableLimits(waiting_runs=4))
    tell(box, [(2 * at, 2 * at + 1) for at in range(4)], 8)
    assert (box.is_full, box.wants_feed) == (True, False)
    tell(box, [(8, 9)], 9, start=8)
    assert box.place_of(ANN) == 8
    box.attach("x", 2, 0.0)
    hand_out(box)
    assert box.wants_feed
    tell(box, [(8, 9)], 9, start=8)
    assert box.place_of(ANN) == 9


def test_work_is_shared_evenly_and_late_logs_wait() -> None:
    box = mailbox(sharing="shared")
    for client in "abcd":
        box.attach(client, 500, 0.0)
    box.fed(BOB, 0, 0, 400, [(0, 400)], [], 9_000_000, 0.0)
    box.fed(ANN, 0, 0, 400, [(0, 400)], [], 1_000_000, 0.0)
    assert box.oldest_seconds(11_000_000) == 10.0
    out = hand_out(box)
    assert [(one.client, one.place, one.runs) for one in out[:4]] == [
        ("a", ANN, [(0, 100)]),
        ("b", ANN, [(100, 200)]),
        ("c", ANN, [(200, 300)]),
        ("d", ANN, [(300, 400)]),
    ]
    assert [one.place for one in out[4:]] == [BOB] * 4


def test_a_key_finds_its_client_again_and_a_slow_client_holds_up_no_other() -> None:
    def whose(box: Mailbox) -> dict[int, object]:
        keys = {position: position % 7 for position in range(70)}
        box.fed(ANN, 0, 0, 70, [(0, 70)], list(keys.values()), 0, 0.0)
        return {keys[at]: one.client for one in hand_out(box) for run in one.runs for at in range(*run)}

    box = mailbox(sharing="key:symbol")
    for client in "abc":
        box.attach(client, 100, 0.0)
    first = whose(box)
    assert len(set(first.values())) > 1
    box = mailbox(sharing="key:symbol")
    for client in "cab":
        box.attach(client, 100, 0.0)
    assert whose(box) == first
    slow = first[0]
    box = mailbox(sharing="key:symbol")
    for client in "abc":
        box.attach(client, 1 if client == slow else 100, 0.0)
    got = whose(box)
    assert {key for key, client in got.items() if client != slow} == {key for key in first if first[key] != slow}
    assert box.unacked == 1 + sum(10 for client in first.values() if client != slow)


def test_however_clients_acknowledge_the_state_can_be_kept() -> None:
    state = DurableState("orders", generation=1, max_unacked=65_536, sharing="shared", ack_wait=1.0, starts={ANN: 0})
    box = Mailbox(state, 0.0)
    for client in range(4):
        box.attach(client, 65_536, 0.0)
    for start in range(0, 300_000, 1_000):
        box.fed(ANN, 0, start, start + 1_000, [(start, start + 1_000)], (), 1, 0.0)

    def handed(now: float) -> list[HandedOut]:
        found: list[HandedOut] = []
        while box.reserve():
            box.written(box.snapshot())
            while out := box.hand_out(now):
                found += out
        return found

    for out in handed(0.0):
        even = range(out.first, out.first + count_of(out.runs), 2)
        box.settle(out.client, AckVerb.ACK, [number for at in even for number in (at, at)], None, "", 0.5)
    box.wake(5.0)
    for out in handed(5.0):
        some = range(out.first, out.first + count_of(out.runs), 4)
        box.settle(out.client, AckVerb.NAK, [number for at in some for number in (at, at)], 0.0, "", 5.5)
    handed(5.5)
    kept = decode_state(encode_state(box.snapshot()))
    assert sum(count_of(cursor.owed) for cursor in kept.cursors.values()) > 10_000

"""Our own keys: gained, fetched, ready, handed on, taken back."""

from __future__ import annotations

from headgate.broker.core.keyspace import RING_SIZE, Arc
from headgate.broker.core.kv import View
from headgate.broker.core.kv.items import Items
from headgate.broker.core.kv.limits import FETCH_AGAIN_SECONDS, FETCH_ANSWER_SECONDS, HANDOVER_SECONDS, SETTLE_SECONDS
from headgate.broker.core.kv.messages import Verdict
from headgate.broker.core.kv.ownership import Ownership
from headgate.broker.core.kv.replication import Replicas
from headgate.broker.core.timers import Timers
from tests.support.keyed_parts import Kind, Sent

ME, BEFORE, FIRST, SECOND, THIRD = 100, 50, 200, 300, 400


class OwnershipWith(Ownership):
    """Has a whole copy of what it gains, or none, as the test says."""

    def __init__(self, test: Own, linked: dict[int, None], sent: Sent, timers: Timers) -> None:
        items = Items(sent, timers)
        super().__init__(ME, linked, items, Replicas(items, linked, sent, timers, 2.5), sent, timers, 2.5)
        self._test = test

    def whole_for(self, asker: int | None, now: float) -> list[Arc]:
        return [Arc(0, 0)] if self._test.copy else []

    def fingerprint(self, stretch: Arc) -> tuple[int, int]:
        return 3, 33


class Own:
    """An ownership, what it sends, and whether it has a whole replica of what it gains."""

    def __init__(self, *, copy: bool = False) -> None:
        self.sent = Sent()
        self.copy = copy
        self.linked: dict[int, None] = dict.fromkeys((FIRST, SECOND, THIRD))
        self.timers = Timers()
        self.own = OwnershipWith(self, self.linked, self.sent, self.timers)

    def view(self, after: int, *siblings: int, now: float = 0.0, certain: bool = False, further: tuple[int, ...] = ()):  # type: ignore[no-untyped-def]
        self.own.set_view(View(after, ME, siblings, True, certain, further), now)
        self.own.validate()

    def fetched(self) -> tuple[int, int]:
        """Who was asked last, and the number of the question."""
        broker, kind, body = self.sent.take()[-1]
        assert kind is Kind.FETCH
        return broker, body[0]

    def answer(self, verdict: int, now: float, last: bool = True) -> None:
        broker, number = self.fetched()
        self.own.paged(broker, number, last, verdict, now)
        self.own.validate()


def test_who_is_certain_is_ready_at_once_and_confirms_at_once() -> None:
    it = Own()
    it.view(ME, now=7.0, certain=True)
    assert it.own.ready == Arc(ME, ME)
    assert it.own.confirm_from(Arc(3, 9)) == 7.0


def test_who_does_not_serve_owns_nothing() -> None:
    it = Own()
    it.own.set_view(View(BEFORE, ME, (FIRST,), False), 0.0)
    assert it.own.own is None
    assert it.own.ready is None


def test_who_joins_fetches_from_the_first_sibling_and_confirms_a_lease_later() -> None:
    it = Own()
    it.view(BEFORE, FIRST, SECOND)
    assert it.sent.messages == [(FIRST, Kind.FETCH, [1, BEFORE, ME, False, False, 0, 0])]
    assert (it.own.own, it.own.ready) == (Arc(BEFORE, ME), None)
    it.answer(Verdict.WHOLE, 0.2)
    assert it.own.ready == Arc(BEFORE, ME)
    assert it.own.confirm_from(Arc(60, 70)) == 0.2 + 2.5


def test_it_is_ready_with_the_last_page_only() -> None:
    it = Own()
    it.view(BEFORE, FIRST)
    broker, number = it.fetched()
    it.own.paged(broker, number, False, Verdict.WHOLE, 0.1)
    assert it.own.ready is None
    it.own.paged(SECOND, number, True, Verdict.WHOLE, 0.2)
    it.own.paged(broker, number + 1, True, Verdict.WHOLE, 0.2)
    assert it.own.ready is None
    it.own.paged(broker, number, True, Verdict.WHOLE, 0.2)
    assert it.own.ready is not None


def test_a_whole_replica_is_compared_with_one_sibling_and_then_ready() -> None:
    it = Own(copy=True)
    it.view(BEFORE, FIRST)
    assert it.sent.messages[0][2] == [1, BEFORE, ME, False, True, 3, 33]
    it.answer(Verdict.PARTIAL, 0.1)
    assert it.own.ready is not None


def test_a_whole_replica_and_nobody_left_is_ready_at_once() -> None:
    it = Own(copy=True)
    it.view(BEFORE)
    assert it.own.ready == Arc(BEFORE, ME)


def test_parts_only_and_the_next_is_asked_and_those_after_the_siblings_too() -> None:
    it = Own()
    it.view(BEFORE, FIRST, SECOND, further=(THIRD,))
    it.answer(Verdict.PARTIAL, 0.1)
    it.answer(Verdict.PARTIAL, 0.2)
    assert it.own.ready is None
    assert it.sent.messages[-1][0] == THIRD
    it.answer(Verdict.WHOLE, 0.3)
    assert it.own.ready is not None


def test_when_nobody_has_a_whole_copy_the_parts_of_all_are_all_there_is() -> None:
    it = Own()
    it.view(BEFORE, FIRST, SECOND)
    it.answer(Verdict.PARTIAL, 0.1)
    it.answer(Verdict.PARTIAL, 0.2)
    it.sent.take()
    assert it.timers.next == SETTLE_SECONDS
    it.own.go_on(SETTLE_SECONDS)
    it.own.go_on(it.timers.next)
    assert it.sent.messages[-1][2][3] is True  # anyway
    it.answer(Verdict.PARTIAL, SETTLE_SECONDS + 0.5)
    assert it.own.ready is None
    it.answer(Verdict.PARTIAL, SETTLE_SECONDS + 0.6)
    assert it.own.ready is not None
    assert it.own.settled == 1


def test_one_who_does_not_answer_is_never_passed_over() -> None:
    it = Own(copy=True)
    it.view(BEFORE, FIRST, SECOND)
    for _ in range(50):
        it.own.go_on(it.timers.next)
    assert it.timers.next > 40 * FETCH_ANSWER_SECONDS
    assert {broker for broker, _, _ in it.sent.take()} == {FIRST}
    assert it.own.ready is None


def test_one_who_is_not_linked_is_waited_for() -> None:
    it = Own()
    it.linked.pop(FIRST)
    it.view(BEFORE, FIRST, SECOND)
    it.own.go_on(20.0)
    assert it.sent.take() == []
    it.linked[FIRST] = None
    it.own.go_on(it.timers.next)
    assert it.fetched()[0] == FIRST


def test_busy_is_asked_again() -> None:
    it = Own()
    it.view(BEFORE, FIRST)
    it.answer(Verdict.BUSY, 0.1)
    assert it.timers.next == 0.1 + FETCH_AGAIN_SECONDS
    it.own.go_on(0.1 + FETCH_AGAIN_SECONDS)
    it.answer(Verdict.WHOLE, 0.5)
    assert it.own.ready is not None


def test_hope_is_passed_on_a_little_less_and_puts_settling_off() -> None:
    it = Own()
    it.view(BEFORE, FIRST)
    assert it.own.unready(Arc(60, 70), 0.05) == Verdict.BUSY  # no answer yet, and none is late
    assert it.own.unready(Arc(60, 70), 2.5) == Verdict.HOPING  # by then one is
    it.answer(Verdict.HOPING, 0.1)
    assert it.own.unready(Arc(60, 70), 0.2) == Verdict.HOPING - 1
    assert it.own.unready(Arc(200, 210), 0.2) is None
    it.own.go_on(0.5)
    it.answer(Verdict.BUSY, 0.6)
    assert it.own.unready(Arc(60, 70), 0.7) == Verdict.BUSY
    it.own.go_on(1.0)
    assert it.sent.messages[-1][2][3] is False
    it.answer(Verdict.BUSY, 1.1)
    it.own.go_on(0.1 + SETTLE_SECONDS)
    assert it.sent.messages[-1][2][3] is True


def ready(after: int = BEFORE) -> Own:
    it = Own()
    it.view(after, FIRST, SECOND)
    it.answer(Verdict.WHOLE, 0.0)
    return it


def test_a_gained_piece_is_unready_while_the_rest_stays_ready() -> None:
    it = ready()
    it.view(10, FIRST, SECOND, now=9.0)
    assert (it.own.own, it.own.ready) == (Arc(10, ME), Arc(BEFORE, ME))
    assert it.sent.messages[-1][2][1:3] == [10, BEFORE]
    assert it.own.confirm_from(Arc(60, 70)) == 2.5
    assert it.own.confirm_from(Arc(20, 70)) == float("inf")
    assert it.own.confirm_from(Arc(1, 70)) == float("inf")


def test_keys_lost_count_as_a_whole_copy_for_a_while() -> None:
    it = ready()
    it.view(80, FIRST, SECOND, now=1.0)
    assert it.own.own == it.own.ready == Arc(80, ME)
    assert it.own.former.whole(FIRST, 1.0) == [Arc(BEFORE, 80)]
    assert it.own.former.whole(FIRST, 12.0) == []


def test_keys_lost_before_they_were_ready_are_fetched_all_the_same() -> None:
    it = Own()
    it.view(BEFORE, FIRST)
    it.view(80, FIRST, now=0.1)
    assert it.own.unready(Arc(60, 70), 0.2) is not None
    it.answer(Verdict.WHOLE, 0.3)
    assert it.own.ready == Arc(80, ME)
    assert it.own.former.whole(FIRST, 0.3) == [Arc(BEFORE, ME)]


def test_a_piece_lost_as_a_whole_is_fetched_all_the_same() -> None:
    it = ready()
    it.view(10, FIRST, now=1.0)
    it.view(BEFORE, FIRST, now=1.1)
    assert it.own.own == it.own.ready == Arc(BEFORE, ME)
    assert it.own.unready(Arc(20, 30), 1.2) is not None
    it.answer(Verdict.WHOLE, 1.3)
    assert it.own.former.whole(FIRST, 1.3) == [Arc(10, BEFORE)]
    assert it.own.unready(Arc(20, 30), 1.4) is None


def test_handing_over_is_at_once_and_stands_when_the_view_agrees() -> None:
    it = ready()
    it.linked[80] = None
    it.own.hand_over(80, 1.0)
    assert it.own.own == Arc(80, ME)
    it.view(BEFORE, FIRST, SECOND, now=2.0)  # the view has not heard of the newcomer yet
    assert it.own.own == Arc(80, ME)
    it.view(80, FIRST, SECOND, now=3.0)
    assert it.own.handed is None
    assert it.own.own == Arc(80, ME)


def test_keys_of_a_newcomer_who_is_gone_are_taken_back() -> None:
    it = ready()
    it.own.hand_over(80, 1.0)
    assert it.timers.next == 1.0 + HANDOVER_SECONDS
    it.own.go_on(1.0 + HANDOVER_SECONDS)
    assert it.own.own == Arc(BEFORE, ME)
    assert it.own.ready == Arc(80, ME)


def test_doubted_keys_are_gained_anew() -> None:
    it = ready()
    it.own.doubt(5.0)
    assert it.own.ready is None
    assert it.own.own == Arc(BEFORE, ME)
    it.answer(Verdict.WHOLE, 5.1)
    assert it.own.confirm_from(Arc(60, 70)) == 5.1 + 2.5


def test_who_leaves_the_ring_owns_nothing_and_forgets() -> None:
    it = ready()
    it.view(80, FIRST, now=1.0)
    it.own.set_view(View(ME, ME, (), False), 1.5)
    assert it.own.own is None
    assert it.own.former.whole(FIRST, 1.5) == []


def test_a_ring_of_one_owns_everything() -> None:
    it = Own()
    it.view(ME)
    assert it.own.own is not None
    assert it.own.own.size == RING_SIZE
    it.own.go_on(SETTLE_SECONDS)
    assert it.own.ready == it.own.own


def test_what_was_gained_while_there_was_nobody_shrinks_as_a_whole() -> None:
    it = Own()
    it.view(ME)
    it.view(BEFORE, FIRST, now=0.1)
    assert it.sent.messages[-1][2][1:3] == [BEFORE, ME]
    it.view(80, FIRST, now=0.2)
    assert it.own.unready(Arc(60, 70), 0.3) is None


def test_lost_keys_whose_owner_lives_are_fetched_no_longer() -> None:
    it = Own()
    it.view(BEFORE, FIRST)
    it.view(80, FIRST, now=0.1)
    it.answer(Verdict.OWNED, 0.2)
    assert it.sent.messages[-1][2][1:3] == [80, ME]
    it.answer(Verdict.OWNED, 0.3)  # of what is ours by the view: there is hope that the view changes
    assert it.own.ready is None
    assert it.own.unready(Arc(80, 90), 0.4) == Verdict.HOPING


def test_a_piece_lost_as_a_whole_to_a_living_owner_is_forgotten() -> None:
    it = ready()
    it.view(10, FIRST, now=1.0)
    it.view(BEFORE, FIRST, now=1.1)
    it.answer(Verdict.OWNED, 1.2)
    assert it.own.unready(Arc(20, 30), 1.3) is None

"""Replicas: whole after a stream, answered from by grants, offered back, closed, let go of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import RING_SIZE, Arc
from headgate.broker.core.kv import KvLimits
from headgate.broker.core.kv.items import Items
from headgate.broker.core.kv.messages import CopyVerdict, Stream
from headgate.broker.core.kv.replication import Replicas, is_covered, remember
from headgate.broker.core.timers import Timers
from tests.support.keyed_parts import Kind, Sent, item, written

OWNER, ARC = 100, Arc(0, 100)


class Sibling:
    """Replicas of a broker that is linked with the owner of (0, 100]."""

    def __init__(self, **limits: int) -> None:
        self.sent = Sent()
        self.items = Items([], Timers())
        self.linked: dict[int, None] = {OWNER: None}
        self.replicas = Replicas(self.items, self.linked, self.sent, self.sent.timers, 2.5, KvLimits(**limits))

    def stream(
        self, *some, sequence: int = 1, first: bool = True, last: bool = True, piece: Arc = ARC, now: float = 0.0
    ):  # type: ignore[no-untyped-def]
        return self.replicas.stream(OWNER, Stream(sequence, first, last, piece.after, piece.last, list(some)), now)

    def whole(self) -> Sibling:
        self.stream(item(1, 5))
        self.sent.take()
        return self


def test_it_is_whole_with_the_last_page_and_asks_at_once() -> None:
    it = Sibling()
    assert not it.stream(item(1, 5), last=False)
    assert it.replicas.scope(0.0) == []
    assert it.sent.take() == [(OWNER, Kind.COPIED, [1, CopyVerdict.STORED])]
    assert it.stream(item(2, 6), sequence=2, first=False)
    assert it.sent.take() == [(OWNER, Kind.COPIED, [2, CopyVerdict.STORED]), (OWNER, Kind.LEASE, [1])]
    it.replicas.validate()


def test_a_grant_counts_from_the_asking() -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 1, 0, 2.0, 1.5)
    assert it.replicas.scope(1.9) == [(ARC, 2.0)]
    assert it.replicas.scope(2.0) == []


def test_a_grant_that_nobody_asked_for_is_none() -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 2, 0, 2.0, 0.1)
    it.replicas.granted(77, 1, 0, 2.0, 0.1)
    it.replicas.granted(OWNER, 1, 900, 2.0, 0.1)  # more than there is
    assert it.replicas.scope(0.1) == []


def test_it_asks_four_times_a_lease_while_the_link_lasts() -> None:
    it = Sibling().whole()
    assert it.sent.timers.next == 0.625
    it.replicas.go_on(OWNER, 0.625)
    assert it.sent.kinds() == [(OWNER, "LEASE")]
    it.replicas.link_new(OWNER)
    it.replicas.go_on(OWNER, 5.0)
    assert it.sent.take() == []
    it.replicas.granted(OWNER, 2, 0, 2.0, 0.7)
    assert it.replicas.scope(0.7) == []


def test_writes_are_taken_in_and_acknowledged() -> None:
    it = Sibling().whole()
    it.replicas.copy(OWNER, 2, [item(2, 6)], 0.1)
    assert it.sent.take() == [(OWNER, Kind.COPIED, [2, CopyVerdict.STORED])]
    assert ("sub", 2) in it.items.table


def test_what_is_newer_here_is_offered_back() -> None:
    it = Sibling().whole()
    it.items.merge(item(2, 6, 5), 0.0)
    it.replicas.copy(OWNER, 2, [item(2, 6, 4)], 0.1)
    assert it.sent.take()[0] == (OWNER, Kind.OFFER, [written([item(2, 6, 5)])])


def test_what_was_not_sent_or_is_newer_is_offered_after_the_stream_and_before_its_acknowledgement() -> None:
    it = Sibling()
    for one in (item(1, 5, 9), item(2, 6), item(3, 7, 1, None), item(4, 500)):
        it.items.merge(one, 0.0)
    it.stream(item(1, 5), item(8, 8))
    messages = it.sent.take()
    assert [kind for _, kind, _ in messages] == [Kind.OFFER, Kind.COPIED, Kind.LEASE]
    assert messages[0][2] == [written([item(1, 5, 9), item(2, 6), item(3, 7, 1, None)])]


def test_what_was_written_during_the_stream_is_not_offered() -> None:
    it = Sibling()
    it.stream(last=False)
    it.replicas.copy(OWNER, 2, [item(2, 6)], 0.1)
    it.stream(sequence=3, first=False)
    assert "OFFER" not in [kind for _, kind in it.sent.kinds()]


def test_a_stream_of_a_piece_makes_the_replica_longer() -> None:
    it = Sibling().whole()
    assert it.stream(item(7, 950), sequence=2, piece=Arc(900, 0))

    assert it.replicas.held[OWNER].arc == Arc(900, 100)


@pytest.mark.parametrize("piece", [Arc(900, 50), Arc(800, 900)])
def test_a_piece_that_does_not_fit_is_refused(piece: Arc) -> None:
    it = Sibling().whole()
    assert not it.stream(sequence=2, piece=piece)
    assert it.sent.take() == [(OWNER, Kind.COPIED, [2, CopyVerdict.REFUSED])]


def test_the_middle_of_a_stream_without_its_beginning_is_refused() -> None:
    it = Sibling()
    it.stream(first=False)
    assert it.sent.take() == [(OWNER, Kind.COPIED, [1, CopyVerdict.REFUSED])]


def test_comparing() -> None:
    it = Sibling().whole()
    tally = it.items.tally(ARC)
    for after, count, digest, verdict in (
        (0, tally.count, tally.digest, CopyVerdict.STORED),
        (0, tally.count + 1, tally.digest, CopyVerdict.DIFFERENT),
        (900, tally.count, tally.digest, CopyVerdict.DIFFERENT),
        (50, 0, 0, CopyVerdict.STORED),  # it shrank, and the item lies before it
    ):
        it.replicas.check(OWNER, 2, after, count, digest, 0.1)
        assert it.sent.take() == [(OWNER, Kind.COPIED, [2, verdict])]
    assert it.replicas.held[OWNER].arc == Arc(50, 100)
    assert it.replicas.shrunk


def test_a_replica_is_good_for_taking_over_until_a_while_after_its_grant() -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 1, 0, 2.0, 0.1)
    it.replicas.link_new(OWNER)
    assert it.replicas.whole(OWNER, 6.9) == [ARC]
    assert it.replicas.whole(OWNER, 7.0) == []


def test_who_is_left_out_asks_no_more_and_may_answer_to_the_end_of_his_grant() -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 1, 0, 2.0, 0.1)
    it.replicas.go_on(OWNER, 0.625)
    it.sent.take()
    assert it.replicas.whole(OWNER, 0.7) == [ARC]
    it.replicas.granted(OWNER, 2, 0, 0.0, 0.7)
    assert it.replicas.whole(OWNER, 0.7) == []
    assert it.replicas.scope(0.7) == [(ARC, 2.0)]
    it.replicas.go_on(OWNER, 1.5)
    assert it.sent.take() == []


def test_who_is_a_sibling_again_is_whole_again() -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 1, 0, 0.0, 0.7)
    it.stream(item(1, 5), sequence=2, now=3.0)
    it.replicas.granted(OWNER, 2, 0, 2.0, 3.1)
    assert it.replicas.whole(OWNER, 5.5) == [ARC]


def test_of_keys_that_somebody_came_for_it_is_whole_for_him_alone() -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 1, 0, 2.0, 0.1)
    it.replicas.close(Arc(50, 150), 150, 0.5)
    assert it.replicas.whole(150, 0.6) == it.replicas.whole(None, 2.9) == [ARC]
    assert it.replicas.whole(70, 0.6) == it.replicas.whole(None, 3.0) == []


@pytest.mark.parametrize(("seconds", "whole"), [(1.2, True), (1.3, False)])
def test_a_grant_that_ended_while_we_stood_still_leaves_parts(seconds: float, whole: bool) -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 1, 0, 2.0, 0.1)
    it.replicas.awake(1.0)
    it.replicas.awake(1.9)
    it.replicas.awake(1.9 + seconds)
    assert it.replicas.whole(OWNER, 1.9 + seconds) == ([ARC] if whole else [])


def test_a_grant_that_outlasts_a_sleep_is_as_good_as_ever() -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 1, 0, 2.0, 0.1)
    it.replicas.awake(1.9)
    it.replicas.awake(2.5)
    assert it.replicas.whole(OWNER, 3.5) == [ARC]


def test_a_closed_replica_takes_no_writes_but_is_answered_from_to_the_end_of_its_grant() -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 1, 0, 2.0, 0.1)
    it.replicas.close(Arc(50, 70), 70, 0.0)
    it.replicas.copy(OWNER, 2, [item(2, 6)], 0.2)
    it.stream(sequence=3, now=0.3)
    assert it.sent.take() == [(OWNER, Kind.COPIED, [sequence, CopyVerdict.REFUSED]) for sequence in (1, 2, 3)]
    assert it.replicas.scope(1.9) == [(ARC, 2.0)]
    it.stream(sequence=4, now=5.0)
    assert it.sent.take()[-2:] == [(OWNER, Kind.COPIED, [4, CopyVerdict.STORED]), (OWNER, Kind.LEASE, [2])]


def test_closing_other_keys_or_by_the_owner_himself_changes_nothing() -> None:
    it = Sibling().whole()
    it.replicas.close(Arc(200, 300), 300, 0.0)
    it.replicas.close(ARC, OWNER, 0.0)
    it.replicas.copy(OWNER, 2, [item(2, 6)], 0.2)
    assert it.sent.take() == [(OWNER, Kind.COPIED, [2, CopyVerdict.STORED])]


def test_distrusted_replicas_are_whole_no_longer() -> None:
    it = Sibling().whole()
    it.replicas.granted(OWNER, 1, 0, 2.0, 0.1)
    it.replicas.distrust()
    assert it.replicas.whole(OWNER, 0.2) == []
    it.replicas.validate()


def test_what_nobody_keeps_up_to_date_is_let_go_of() -> None:
    it = Sibling().whole()
    it.replicas.go_on(OWNER, 9.9)
    assert OWNER in it.replicas.held
    it.replicas.shrunk = False
    it.replicas.go_on(OWNER, 10.0)
    assert it.replicas.held == {}
    assert it.replicas.shrunk
    assert it.items.watched(OWNER) is None


def test_there_are_only_so_many() -> None:
    it = Sibling(replicas=1).whole()
    it.replicas.copy(77, 1, [item(5, 5)], 0.1)
    assert it.sent.take() == [(77, Kind.COPIED, [1, CopyVerdict.REFUSED])]


def test_a_flood_of_offers_has_an_end() -> None:
    it = Sibling(offer_pages=1)
    for number in range(1200):
        it.items.merge(item(number, 5), 0.0)
    it.stream()
    assert [kind for _, kind in it.sent.kinds()] == ["OFFER", "COPIED", "LEASE"]


def test_only_the_last_questions_are_remembered() -> None:
    asked: dict[int, float] = {}
    for number in range(40):
        remember(asked, number, float(number))
    assert list(asked) == list(range(24, 40))


SMALL = st.integers(0, 12) | st.just(RING_SIZE - 1)


@given(st.builds(Arc, SMALL, SMALL), st.lists(st.builds(Arc, SMALL, SMALL), max_size=5))
def test_what_is_covered_by_pieces_is_covered(stretch: Arc, pieces: list[Arc]) -> None:
    keys = [*range(14), RING_SIZE - 2, RING_SIZE - 1, RING_SIZE // 2]
    covered = all(any(piece.covers(key) for piece in pieces) for key in keys if stretch.covers(key))
    assert is_covered(stretch, pieces) == covered


def test_pieces_that_join_cover() -> None:
    assert is_covered(Arc(0, 90), [Arc(60, 90), Arc(0, 30), Arc(30, 60)])
    assert is_covered(Arc(5, 5), [Arc(5, 900), Arc(900, 5)])
    assert not is_covered(Arc(0, 90), [Arc(61, 90), Arc(0, 30), Arc(30, 60)])

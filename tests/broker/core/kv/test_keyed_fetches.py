"""Answers to who gained keys: in pages, a few in flight, one answer for each asker."""

from __future__ import annotations

from headgate.broker.core.keyspace import Arc
from headgate.broker.core.kv import KvLimits
from headgate.broker.core.kv.handover import Fetches
from headgate.broker.core.kv.items import Items
from headgate.broker.core.kv.messages import Verdict
from headgate.broker.core.timers import Timers
from tests.support.keyed_parts import Kind, Sent, item

ALL = Arc(0, 1000)


def filled(count: int, **limits: int) -> tuple[Fetches, Items, Sent]:
    sent = Sent()
    items = Items([], Timers())
    for number in range(count):
        items.merge(item(number, number + 1), 0.0)
    return Fetches(items, sent, KvLimits(**limits)), items, sent


def names(sent: Sent) -> list[int]:
    return [one[0][1] for _, _, body in sent.messages for one in body[3]]


def test_what_touches_the_stretch_is_sent_and_what_it_is_is_said() -> None:
    fetches, _, sent = filled(5)
    fetches.begin(7, 3, Arc(2, 4), whole=True)
    ((broker, kind, body),) = sent.take()
    assert (broker, kind, body[:3]) == (7, Kind.PAGE, [3, True, Verdict.WHOLE])
    assert [one[0][1] for one in body[3]] == [2, 3]
    fetches.begin(7, 4, Arc(20, 30), whole=False)
    assert sent.take() == [(7, Kind.PAGE, [4, True, Verdict.PARTIAL, []])]
    assert len(fetches) == 0


def test_only_a_few_pages_are_in_flight() -> None:
    fetches, items, sent = filled(12, page_items=2, pages_in_flight=3)
    fetches.begin(7, 3, ALL, whole=True)
    assert names(sent) == list(range(6))
    items.remove(("sub", 7))
    fetches.paged(7, 2)
    fetches.paged(8, 3)
    assert len(sent.messages) == 3
    for _ in range(3):
        fetches.paged(7, 3)
    assert names(sent) == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11]
    assert [body[1] for _, _, body in sent.messages] == [False] * 5 + [True]
    assert len(fetches) == 0


def test_a_new_question_replaces_the_former() -> None:
    fetches, _, sent = filled(20, page_items=1)
    fetches.begin(7, 3, ALL, whole=True)
    fetches.begin(7, 4, ALL, whole=True)
    sent.take()
    fetches.paged(7, 3)
    assert sent.take() == []
    fetches.paged(7, 4)
    assert [body[0] for _, _, body in sent.take()] == [4]
    fetches.forget(7)
    assert len(fetches) == 0


def test_short_answers() -> None:
    fetches, _, sent = filled(3)
    fetches.same(7, 1, ALL)
    fetches.busy(7, 2, 5)
    assert [body for _, _, body in sent.take()] == [[1, True, Verdict.WHOLE, []], [2, True, 5, []]]


def test_who_has_the_same_is_sent_what_was_removed_in_the_stretch() -> None:
    fetches, items, sent = filled(6, page_items=2)
    for number in (0, 2, 3, 5):
        items.merge(item(number, number + 1, 2, None), 0.0)
    fetches.same(7, 1, Arc(1, 1000))
    assert names(sent) == [2, 3, 5]
    assert [body[1:3] for _, _, body in sent.messages] == [[False, Verdict.WHOLE], [True, Verdict.WHOLE]]

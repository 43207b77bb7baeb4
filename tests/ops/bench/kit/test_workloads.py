"""Workloads: sizes as promised, and the quick counts agree with asking every subscriber about every event."""

from __future__ import annotations

import pytest

from headgate.ops.bench.kit import WORKLOADS, Want, Workload, build
from headgate.ops.bench.kit.workloads import Occurrence
from headgate.ops.bench.limits import RING_EVENTS


def small(workload: Workload) -> Workload:
    return Workload(workload.key, workload.title, workload.unit, workload.wants, workload.events[:300])


@pytest.mark.parametrize("key", WORKLOADS)
def test_useful_and_flood_agree_with_asking_everybody(key: str) -> None:
    workload = small(build(key))
    useful = [sum(want.takes(event) for group in workload.wants for want in group) for event in workload.events]
    flood = [
        sum(any(want.topic == event.topic for want in group) for group in workload.wants) for event in workload.events
    ]
    assert workload.useful() == useful
    assert workload.flood() == flood


@pytest.mark.parametrize(
    ("key", "connections", "subscriptions", "content"),
    [
        ("a", 1, 1, False),
        ("b", 50, 50, False),
        ("c", 20, 10_000, False),
        ("e", 20, 1000, True),
        ("e1k", 1000, 1000, True),
    ],
)
def test_sizes_are_those_of_the_titles(key: str, connections: int, subscriptions: int, content: bool) -> None:
    workload = build(key)
    assert workload.key == key
    assert len(workload.wants) == connections
    assert sum(map(len, workload.wants)) == subscriptions
    assert len(workload.events) == RING_EVENTS
    assert workload.content is content


def test_every_topic_of_c_occurs_equally_often() -> None:
    workload = build("c")
    topics = [event.topic for event in workload.events]
    assert len(set(topics)) == 10_000
    assert {topics.count(topic) for topic in topics[:20]} == {RING_EVENTS // 10_000}
    assert set(workload.useful()) == {1}


def test_a_content_subscriber_wants_a_thousandth() -> None:
    useful = build("e").useful()
    assert 0.9 < sum(useful) / len(useful) < 1.1  # 1,000 subscribers, 0.1 % each


def test_the_same_workload_is_built_each_time() -> None:
    assert build("e1k") == build("e1k")


def test_a_want_as_a_condition() -> None:
    want = Want("quotes", "OTE", 8.3, 8.7)
    assert want.condition == "symbol = 'OTE' AND price BETWEEN 8.3 AND 8.7"
    assert Want("quotes").condition == ""
    assert want.takes(Occurrence("quotes", "OTE", 8.7))
    assert not want.takes(Occurrence("quotes", "OTE", 8.71))
    assert not want.takes(Occurrence("quotes", "IBM", 8.5))
    assert not want.takes(Occurrence("other", "OTE", 8.5))


def test_a_letter_that_is_no_workload() -> None:
    with pytest.raises(KeyError):
        build("z")

"""Writes stored and not confirmed: who is still to acknowledge them."""

from __future__ import annotations

from headgate.broker.core.keyspace import Arc
from headgate.broker.core.kv import KvLimits
from headgate.broker.core.kv.replication import Pending, WritesInFlight
from tests.support.keyed_parts import item

HERE = Arc(4, 9)


def begun(writes_in_flight: WritesInFlight, ticket: int = 1, stretch: Arc = HERE) -> Pending:
    pending = writes_in_flight.begin(77, ticket, 0, stretch, [item(1, 5)])
    assert pending is not None
    return pending


def test_a_put_that_comes_again_is_the_same_one() -> None:
    writes_in_flight = WritesInFlight()
    begun(writes_in_flight)
    assert writes_in_flight.begin(77, 1, 0, HERE, [item(1, 5)]) is None
    assert len(writes_in_flight) == 1


def test_one_of_another_length_replaces_it() -> None:
    writes_in_flight = WritesInFlight()
    former = begun(writes_in_flight)
    begun(writes_in_flight, stretch=Arc(4, 7))
    assert len(writes_in_flight) == 1
    assert writes_in_flight.acknowledge(former.number, 1) is None
    writes_in_flight.validate()


def test_it_waits_for_those_who_have_not_acknowledged() -> None:
    writes_in_flight = WritesInFlight()
    pending = begun(writes_in_flight)
    pending.waiting = {1: None, 2: None}
    assert writes_in_flight.acknowledge(pending.number, 1) is pending
    assert writes_in_flight.acknowledged() == []
    assert writes_in_flight.waiting_for(1) == []
    assert writes_in_flight.waiting_for(2) == [(pending.items, pending.number)]
    writes_in_flight.acknowledge(pending.number, 2)
    assert writes_in_flight.acknowledged() == [pending]


def test_a_new_sibling_is_waited_for_and_a_former_one_is_not() -> None:
    writes_in_flight = WritesInFlight()
    writes_in_flight.set_siblings((1, 2))
    pending = begun(writes_in_flight)
    pending.waiting = {2: None}
    writes_in_flight.set_siblings((1, 3))
    assert list(pending.waiting) == [3]


def test_there_are_only_so_many() -> None:
    writes_in_flight = WritesInFlight(KvLimits(writes_pending=1))
    pending = begun(writes_in_flight)
    assert writes_in_flight.begin(77, 2, 0, HERE, []) is None
    assert writes_in_flight.dropped == 1
    writes_in_flight.end(pending)
    writes_in_flight.end(pending)
    begun(writes_in_flight, ticket=2)
    writes_in_flight.validate()

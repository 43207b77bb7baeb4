"""Writes stored and not confirmed: who is still to acknowledge them."""

from __future__ import annotations

from headgate.broker.core.keyspace import Stretch
from headgate.broker.core.kv import KvLimits
from headgate.broker.core.kv.replication import Pending, Pendings
from tests.support.keyed_parts import item

HERE = Stretch(4, 9)


def begun(pendings: Pendings, ticket: int = 1, stretch: Stretch = HERE) -> Pending:
    pending = pendings.begin(77, ticket, 0, stretch, [item(1, 5)])
    assert pending is not None
    return pending


def test_a_put_that_comes_again_is_the_same_one() -> None:
    pendings = Pendings()
    begun(pendings)
    assert pendings.begin(77, 1, 0, HERE, [item(1, 5)]) is None
    assert len(pendings) == 1


def test_one_of_another_length_replaces_it() -> None:
    pendings = Pendings()
    former = begun(pendings)
    begun(pendings, stretch=Stretch(4, 7))
    assert len(pendings) == 1
    assert pendings.acknowledge(former.number, 1) is None
    pendings.validate()


def test_it_waits_for_those_who_have_not_acknowledged() -> None:
    pendings = Pendings()
    pending = begun(pendings)
    pending.waiting = {1: None, 2: None}
    assert pendings.acknowledge(pending.number, 1) is pending
    assert pendings.acknowledged() == []
    assert pendings.waiting_for(1) == []
    assert pendings.waiting_for(2) == [(pending.items, pending.number)]
    pendings.acknowledge(pending.number, 2)
    assert pendings.acknowledged() == [pending]


def test_a_new_sibling_is_waited_for_and_a_former_one_is_not() -> None:
    pendings = Pendings()
    pendings.set_siblings((1, 2))
    pending = begun(pendings)
    pending.waiting = {2: None}
    pendings.set_siblings((1, 3))
    assert list(pending.waiting) == [3]


def test_there_are_only_so_many() -> None:
    pendings = Pendings(KvLimits(writes_pending=1))
    pending = begun(pendings)
    assert pendings.begin(77, 2, 0, HERE, []) is None
    assert pendings.dropped == 1
    pendings.end(pending)
    pendings.end(pending)
    begun(pendings, ticket=2)
    pendings.validate()

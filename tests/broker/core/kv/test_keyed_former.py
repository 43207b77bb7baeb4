"""What was ours a moment ago: for whom it is whole, and until when."""

from __future__ import annotations

from headgate.broker.core.keyspace import Arc
from headgate.broker.core.kv.limits import FORMER_SECONDS
from headgate.broker.core.kv.ownership import Former
from headgate.broker.core.kv.replication import Claimants

LEASE = 2.5
OWNER, ANOTHER = 80, 30
LOST = Arc(10, OWNER)


def lost_at(now: float) -> Former:
    former = Former(LEASE)
    former.add(LOST, now)
    return former


def test_while_nobody_comes_for_it_it_is_whole_for_anybody() -> None:
    former = lost_at(1.0)
    assert former.whole(OWNER, 1.0 + FORMER_SECONDS - 0.1) == former.whole(ANOTHER, 1.0) == [LOST]
    assert former.whole(OWNER, 1.0 + FORMER_SECONDS) == []


def test_once_its_owner_came_it_is_whole_for_him_alone() -> None:
    former = lost_at(0.0)
    former.came(OWNER, LOST, 1.0)
    assert former.whole(ANOTHER, 1.0) == []
    assert former.whole(OWNER, 1.0) == former.whole(OWNER, 1.0 + LEASE) == [LOST]


def test_it_is_whole_for_ourselves_as_long_as_he_confirms_nothing() -> None:
    former = lost_at(0.0)
    former.came(OWNER, LOST, 1.0)
    former.came(OWNER, LOST, 3.0)
    assert former.whole(None, 1.0 + LEASE - 0.1) == [LOST]
    assert former.whole(None, 1.0 + LEASE) == []


def test_when_two_came_neither_is_known_to_have_what_the_other_wrote() -> None:
    former = lost_at(0.0)
    former.came(OWNER, LOST, 1.0)
    former.came(ANOTHER, Arc(20, ANOTHER), 1.5)
    assert former.whole(OWNER, 1.6) == former.whole(ANOTHER, 1.6) == []


def test_who_comes_for_other_keys_changes_nothing() -> None:
    former = lost_at(0.0)
    former.came(ANOTHER, Arc(OWNER, 90), 1.0)
    assert former.whole(OWNER, 9.0) == [LOST]


def test_who_is_in_no_ring_had_nothing() -> None:
    former = lost_at(0.0)
    former.clear()
    assert former.whole(OWNER, 0.0) == []


def test_whom_nobody_came_for_is_whole_for_ourselves_too() -> None:
    claimants = Claimants()
    assert claimants.leave_whole_for(None, 99.0) and claimants.leave_whole_for(OWNER, 99.0)

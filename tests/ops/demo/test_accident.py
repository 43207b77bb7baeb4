"""The accident: what is excused by a gap, what by an unknown outcome, and nothing by the kill alone."""

from __future__ import annotations

from headgate.ops.demo.accident import Accident
from headgate.ops.demo.audience import WISHES, Listener, Told

PUBLISHED = 5000
DISTURBED = range(900, 1300)


def accident() -> Accident:
    return Accident("demo-1", 10.0, 900, 1000)


def listener(*told: Told, home: str = "demo-1") -> Listener:
    return Listener(WISHES[0], home=home, told=list(told))


def test_who_was_told_nothing_is_excused_nothing() -> None:
    excuse = accident().excuse(listener(home="demo-2"), DISTURBED, PUBLISHED)
    assert (excuse.gaps, excuse.unknown, excuse.in_force) == ((), (), True)
    assert excuse.around == DISTURBED
    assert not excuse.told(999) and not excuse.doubtful(999)


def test_a_gap_covers_what_was_on_its_way_until_it_is_whole_again() -> None:
    excuse = accident().excuse(listener(Told(10.2, 0, 1300, 10.3)), DISTURBED, PUBLISHED)
    assert [number for number in (899, 900, 1299, 1300) if excuse.told(number)] == [900, 1299]


def test_a_gap_from_before_the_accident_excuses_nothing() -> None:
    assert accident().excuse(listener(Told(9.9, 7, 1300, 9.9)), DISTURBED, PUBLISHED).gaps == ()


def test_a_subscription_that_never_came_back_is_no_excuse_for_ever() -> None:
    excuse = accident().excuse(listener(Told(10.2, 0)), DISTURBED, PUBLISHED)
    assert (excuse.gaps, excuse.in_force) == ((range(900, PUBLISHED),), False)


def test_who_lost_its_broker_must_be_told() -> None:
    assert not accident().excuse(listener(home="demo-1"), DISTURBED, PUBLISHED).in_force


def test_unknown_outcomes_are_everybodys() -> None:
    killed = accident()
    killed.unknown = [range(990, 1090)]
    excuse = killed.excuse(listener(home="demo-2"), DISTURBED, PUBLISHED)
    assert (excuse.doubtful(1089), excuse.doubtful(1090), excuse.told(1000)) == (True, False, False)
    assert killed.unknown_count == 100


def test_how_long_it_took() -> None:
    killed = accident()
    moved, stayed = listener(Told(10.2, 0, 1300, 10.5, 10.75)), listener(home="demo-2")
    assert (killed.hit(moved), killed.hit(stayed)) == (True, False)
    assert (killed.in_force_seconds(moved), killed.served_again_seconds(moved)) == (0.5, 0.75)
    assert (killed.in_force_seconds(stayed), killed.served_again_seconds(stayed)) == (None, None)
    assert killed.slowest_seconds([moved, stayed]) == 0.5
    assert killed.slowest_seconds([stayed]) == 0.0
    lost = listener(Told(10.2, 0))
    assert (killed.in_force_seconds(lost), killed.slowest_seconds([moved, lost])) == (None, None)


def test_the_cluster_is_at_rest_when_the_last_subscription_is_in_force() -> None:
    killed, stayed = accident(), listener(home="demo-2")
    assert killed.disturbed([stayed], PUBLISHED) == range(900, 1000)
    killed.unknown = [range(990, 1090)]
    assert killed.disturbed([stayed], PUBLISHED) == range(900, 1090)
    moved = [listener(Told(10.2, 0, until, 10.3)) for until in (1300, 1200)]
    assert killed.disturbed([stayed, *moved], PUBLISHED) == range(900, 1300)
    assert killed.disturbed([listener(Told(10.2, 0))], PUBLISHED) == range(900, PUBLISHED)

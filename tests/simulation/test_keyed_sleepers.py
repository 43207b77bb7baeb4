"""Schedules that chance hardly ever finds: a broker wakes up long after it was given up, and has not heard of that yet.

Each item has one replica. The sleeper stands between the owner of the keys before it and a neighbour; all of them are
at rest when it falls asleep. What it missed was written after its last grant had ended, by the rules.
"""

from __future__ import annotations

import pytest

from headgate.broker.core.kv import KvStore, View
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from tests.support.keyed_parts import item
from tests.support.keyed_world import Host, World

BEFORE, SLEEPER, NEWCOMER, SECOND, NEIGHBOUR, FAR = 2 << 60, 3 << 60, 4 << 60, 5 << 60, 6 << 60, 12 << 60
GIVEN_UP_SECONDS = 2.0


class Schedule:
    """A world of four, one of which falls asleep, and is given up; it wakes up and is told nothing."""

    def __init__(self, ablation: Safeguard | None, seconds: float) -> None:
        self.world = world = World(1, 1, SAFEGUARDS - {ablation})
        world.route_loss, world.view_delay_max, world.delay_max = 0.0, 0.01, 0.001
        world.found([NEIGHBOUR, SLEEPER, BEFORE, FAR])
        world.run_for(8.0)
        assert world.repaired()
        world._reborn = self._stays_as_it_was
        world.pause(SLEEPER, seconds, GIVEN_UP_SECONDS)
        self.wakes_at = world.now + seconds

    def _stays_as_it_was(self, host: Host) -> None:
        """It would be told, a moment later, that it is to begin anew."""

    def write(self, key: int, seconds: float = 1.5) -> None:
        """Place an item, for sure."""
        ticket = self.world.do(FAR, lambda store: store.put([item(1, key)], self.world.now))
        self.world.run_for(seconds)
        assert ticket in self.world.hosts[FAR].placed

    def wake(self) -> KvStore:
        """Its links are gone by then, and those two are made anew."""
        self.world.run_for(self.wakes_at - self.world.now + 0.01)
        for other in (NEIGHBOUR, FAR):
            self.world.connect(SLEEPER, other)
        self.world.run_for(0.01)
        return self.world.hosts[SLEEPER].store

    def answers_wrongly(self, key: int) -> bool:
        """Whether it answers for the key, within the time that hearing the news may take, and does not know it."""
        store = self.world.hosts[SLEEPER].store
        wrong = False
        for _ in range(100):
            self.world.run_for(0.01)
            wrong = wrong or (store.scope(self.world.now).covers(key) and store.get(("sub", 1)) is None)
        return wrong


def asks_for_its_own_keys(ablation: Safeguard | None) -> bool:
    """The neighbour got them, handed them on to a newcomer, and another newcomer came between those two."""
    schedule = Schedule(ablation, 9.0)
    key = SLEEPER - 1
    schedule.world.run_for(3.0)
    schedule.world.start(NEWCOMER)
    schedule.world.run_for(0.5)
    schedule.world.start(SECOND)
    schedule.world.run_for(3.5)
    schedule.write(key)
    schedule.wake()
    return schedule.answers_wrongly(key)


def asks_before_the_newcomer_confirms_anything(ablation: Safeguard | None) -> bool:
    """It wakes up a moment after the newcomer came for the keys, and would answer for them when he does confirm."""
    schedule = Schedule(ablation, 4.2)
    key = SLEEPER - 1
    schedule.world.run_for(3.0)
    schedule.world.start(NEWCOMER)
    schedule.world.run_for(0.5)
    schedule.world.start(SECOND)
    schedule.wake()
    schedule.write(key, 2.0)
    return schedule.answers_wrongly(key)


def takes_over_from_who_lives(ablation: Safeguard | None) -> bool:
    """Finding all links gone, it takes the broker before it for dead, and asks one who has no copy."""
    schedule = Schedule(ablation, 4.2)
    key = BEFORE - 1
    schedule.world.run_for(2.2)
    schedule.write(key)
    store = schedule.wake()
    schedule.world.do(SLEEPER, lambda _: store.view(View(FAR, SLEEPER, (FAR,), True), schedule.world.now))
    return schedule.answers_wrongly(key)


@pytest.mark.parametrize(
    ("ablation", "wrong"),
    [
        (None, False),
        (Safeguard.HANDED_OFF_ONCE, True),
        (Safeguard.LEFT_OUT_IS_TOLD, True),
    ],
)
def test_of_keys_that_moved_on_nobody_gives_an_old_copy_for_whole(ablation: Safeguard | None, wrong: bool) -> None:
    assert asks_for_its_own_keys(ablation) is wrong


@pytest.mark.parametrize(
    ("ablation", "wrong"),
    [
        (None, False),
        (Safeguard.HANDED_OFF_FOR_CLAIMANT, True),
        (Safeguard.COPY_FOR_CLAIMANT, True),
    ],
)
def test_keys_that_somebody_came_for_are_whole_for_him_alone(ablation: Safeguard | None, wrong: bool) -> None:
    assert asks_before_the_newcomer_confirms_anything(ablation) is wrong


@pytest.mark.parametrize(("ablation", "wrong"), [(None, False), (Safeguard.SLEEP_NOTICED, True)])
def test_who_slept_does_not_take_over_with_what_it_held_before(ablation: Safeguard | None, wrong: bool) -> None:
    assert takes_over_from_who_lives(ablation) is wrong

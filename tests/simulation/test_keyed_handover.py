"""One schedule that chance hardly ever finds: a write is confirmed while the newcomer's copy is on its way to him.

The former owner has answered the newcomer, but the answer travels slowly. A write in the newcomer's keys comes to the
former owner, who confirms it, if he has not handed the keys on. Then his view changes, so that he gives the newcomer
the lease, who answers for the keys without having heard of the write. Whoever holds a replica with the write in it
offers it to the newcomer; but over the former owner's link that comes after the lease, and the other's link is slow.
"""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from tests.support.keyed_parts import item
from tests.support.keyed_world import Host, World

FORMER, NEWCOMER, KEY = 10 << 60, 9 << 60, 8 << 60
OTHERS = [1 << 60, 4 << 60, 13 << 60]
ANSWER_SECONDS, OTHER_SECONDS, VIEW_SECONDS = 0.2, 0.4, 0.1


class Schedule:
    """A world of four at rest, which a fifth joins between the second and the former owner of its keys."""

    def __init__(self, ablation: Safeguard | None) -> None:
        self.world = world = World(1, 2, SAFEGUARDS - {ablation})
        world.route_loss, world.view_delay_max, world.delay_max = 0.0, 0.01, 0.001
        world.found([*OTHERS, FORMER])
        world.run_for(8.0)
        assert world.repaired()
        self.ticket = 0
        self.missed = False
        world.after_event = self.look
        self._delay_the_view()
        self._delay_the_answer()

    def _delay_the_view(self) -> None:
        tell = self.world._tell_membership

        def tell_late(host: Host, number: int) -> None:
            late = VIEW_SECONDS if host.identifier == FORMER else 0.0
            self.world.at(self.world.now + late, lambda: tell(host, number))

        self.world._tell_membership = tell_late

    def _delay_the_answer(self) -> None:
        fetches = self.world.hosts[FORMER].store.fetches
        begin = fetches.begin

        def begin_late(asker: int, *rest: Any, **more: Any) -> None:
            begin(asker, *rest, **more)
            if asker == NEWCOMER and not self.ticket:
                for sender, seconds in ((FORMER, ANSWER_SECONDS), (OTHERS[2], OTHER_SECONDS)):
                    link = self.world._links[(NEWCOMER, sender)]
                    self.world._channels[(sender, NEWCOMER, link)] = self.world.now + seconds
                self.ticket = -1
                self.world.at(self.world.now, self.write)

        fetches.begin = begin_late

    def write(self) -> None:
        self.ticket = self.world.do(FORMER, lambda store: store.put([item(1, KEY)], self.world.now))

    def look(self, host: Host) -> None:
        placed = self.ticket in self.world.hosts[FORMER].placed
        knows = ("sub", 1) in host.store.items.table
        self.missed = self.missed or (placed and host.store.scope(self.world.now).covers(KEY) and not knows)

    def run(self) -> bool:
        """Whether a broker answered for the key without knowing what was placed there."""
        self.world.start(NEWCOMER)
        self.world.run_for(8.0)
        assert self.ticket in self.world.hosts[FORMER].placed
        return self.missed


@pytest.mark.parametrize(("ablation", "missed"), [(None, False), (Safeguard.HANDOVER_AT_FETCH, True)])
def test_keys_are_handed_over_in_the_moment_they_are_copied(ablation: Safeguard | None, missed: bool) -> None:
    assert Schedule(ablation).run() is missed

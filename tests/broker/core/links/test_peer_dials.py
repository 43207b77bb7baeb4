"""Whom to dial and when: wanted addresses, what waits for them, and pauses that grow and end."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.core.effects import Dial, Effect
from headgate.broker.core.links.dialer import Dials
from headgate.broker.core.links.limits import (
    COMPLAINTS_MAX,
    DIALS_MAX,
    PENDING_PER_ADDRESS_MAX,
    PENDING_SECONDS_MAX,
    REDIAL_SECONDS_MAX,
    REDIAL_SECONDS_MIN,
)
from headgate.broker.core.timers import Timers
from headgate.protocol.messages import Control


class Desk:
    """Dials, and the addresses that there is a link to."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.linked: dict[str, None] = {}
        self.timers = Timers()
        self.dials = Dials(self.effects, Random(1), self.timers, self.linked.__contains__)
        self.dials.enabled = True

    def wake(self, now: float) -> None:
        """What `Peers` does when a timer has come."""
        for _, address in self.timers.due(now):  # type: ignore[misc]  # all keys here are ("dial", address)
            self.dials.go_on(address, now)

    def dialled(self) -> list[str]:
        """What was dialled since it was last asked."""
        found = [effect.address for effect in self.effects if isinstance(effect, Dial)]
        self.effects.clear()
        return found


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_what_is_kept_is_dialled_once_until_the_dial_is_over(desk: Desk) -> None:
    desk.dials.keep(["a:1", "b:1", ""], 0.0)
    desk.dials.keep(["a:1", "b:1"], 0.0)
    desk.wake(9.0)
    assert desk.dialled() == ["a:1", "b:1"]
    desk.dials.over("a:1", 10.0)
    assert desk.timers.next > 10.0
    desk.wake(desk.timers.next)
    assert desk.dialled() == ["a:1"]


def test_pauses_double_within_their_bounds_and_begin_anew_after_a_link(desk: Desk) -> None:
    desk.dials.keep(["a:1"], 0.0)
    now, pauses = 0.0, []
    for _ in range(12):
        desk.dials.over("a:1", now)
        pauses.append(desk.timers.next - now)
        now = desk.timers.next
        desk.wake(now)
    for place, pause in enumerate(pauses):
        longest = min(REDIAL_SECONDS_MAX, 2 * REDIAL_SECONDS_MIN * 2**place)
        assert longest / 2 <= pause <= longest
    assert len(set(pauses[-4:])) == 4, "they are drawn"
    desk.dials.take("a:1", now)
    desk.dials.broke("a:1", now)
    desk.dials.opened("a:1")
    assert desk.timers.next - now <= 2 * REDIAL_SECONDS_MIN


def test_who_is_linked_is_not_dialled(desk: Desk) -> None:
    desk.linked["a:1"] = None
    desk.dials.keep(["a:1"], 0.0)
    assert desk.dialled() == [] and desk.timers.next == float("inf")
    del desk.linked["a:1"]
    desk.dials.broke("a:1", 0.0)
    desk.wake(1.0)
    assert desk.dialled() == ["a:1"]


def test_what_waits_is_taken_in_order_and_not_when_it_is_old(desk: Desk) -> None:
    for number in range(3):
        desk.dials.wait("a:1", Control(number, []), float(number))
    assert desk.dialled() == ["a:1"]
    assert desk.dials.take("a:1", PENDING_SECONDS_MAX + 0.5) == [Control(1, []), Control(2, [])]
    assert desk.dials.take("a:1", 2.5) == [] == desk.dials.take("b:1", 2.5)
    assert desk.dials.dropped == 1


def test_of_much_that_waits_the_newest_is_kept(desk: Desk) -> None:
    for number in range(PENDING_PER_ADDRESS_MAX + 5):
        desk.dials.wait("a:1", Control(0, [number]), 0.0)
    assert [message.body for message in desk.dials.take("a:1", 0.0)] == [
        [n] for n in range(5, PENDING_PER_ADDRESS_MAX + 5)
    ]
    assert desk.dials.dropped == 5


def test_an_address_is_forgotten_when_nobody_wants_it_and_its_pause_is_over(desk: Desk) -> None:
    desk.dials.wait("a:1", Control(0, []), 0.0)
    desk.dials.over("a:1", 0.0)
    while desk.timers.next < float("inf"):
        desk.wake(max(0.0, desk.timers.next))
        for address in desk.dialled():
            desk.dials.over(address, 3.0)
    assert desk.dials._targets == {} and desk.dials.dropped == 1


def test_addresses_have_a_bound_and_those_that_are_wanted_come_in(desk: Desk) -> None:
    for number in range(DIALS_MAX + 5):
        desk.dials.wait(f"a:{number}", Control(0, []), 0.0)
    assert len(desk.dialled()) == DIALS_MAX and desk.dials.dropped == 5
    desk.dials.keep(["b:1"], 0.0)
    assert desk.dialled() == ["b:1"]


def test_our_own_address_is_never_dialled(desk: Desk) -> None:
    desk.dials.is_own("a:1")
    desk.dials.keep(["a:1", "b:1"], 0.0)
    desk.dials.wait("a:1", Control(0, []), 0.0)
    assert desk.dialled() == ["b:1"]
    desk.dials.is_own("b:1")
    desk.dials.over("b:1", 0.0)
    desk.wake(9.0)
    assert desk.dialled() == [] and desk.dials.wanted == {}


def test_nothing_is_dialled_before_we_can_be_reached(desk: Desk) -> None:
    desk.dials.enabled = False
    desk.dials.keep(["a:1"], 0.0)
    desk.wake(5.0)
    assert desk.dialled() == [] and desk.timers.next == float("inf")


def test_a_complaint_is_news_once(desk: Desk) -> None:
    desk.dials.keep(["a:1"], 0.0)
    assert [desk.dials.is_news("a:1", text) for text in ("no", "no", "never", "no")] == [True, False, True, True]
    desk.dials.take("a:1", 0.0)
    assert desk.dials.is_news("a:1", "no")
    assert [desk.dials.is_news("stranger:1", "no") for _ in range(2)] == [True, False], "whoever asks again and again"


def test_complaints_are_remembered_up_to_a_bound(desk: Desk) -> None:
    addresses = [f"a:{port}" for port in range(COMPLAINTS_MAX + 1)]
    assert all(desk.dials.is_news(address, "no") for address in addresses)
    assert not desk.dials.is_news(addresses[-1], "no") and desk.dials.is_news(addresses[0], "no"), "the oldest goes"

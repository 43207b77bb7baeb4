"""P3: dense, never rewritten, the same on every disk; and the checker sees each of these broken."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.checkers import PositionsStand
from headgate.broker.simulator.engine import Violation
from tests.support.log_stage import LogStage


def stage() -> LogStage:
    made = LogStage()
    made.checker(PositionsStand)
    return made


def test_copies_that_agree_are_well() -> None:
    one = stage()
    for server in (0, 1):
        one.write(server, 0, "a", "b")
        one.write(server, 2, "c")
    one.write(2, 2, "c")
    one.disks.look()


def test_another_row_at_the_same_position_is_seen_on_any_disk() -> None:
    one = stage()
    one.write(0, 0, "a")
    one.write(1, 0, "b")
    with pytest.raises(Violation, match="another row"):
        one.disks.look()


@pytest.mark.parametrize("harmed", [True, False])
def test_a_position_that_two_disks_had_is_not_given_again_after_one_was_lost(harmed: bool) -> None:
    one = stage()
    one.write(0, 0, "a")
    one.write(1, 0, "a")
    one.disks.look()
    if harmed:
        one.history.harmed[one.server(0).name] = one.world.now
    one.server(0).disk.lose_all()
    one.write(0, 0, "b")
    with pytest.raises(Violation, match="another row"):
        one.disks.look()


@pytest.mark.parametrize("harmed", [True, False])
def test_what_its_owner_alone_had_is_gone_with_its_disk_and_not_otherwise(harmed: bool) -> None:
    one = stage()
    one.write(0, 0, "a")
    one.disks.look()
    one.server(0).disk.lose_all()
    one.write(0, 0, "b")
    if harmed:
        one.history.harmed[one.server(0).name] = one.world.now
        one.disks.look()
    else:
        with pytest.raises(Violation, match="another row"):
            one.disks.look()


def test_a_hole_is_seen() -> None:
    one = stage()
    one.write(0, 0, "a")
    one.write(0, 2, "b")
    with pytest.raises(Violation, match="hole"):
        one.disks.look()


def test_a_row_that_says_it_is_elsewhere_is_seen() -> None:
    one = stage()
    entry = one.write(0, 3, "a")
    entry.first = 4
    with pytest.raises(Violation, match="row of 3"):
        one.disks.look()

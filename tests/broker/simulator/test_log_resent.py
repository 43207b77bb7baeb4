"""P2: a resend never makes a second position; and the checker sees it when one does."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.checkers import OnlyOnce
from headgate.broker.simulator.engine import Violation
from tests.support.log_stage import LogStage


def stage() -> LogStage:
    made = LogStage()
    made.only_once = made.checker(OnlyOnce)  # type: ignore[attr-defined]  # for the test that counts
    return made


def test_the_same_position_on_several_disks_is_one() -> None:
    one = stage()
    for server in (0, 1, 2):
        one.write(server, 0, "a", "b")
    one.disks.look()


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_second_position_in_the_logs_of_one_broker_is_seen(epoch: int) -> None:
    one = stage()
    one.write(0, 0, "a")
    one.write(0, 1, "a", epoch=epoch)
    with pytest.raises(Violation, match="a is at"):
        one.disks.look()


def test_after_harm_a_broker_may_be_sent_again_what_it_lost() -> None:
    one = stage()
    one.history.harmed[one.server(0).name] = 1.0
    one.write(0, 0, "a")
    one.write(0, 1, "a", epoch=2)
    one.disks.look()


def test_what_moved_with_its_producer_before_it_was_acknowledged_is_counted() -> None:
    one = stage()
    one.write(0, 0, "a")
    one.write(1, 0, "a", owner=1)
    one.disks.look()
    assert one.only_once.moved == 1  # type: ignore[attr-defined]


def test_what_was_acknowledged_before_is_not_appended_elsewhere() -> None:
    one = stage()
    one.write(0, 0, "a")
    one.disks.look()
    one.history.acknowledged["a"] = -1.0
    one.write(1, 0, "a", owner=1)
    with pytest.raises(Violation, match="was acknowledged"):
        one.disks.look()


def test_without_a_stamp_nothing_is_recognised() -> None:
    one = stage()
    one.write(0, 0, "a", producer="")
    one.write(0, 1, "a", producer="")
    one.disks.look()


def test_a_row_that_moved_to_another_log_of_its_broker_is_not_twice() -> None:
    one = stage()
    one.write(0, 0, "a")
    one.disks.look()
    del one.disk(0)[one.name()].entries[0]
    one.write(0, 0, "a", epoch=2)
    one.disks.look()

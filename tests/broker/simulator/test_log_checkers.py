"""The base of the checkers of the log: it says which promise was broken, and when."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.checkers import LogChecker
from headgate.broker.simulator.engine import Violation
from tests.support.log_stage import LogStage


def test_a_failure_names_the_promise_and_the_time() -> None:
    stage = LogStage()
    checker = stage.checker(LogChecker)
    stage.world.now = 1.5
    stage.write(0, 0, "a")
    stage.disks.look()
    checker.finish()
    with pytest.raises(Violation, match=r"LogChecker: at 1\.5000: why"):
        checker.fail("why")

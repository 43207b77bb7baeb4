"""S1: who comes back has what its disk had; and the checker sees when something is missing without a word."""

from __future__ import annotations

import pytest

from headgate.broker.core import NodeConfig
from headgate.broker.core.inputs import Opened, Stored
from headgate.broker.core.log_state import LogState
from headgate.broker.simulator.checkers import ComesBackWhole
from headgate.broker.simulator.engine import Host, Violation, World
from tests.support.log_stage import LogStage


class Bench:
    """A broker whose log has been told to end at nine."""

    def __init__(self) -> None:
        self.stage = LogStage()
        self.checker = self.stage.checker(ComesBackWhole)
        self.host = Host(World(1), NodeConfig("broker-1", 1), ())
        self.state = LogState(self.stage.name(), 0, 9, 1, 1, 1)
        self.host.feed(Opened(5, [self.state]))
        self.checker.step(self.host, Stored(1), [])

    def come_back(self, end: int, epoch: int = 5, damage: str = "") -> None:
        state = LogState(self.state.name, 0, end, 1, 1, 1)
        self.checker.step(self.host, Opened(epoch, [state], [], [damage] if damage else []), [])


def test_as_much_as_before_or_more_is_well() -> None:
    bench = Bench()
    bench.come_back(9)
    bench.come_back(12, epoch=6)
    assert bench.checker.openings == 2


def test_less_is_seen_unless_it_is_said_or_the_disk_was_harmed() -> None:
    bench = Bench()
    bench.come_back(8, damage="the last row")
    with pytest.raises(Violation, match="up to 9, and came back with 8"):
        bench.come_back(8)
    bench.stage.history.harmed["broker-1"] = None
    bench.come_back(0, epoch=1)


def test_an_epoch_that_goes_back_is_seen() -> None:
    bench = Bench()
    with pytest.raises(Violation, match="epoch 4, after 5"):
        bench.come_back(9, epoch=4)


def test_at_the_end_all_that_was_acknowledged_is_somewhere() -> None:
    bench = Bench()
    bench.stage.history.acknowledged["a"] = 1.0
    with pytest.raises(Violation, match="no disk has it"):
        bench.checker.finish()
    bench.stage.write(2, 0, "a")
    bench.checker.finish()

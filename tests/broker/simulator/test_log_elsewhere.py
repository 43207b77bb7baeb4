"""Who is told that too few disks have it, while there are enough, breaks a promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from headgate.broker.simulator.checkers import StoredElsewhere
from headgate.broker.simulator.engine import Violation
from tests.support.log_cluster import LogCluster


@dataclass
class Brokers:
    """As much of a world as it takes."""

    cluster: LogCluster
    servers: dict[str, None] = field(default_factory=dict)
    now: float = 0.0

    def nodes(self) -> list[Any]:
        return list(self.cluster.nodes)


def test_batches_that_waited_in_vain_are_named() -> None:
    brokers = Brokers(LogCluster(3), dict.fromkeys(("b0", "b1", "b2")))
    checker = StoredElsewhere(brokers, None, None)  # type: ignore[arg-type]  # it looks at the nodes alone
    checker.finish()
    brokers.cluster.node("b1").log.late = 2
    with pytest.raises(Violation, match="'b1': 2"):
        checker.finish()
    del brokers.servers["b2"]
    checker.finish()

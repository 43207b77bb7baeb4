"""The history of a run of the log begins empty, and no two share anything."""

from __future__ import annotations

from headgate.broker.simulator.workloads import LogHistory


def test_two_histories_share_nothing() -> None:
    one, other = LogHistory(), LogHistory()
    one.published["a"] = one.acknowledged["a"] = 1.0
    one.harmed["b"] = 1.0
    assert (other.published, other.acknowledged, other.harmed) == ({}, {}, {})

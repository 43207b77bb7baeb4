"""What a store knows: compared by what it says, and of fields that a host can write down."""

from __future__ import annotations

from dataclasses import astuple

from headgate.broker.core.log_state import LogState, ProducerState
from headgate.protocol.data import LogKind, LogName


def test_states_compare_by_what_they_say() -> None:
    name = LogName("ann", 7, LogKind.EVENTS, "quotes")
    assert LogState(name, 0, 3, 90, 1, 2) == LogState(name, 0, 3, 90, 1, 2) != LogState(name, 0, 4, 90, 1, 2)
    assert ProducerState("p", 1, 3, b"d", 5) == ProducerState("p", 1, 3, b"d", 5) != ProducerState("p", 2, 3, b"d", 5)


def test_fields_come_in_the_order_in_which_stores_write_them() -> None:
    assert astuple(ProducerState("p", 1, 3, b"d", 5, b"f")) == ("p", 1, 3, b"d", 5, b"f")
    assert astuple(LogState(LogName("ann", 7, 0, "q"), 1, 3, 90, 5, 6))[1:] == (1, 3, 90, 5, 6, 0)

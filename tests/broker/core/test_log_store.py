"""The store's errors say why, and both hosts' stores have the seven calls."""

from __future__ import annotations

import inspect

import pytest

from headgate.broker.core.store import LogStore, LogStoreError, StoreFailed, StoreFull
from headgate.broker.daemon.log import SqliteLogStore
from headgate.broker.simulator.engine import ListStore

CALLS = ("open", "append", "read", "trim", "mark", "find", "close")


@pytest.mark.parametrize("kind", [StoreFull, StoreFailed])
def test_an_error_says_why(kind: type[LogStoreError]) -> None:
    assert (kind("no room").reason, str(kind("no room"))) == ("no room", "no room")
    assert issubclass(kind, LogStoreError)


@pytest.mark.parametrize("store", [SqliteLogStore, ListStore])
@pytest.mark.parametrize("call", CALLS)
def test_a_store_has_each_call_with_the_same_arguments(store: type, call: str) -> None:
    asked = inspect.signature(getattr(LogStore, call)).parameters
    assert list(inspect.signature(getattr(store, call)).parameters) == list(asked)

"""What a service manager hears, over a real datagram socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.broker.daemon.notify import notify, watchdog_seconds


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The service manager's end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield channel


def test_the_manager_hears_what_is_said(manager: socket.socket) -> None:
    assert notify("READY=1")
    assert manager.recv(100) == b"READY=1"


def test_an_abstract_socket_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"headgate-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(f"\0{name}")
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        assert notify("STOPPING=1")
        assert channel.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1", "/nowhere/at/all"])
def test_without_a_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert not notify("READY=1")
    monkeypatch.delenv("NOTIFY_SOCKET")
    assert not notify("READY=1")


def test_a_manager_that_does_not_read_stops_nobody(manager: socket.socket) -> None:
    told = [notify("WATCHDOG=1") for _ in range(10_000)]
    assert told[0] and not told[-1]


def test_the_watchdog_is_fed_twice_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    assert watchdog_seconds() == 15.0
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert watchdog_seconds() == 15.0


@pytest.mark.parametrize(("microseconds", "process"), [("", ""), ("0", ""), ("x", ""), ("-5", ""), ("1000", "1")])
def test_nobody_watches(monkeypatch: pytest.MonkeyPatch, microseconds: str, process: str) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    if process:
        monkeypatch.setenv("WATCHDOG_PID", process)
    assert watchdog_seconds() is None

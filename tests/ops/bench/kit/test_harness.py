"""Processes of a measurement: children answer or say why not, servers start and end, CPU time is read."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path

import pytest

import headgate
from headgate.ops.bench.kit import (
    SOURCES,
    Child,
    Cores,
    MeasurementFailed,
    cpu_seconds,
    free_port,
    peak_bytes,
    queued_seconds,
    raise_open_files,
    running,
)
from headgate.ops.bench.kit.harness import resident_bytes

# Newer Pythons warn of fork beside threads that other tests have left; our children start none.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

LISTEN = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    listener.accept()[0].close()
"""


def fail() -> None:
    raise ValueError("the reason")


@pytest.mark.parametrize(
    ("available", "expected", "shared"),
    [
        ([3], Cores(None, None, None), True),
        ([0, 1], Cores(0, 1, 1), True),
        ([2, 5, 7, 9], Cores(2, 5, 7), False),
    ],
)
def test_the_server_has_a_core_to_itself(available: list[int], expected: Cores, shared: bool) -> None:
    cores = Cores.chosen(available)
    assert cores == expected
    assert cores.shared is shared
    assert str(cores)


def test_a_child_runs_on_its_core_and_answers() -> None:
    core = min(os.sched_getaffinity(0))
    child = Child("child", core, os.sched_getaffinity, 0)
    try:
        assert child.pid != os.getpid()
        assert child.result(10) == {core}
    finally:
        child.end()


def test_a_child_that_raises_says_why() -> None:
    child = Child("child", None, fail)
    with pytest.raises(MeasurementFailed, match="child: ValueError: the reason"):
        child.result(10)
    child.end()


def test_a_child_that_dies_has_no_result() -> None:
    child = Child("child", None, os._exit, 3)
    with pytest.raises(MeasurementFailed, match="ended without a result"):
        child.result(10)
    child.end()


def test_a_child_that_hangs_is_ended() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    child = Child("child", None, listener.accept)
    with pytest.raises(MeasurementFailed, match="no result within 0"):
        child.result(0)
    pid = child.pid
    child.end()
    listener.close()
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_runs_from_its_first_connection_to_the_end_of_the_block() -> None:
    core = min(os.sched_getaffinity(0))
    with running("server", lambda port, folder: [sys.executable, "-c", LISTEN, str(port)], core) as server:
        assert os.sched_getaffinity(server.pid) == {core}
        socket.create_connection(("127.0.0.1", server.port), 5).close()
        assert resident_bytes(server.pid) <= peak_bytes(server.pid)
    assert not Path(f"/proc/{server.pid}").exists()


def test_a_server_does_not_see_settings_meant_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_JOIN", "nowhere:1")
    script = (
        "import os; raise SystemExit(' '.join(name for name in os.environ if name.startswith('HEADGATE')) or 'none')"
    )
    with (
        pytest.raises(MeasurementFailed, match="code 1: none"),
        running("server", lambda port, folder: [sys.executable, "-c", script], None),
    ):
        pytest.fail("it cannot have started")


def test_a_server_begins_in_the_tree_that_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (SOURCES / "headgate" / "__init__.py").samefile(str(headgate.__file__))
    monkeypatch.chdir(tmp_path)
    script = "import os; raise SystemExit(os.getcwd())"
    with (
        pytest.raises(MeasurementFailed, match=f"code 1: {re.escape(str(SOURCES))}$"),
        running("server", lambda port, folder: [sys.executable, "-c", script], None),
    ):
        pytest.fail("it cannot have started")


def test_a_server_that_ends_at_once_is_quoted() -> None:
    with (
        pytest.raises(MeasurementFailed, match="server: ended with code 1: no room"),
        running("server", lambda port, folder: [sys.executable, "-c", "raise SystemExit('no room')"], None),
    ):
        pytest.fail("it cannot have started")


def test_cpu_time_grows_with_work() -> None:
    before = cpu_seconds(os.getpid())
    sum(range(3_000_000))
    assert before < cpu_seconds(os.getpid()) < before + 60


def test_time_in_the_queue_only_grows() -> None:
    before = queued_seconds(os.getpid())
    assert 0 <= before <= queued_seconds(os.getpid())
    assert queued_seconds(2**22 + 1) == 0


def test_memory_of_a_process_that_is_gone() -> None:
    with pytest.raises(OSError):
        resident_bytes(2**22 + 1)


def test_a_free_port_can_be_listened_on() -> None:
    socket.create_server(("127.0.0.1", free_port())).close()


def test_open_files_are_only_ever_raised() -> None:
    first = raise_open_files()
    assert raise_open_files() == first

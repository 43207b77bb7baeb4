"""Processes of a measurement: servers and load as children, each on its core, with the CPU time that they used.

A server is started with a folder of its own and ended by its process id. Load runs in forked children, so that
pre-encoded bytes are shared and not copied. Cores: the server has the first one to itself; generator and sink take
the next two, or share the second when there are only two.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generic, TypeVar

import headgate

from ..limits import CHILD_SECONDS_MAX, OPEN_FILES_WANTED, START_SECONDS_MAX

__all__ = [
    "Child",
    "Cores",
    "MeasurementFailed",
    "SOURCES",
    "Server",
    "cpu_seconds",
    "free_port",
    "peak_bytes",
    "queued_seconds",
    "raise_open_files",
    "resident_bytes",
    "running",
]

Result = TypeVar("Result")
_FORK = multiprocessing.get_context("fork")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

SOURCES = Path(headgate.__file__).resolve().parents[1]
"""The folder of the tree that is measured: processes that begin there import `headgate` from it."""


class MeasurementFailed(Exception):
    """A server or a child did not do its part; the run has no result."""

    def __init__(self, who: str, reason: str) -> None:
        super().__init__(f"{who}: {reason}")
        self.who = who
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Cores:
    """Which core each process is bound to; None where the machine has only one."""

    server: int | None
    generator: int | None
    sink: int | None

    @classmethod
    def chosen(cls, available: list[int] | None = None) -> Cores:
        """The same choice for every server, from the cores this process may use."""
        cores = sorted(os.sched_getaffinity(0)) if available is None else available
        if len(cores) < 2:
            return cls(None, None, None)
        return cls(cores[0], cores[1], cores[2] if len(cores) > 2 else cores[1])

    @property
    def shared(self) -> bool:
        """Generator and sink live on one core, so that their CPU shares add up to at most one."""
        return self.generator == self.sink

    def __str__(self) -> str:
        if self.server is None:
            return "no process bound to a core"
        return f"server on core {self.server}, generator on {self.generator}, sink on {self.sink}"


def bind(core: int | None) -> None:
    """Bind this process to a core."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def raise_open_files() -> int:
    """Allow this process and its children as many sockets as workload e1k needs; returns the number allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def cpu_seconds(pid: int) -> float:
    """Processor time of a process, all its threads.

    Taken from the scheduler, exact to the nanosecond, where the kernel offers it; the older clock counts in ticks of
    10 ms and misses processes that run in short bursts.
    """
    nanoseconds = _scheduled(pid, 0)
    if nanoseconds:
        return nanoseconds / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def queued_seconds(pid: int) -> float:
    """Time that the threads of a process were ready to run and had no core; 0 where the kernel does not say."""
    return _scheduled(pid, 1) / 1e9


def _scheduled(pid: int, field: int) -> int:
    try:
        tasks = [path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
        return sum(int(task.split()[field]) for task in tasks)
    except (OSError, ValueError, IndexError):
        return 0


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM now."""
    return _status_bytes(pid, "VmRSS:")


def peak_bytes(pid: int) -> int:
    """The most memory of a process that has ever been in RAM."""
    return _status_bytes(pid, "VmHWM:")


def _status_bytes(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise MeasurementFailed(f"process {pid}", f"has no {field[:-1]} any more")


class Child(Generic[Result]):
    """A function running in a forked process, bound to a core; its return value comes back through a pipe."""

    def __init__(self, name: str, core: int | None, function: Callable[..., Result], *arguments: Any) -> None:
        self.name = name
        self._pipe, far = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(target=_child, args=(far, core, function, arguments), name=name, daemon=True)
        self._process.start()
        far.close()
        self.pid: int = self._process.pid or 0

    def result(self, timeout_seconds: float = CHILD_SECONDS_MAX) -> Result:
        """What the function returned. Raises MeasurementFailed when it raised, hung or died."""
        try:
            if not self._pipe.poll(timeout_seconds):
                raise MeasurementFailed(self.name, f"no result within {timeout_seconds:g} seconds")
            done, value = self._pipe.recv()
        except (EOFError, ConnectionError) as error:
            raise MeasurementFailed(self.name, "ended without a result") from error
        if not done:
            raise MeasurementFailed(self.name, value)
        result: Result = value
        return result

    def end(self) -> None:
        """Make sure that the process is gone."""
        self._process.join(0.5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()
        self._process.close()


def _child(pipe: Connection, core: int | None, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    bind(core)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        answer = (True, function(*arguments))
    except KeyboardInterrupt:
        return
    except Exception as error:  # the parent reports it, whatever it is
        answer = (False, f"{type(error).__name__}: {error}")
    pipe.send(answer)
    pipe.close()


@dataclass(frozen=True, slots=True)
class Server:
    """A server that accepts connections."""

    name: str
    pid: int
    port: int


@contextmanager
def running(name: str, command: Callable[[int, Path], list[str]], core: int | None) -> Iterator[Server]:
    """A server process, from its first accepted connection to its end."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as place:
        folder = Path(place)
        log = folder / "output.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command(port, folder),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")},
                cwd=SOURCES,
                preexec_fn=lambda: bind(core),
            )
        try:
            _wait_until_open(name, process, port, log)
            yield Server(name, process.pid, port)
        finally:
            _end(process)


def _wait_until_open(name: str, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    give_up = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < give_up:
        if process.poll() is not None:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
            raise MeasurementFailed(name, f"ended with code {process.returncode}: {' / '.join(lines) or 'no output'}")
        try:
            socket.create_connection(("127.0.0.1", port), 0.5).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise MeasurementFailed(name, f"accepted no connection within {START_SECONDS_MAX:g} seconds")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

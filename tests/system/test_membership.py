"""Who may be of a cluster, with real processes: a copied name, other settings, another cluster, a founder, a new name.

What a user sees is the point: `/readyz`, `headgate ring`, `headgate pub`, and what the service manager is told.
"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.system.processes import Broker, headgate, running_broker, wait_until

pytestmark = pytest.mark.slow


class Brokers:
    """Brokers that run until the test is over; each has its folder."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack

    def start(self, folder: str, port: int, *words: str, **more: str) -> Broker:
        """One whose peer address is on this port."""
        (self.folder / folder).mkdir(exist_ok=True)
        address = f"127.0.0.1:{port}"
        return self.stack.enter_context(running_broker(self.folder / folder, "--peer-listen", address, *words, **more))


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with ExitStack() as stack:
        yield Brokers(tmp_path, stack)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def ready(broker: Broker) -> tuple[int, str]:
    admin = http.client.HTTPConnection(broker.admin, timeout=10)
    try:
        admin.request("GET", "/readyz")
        answer = admin.getresponse()
        return answer.status, answer.read().decode().strip()
    finally:
        admin.close()


def ring(broker: Broker) -> str:
    return headgate("--server", broker.address, "ring").stdout


def founder(brokers: Brokers, *words: str) -> tuple[Broker, int]:
    """A broker, and its peer port."""
    port = free_port()
    first = brokers.start("a", port, "--name", "a", *words)
    wait_until(lambda: ready(first)[0] == 200)
    return first, port


def stays_out(broker: Broker, seconds: float) -> None:
    """A broker alone would be ready after seven seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert ready(broker)[0] == 503
        time.sleep(0.5)


def with_a_place_that_is_remembered(brokers: Brokers) -> tuple[Broker, int]:
    """A broker, and the port where its sibling was until a moment ago."""
    first, port = founder(brokers)
    left = free_port()
    with ExitStack() as stack:
        (brokers.folder / "gone").mkdir()
        words = ("--peer-listen", f"127.0.0.1:{left}", "--name", "gone", "--join", f"127.0.0.1:{port}")
        gone = stack.enter_context(running_broker(brokers.folder / "gone", *words))
        wait_until(lambda: ready(gone)[0] == 200)
    return first, left


@pytest.mark.parametrize("run", range(10))
def test_a_copied_environment_never_becomes_a_broker_of_its_own(brokers: Brokers, run: int) -> None:
    """Ten runs, half of them with the address copied as well."""
    first, port = founder(brokers)
    own = free_port()
    join = f"127.0.0.1:{port}"
    copied = {"HEADGATE_NAME": "b", "HEADGATE_JOIN": join}
    if run % 2:
        copied["HEADGATE_ADVERTISE"] = f"127.0.0.1:{own}"
    second = brokers.start("b", own, **copied)
    wait_until(lambda: ready(second)[0] == 200)
    stray = brokers.start("copy", free_port(), **copied)
    wait_until(lambda: "refused by the cluster" in ready(stray)[1])
    done = headgate("--server", stray.address, "pub", "quotes/x", "--attr", "n=1")
    assert done.returncode != 0 and "not let into its cluster" in done.stderr
    assert "two brokers are named b" in ring(stray) and "a and b" not in ring(stray)
    if run < 2:
        stays_out(stray, 12.0)
    assert ready(stray)[0] == 503
    assert ready(second)[0] == ready(first)[0] == 200
    assert "2 brokers form" in ring(first)
    assert [line for line in first.lines() if line["event"] == "broker refused"], "both sides say so"


def test_what_must_be_alike_is_compared_and_the_difference_named(brokers: Brokers) -> None:
    first, port = founder(brokers)
    other = brokers.start("b", free_port(), "--name", "b", "--join", f"127.0.0.1:{port}", "--log-copies", "3")
    wait_until(lambda: "refused by the cluster" in ready(other)[1])
    assert "the same log_copies, and a has 2 where b has 3" in ready(other)[1]
    assert "one broker, a:" in ring(first)


def test_how_many_copies_of_keys_there_are_is_a_setting_of_the_cluster(brokers: Brokers) -> None:
    first, port = founder(brokers, "--replicas", "0")
    join = ("--join", f"127.0.0.1:{port}", "--replicas")
    brokers.start("b", free_port(), "--name", "b", *join, "0")
    wait_until(lambda: "2 brokers form" in ring(first))
    assert "0 copies beside it" in ring(first), ring(first)
    other = brokers.start("c", free_port(), "--name", "c", *join, "1")
    wait_until(lambda: "the same replicas, and a has 0 where c has 1" in ready(other)[1])


def test_clusters_of_two_names_never_link_and_metrics_have_the_name(brokers: Brokers) -> None:
    first, port = founder(brokers)
    words = ("--name", "b", "--join", f"127.0.0.1:{port}", "--cluster", "staging")
    other = brokers.start("b", free_port(), *words)
    wait_until(lambda: "refused by the cluster" in ready(other)[1])
    for text in (ready(other)[1], str([line for line in first.lines() if line["event"] == "broker refused"])):
        assert "'headgate'" in text and "'staging'" in text, text
    assert "one broker, a:" in ring(first)


def test_a_founder_on_a_remembered_address_is_left_alone(brokers: Brokers) -> None:
    first, left = with_a_place_that_is_remembered(brokers)
    began = time.monotonic()
    other = brokers.start("new", left, "--name", "new")
    wait_until(lambda: ready(other)[0] == 200)
    wait_until(lambda: any("was told to join nobody" in str(line) for line in first.lines()))
    while time.monotonic() < began + 10.0:
        assert "one broker, new:" in ring(other) and "one broker, a" in ring(first)
        time.sleep(0.5)


@pytest.mark.parametrize("join", ["itself", "the dead"])
def test_a_new_name_on_a_remembered_address_comes_to_rest(brokers: Brokers, join: str) -> None:
    _, left = with_a_place_that_is_remembered(brokers)
    seeds = f"127.0.0.1:{left if join == 'itself' else free_port()}"
    other = brokers.start("new", left, "--name", "new", "--join", seeds)
    wait_until(lambda: ready(other)[0] == 200, 15.0)
    assert ("2 brokers form" if join == "the dead" else "one broker, new:") in ring(other)


def test_the_service_manager_hears_ready_when_clients_may_come(brokers: Brokers, tmp_path: Path) -> None:
    """A broker that waits for others says so until then; the manager waits with it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        seed = f"127.0.0.1:{free_port()}"
        broker = brokers.start("a", free_port(), "--join", seed, NOTIFY_SOCKET=str(tmp_path / "notify"))
        said = []
        while (word := manager.recv(400)) != b"READY=1\nSTATUS=ready":
            assert word == b"EXTEND_TIMEOUT_USEC=30000000\nSTATUS=starting"
            said.append(word)
        assert ready(broker)[0] == 200 and len(said) > 4

"""A cluster of processes: what is known without starting one. Starting, killing and stopping is in tests/system."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headgate.ops.bench.kit import SOURCES, Fleet, MeasurementFailed, Member
from headgate.ops.bench.kit import brokers as fleet
from headgate.ops.bench.kit.brokers import ring_of
from tests.support.live_broker import live_broker


def ring(*states: str, settled: bool = True) -> dict[str, Any]:
    brokers = [{"name": f"b{number}", "state": state} for number, state in enumerate(states)]
    return {"brokers": brokers, "settled": settled, "role": "mesh"}


def test_every_broker_has_its_ports_and_joins_the_others(tmp_path: Path) -> None:
    cluster = Fleet(3, tmp_path)
    ports = {address for one in cluster.members for address in (one.address, one.peer_address, one.admin)}
    assert len(ports) == 9
    assert [member.name for member in cluster.members] == ["b0", "b1", "b2"]
    for member in cluster.members:
        others = [one.peer_address for one in cluster.members if one is not member]
        assert member._seeds == others
    assert cluster.named("b1") is cluster.members[1]
    assert cluster.addresses_from(4).split(",") == [cluster.addresses[place] for place in (1, 2, 0)]


def test_no_outgoing_connection_can_take_a_dead_brokers_port(tmp_path: Path) -> None:
    spans = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not spans.exists():
        pytest.skip("this system does not say which ports it gives to outgoing connections")
    first = int(spans.read_text().split()[0])
    assert all(int(one.address.rpartition(":")[2]) < first for one in Fleet(5, tmp_path).members)


def test_a_broker_is_of_the_tree_that_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environments = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **more: environments.append(more["env"]))
    Member("b0", (1, 2, 3), tmp_path, []).start()
    assert environments[0]["PYTHONPATH"].split(os.pathsep)[0] == str(SOURCES)


def test_a_machine_without_free_ports_is_named(tmp_path: Path) -> None:
    with pytest.raises(MeasurementFailed, match="3 free ports"):
        Fleet(1, tmp_path, range(20_000, 20_002))


def test_logs_of_all_lives_are_read_and_faults_found(tmp_path: Path) -> None:
    member = Member("b0", (1, 2, 3), tmp_path, [])
    member.lives = 2
    member.log(1).write_text('{"event": "listening", "level": "info"}\nTraceback\n{"event": "cut')
    member.log(2).write_text('{"event": "fault", "level": "error"}\n')
    assert [line["event"] for line in member.lines()] == ["listening", "fault"]
    (fault,) = member.faults()
    assert '"fault"' in fault


def test_a_cluster_is_whole_when_all_are_up_and_settled() -> None:
    assert fleet._whole(ring("up", "up"), 2)
    assert not fleet._whole(ring("up", "down"), 2)
    assert not fleet._whole(ring("up", "up", settled=False), 2)
    assert not fleet._whole(ring("up", "up", "up"), 2), "one more than live is one too many"


async def test_the_ring_is_asked_for_and_silence_is_no_answer(tmp_path: Path) -> None:
    async with live_broker() as broker:
        found = await ring_of(broker.address)
        assert found is not None and found["broker"] == "test"
    assert await ring_of(broker.address) is None


async def test_a_cluster_that_does_not_settle_says_how_its_brokers_see_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = Fleet(2, tmp_path)
    monkeypatch.setattr(Member, "alive", True)
    views = {cluster.members[0].address: ring("up", "down", settled=False)}

    async def seen(address: str) -> dict[str, Any] | None:
        return views.get(address)

    monkeypatch.setattr(fleet, "ring_of", seen)
    with pytest.raises(MeasurementFailed, match="b0 in a mesh, not settled, sees b0 up, b1 down; b1 does not say"):
        await cluster.settled(0.01)
    views.update({member.address: ring("up", "up") for member in cluster.members})
    assert await cluster.settled(1.0) < 1.0


async def test_a_broker_that_ends_at_once_is_quoted(tmp_path: Path) -> None:
    member = Member("b0", (1, 2, 3), tmp_path, [])
    member.lives = 1
    member.log(1).write_text("cannot start: no\n")
    member._process = subprocess.Popen([sys.executable, "-c", ""])
    await asyncio.to_thread(member._process.wait)
    with pytest.raises(MeasurementFailed, match="b0: does not listen: cannot start: no"):
        await member.listening()
    member.end()

"""The cost of durability: what is compared with what, and that only what is in the log was measured."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.ops.bench.kit import MeasurementFailed
from headgate.ops.bench.log import durability
from headgate.ops.bench.log.durability import CASES, Case, Cost, batches_under_way, measure, ratio
from headgate.protocol.aio import Client
from headgate.protocol.limits import PUBLISH_WINDOW_DEFAULT, QUEUE_BYTES_MAX
from tests.support.live_broker import live_broker

STORED = Case("stored", 1, "stored", "stored")
MEMORY = Case("memory", 1, "memory", "accepted")


def cost(title: str, size: int, rate: float, p50: float) -> Cost:
    return Cost(title, size, rate, p50, 2 * p50, 100, 3 * p50)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    durability.add_arguments(parser)
    return parser.parse_args(words, argparse.Namespace(synchronisations=3))


def test_the_client_never_waits_for_room_of_its_own() -> None:
    sizes = [(size, batches_under_way(size)) for size in (1, 100, 1_000)]
    assert sizes == [(1, 128), (100, 128), (1_000, 32)]
    for size, batches in sizes:
        assert batches < PUBLISH_WINDOW_DEFAULT
        assert 2 * batches * size * 160 < QUEUE_BYTES_MAX


def test_ratios_are_to_the_first_case_with_the_same_batches() -> None:
    costs = [cost("a", 1, 100.0, 0.001), cost("a", 100, 1_000.0, 0.002), cost("b", 100, 250.0, 0.005)]
    assert ratio(costs[2], costs) == (0.25, 2.5)
    assert ratio(costs[0], costs) == (1.0, 1.0)


def test_what_is_asked_for_is_measured() -> None:
    kinds = [(case.brokers, case.durability, case.mode) for case in CASES]
    assert kinds[0] == (1, "memory", "accepted")
    assert {(1, "stored", "accepted"), (1, "stored", "stored"), (3, "stored", "stored")} < set(kinds)
    assert len({case.stream(size) for case in CASES if case.brokers == 1 for size in (1, 100)}) == 6


async def test_every_event_that_was_counted_is_in_the_log() -> None:
    async with live_broker() as broker:
        costs = [await durability._measure(broker.address, case, 10, 0.05) for case in (MEMORY, STORED)]
    for one in costs:
        assert one.batch_events == 10 and one.acknowledgements >= 1
        assert 0 < one.p50_seconds <= one.p99_seconds and one.events_per_second > 0
        assert one.delivered_p50_seconds > 0


class Forgetful:
    """A client whose broker acknowledges everything and stores nothing."""

    async def publish_batch(self, topic: str, columns: object, bodies: list[bytes], *, mode: str) -> None:
        assert (topic, columns, mode) == ("stored-stored-1", None, "stored")

    async def logs(self, stream: str) -> list[Any]:
        return []


async def test_a_log_without_what_was_acknowledged_is_no_result() -> None:
    publisher = durability._Publisher(cast(Client, Forgetful()), STORED, 1)
    await publisher.settled()
    await publisher.once()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(MeasurementFailed, match=r"1 events .* 0 are in the log"):
        patch.setattr(durability, "DURABILITY_DRAIN_SECONDS_MAX", -1.0)
        await publisher.settled()


def test_a_run_prints_every_case_and_its_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def measured(cases: object, sizes: tuple[int, ...], seconds: float, directory: Path) -> list[Cost]:
        assert (cases, seconds, directory) == (CASES, 0.5, tmp_path.resolve())
        return [
            cost(one.title, size, 50_000.0 / (place + 1), 0.001) for place, one in enumerate(CASES) for size in sizes
        ]

    monkeypatch.setattr(durability, "measure", measured)
    file = tmp_path / "costs.json"
    words = ("--seconds", "0.5", "--directory", str(tmp_path), "--json", str(file))
    assert durability.run(parsed(*words)) == 0
    printed = capsys.readouterr().out
    assert "one synchronisation of a bare file" in printed and "0.50" in printed and "0.20" in printed
    assert all(case.title in printed for case in CASES)
    assert len(json.loads(file.read_text())["costs"]) == 18


def test_what_was_not_acknowledged_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(*arguments: object) -> list[Cost]:
        raise MeasurementFailed("stored-stored-1", "5 events were acknowledged, 4 are in the log")

    monkeypatch.setattr(durability, "measure", broken)
    assert durability.run(parsed("--directory", str(tmp_path))) == 1
    assert "4 are in the log" in capsys.readouterr().err


@pytest.mark.slow
async def test_real_brokers_one_and_three(tmp_path: Path) -> None:
    costs = await measure([MEMORY, STORED, CASES[-1]], [1, 100], 0.2, tmp_path)
    assert [(one.title, one.batch_events) for one in costs] == [
        (title, size) for title in ("memory", "stored", CASES[-1].title) for size in (1, 100)
    ]
    assert list(tmp_path.iterdir()) == []

"""Failover times: their sum, their table and the promise. The measuring itself is in tests/system/test_cluster.py."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any, cast

import pytest

from headgate.ops.bench.cluster import failover
from headgate.ops.bench.cluster.failover import Times, owned_by, summary
from headgate.ops.bench.kit import MeasurementFailed
from headgate.protocol.aio import Client

TIMES = Times(0.1, 2.0, 1.5, 4.5, 4.0, 4.6)


class Oracle:
    """Answers `explain`: every third number lives on b1 alone, every sixth on two brokers."""

    async def ask(self, verb: str, pattern: str, condition: str) -> dict[str, Any]:
        assert (verb, pattern) == ("explain", "failover")
        number = int(condition.removeprefix("n = "))
        owners = ["b1"] if number % 3 == 0 else ["b0"]
        return {"lives_on": [*owners, "b2"] if number % 6 == 0 else owners}


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    failover.add_arguments(parser)
    return parser.parse_args(words)


async def test_numbers_are_found_whose_key_is_one_brokers() -> None:
    oracle = cast(Client, Oracle())
    assert await owned_by(oracle, "b1", 2) == [3, 9]
    assert await owned_by(oracle, "b0", 1, first=3) == [4]
    with pytest.raises(MeasurementFailed, match="on b7"):
        await owned_by(oracle, "b7", 1)


def test_the_total_is_the_last_part() -> None:
    assert TIMES.total == 4.6
    assert replace(TIMES, subscribed=9.0).total == 9.0


def test_the_summary_has_every_part_and_the_total() -> None:
    rows = summary([TIMES, replace(TIMES, link_down=0.5), replace(TIMES, link_down=0.2)])
    assert rows[0] == ("link down", 0.2, 0.5)
    assert rows[-1] == ("total", 4.6, 4.6)
    assert len(rows) == 7


@pytest.mark.parametrize(("served", "code", "words"), [(9.9, 0, "was kept"), (10.1, 1, "BROKEN")])
def test_the_promise_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], served: float, code: int, words: str
) -> None:
    async def measured(brokers: int, rounds: int) -> list[Times]:
        return [TIMES, replace(TIMES, served=served)][:rounds] if brokers == 5 else [TIMES]

    monkeypatch.setattr(failover, "failover", measured)
    assert failover.run(arguments("--rounds", "2")) == code
    out = capsys.readouterr().out
    assert words in out and "declared dead" in out and "5 brokers" in out


def test_a_cluster_that_never_comes_back_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(brokers: int, rounds: int) -> list[Times]:
        raise MeasurementFailed("the cluster", "this never came: served")

    monkeypatch.setattr(failover, "failover", broken)
    assert failover.run(arguments()) == 1
    assert "never came" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--brokers", "2"), ("--rounds", "0")])
def test_what_cannot_be_measured_is_refused(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert failover.run(arguments(*words)) == 2
    assert "3 or more" in capsys.readouterr().err

"""What rights cost: a cell is a median beside the first case, and a measurement covers a case with everything."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from headgate.ops.bench.kit import Cores, MeasurementFailed
from headgate.ops.bench.wire import rights
from headgate.ops.bench.wire.rights import CASES, Case, Cost


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    rights.add_arguments(parser)
    return parser.parse_args(list(words))


def test_a_cell_is_a_median_beside_the_first_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rights, "installed", lambda: CASES)
    others = len(CASES) - 2
    rates = iter([100.0] * (1 + others) + [500.0] + [100.0] * others)

    def measure(case: Case, *details: object) -> Cost:
        if case.name == "names":
            raise MeasurementFailed(case.name, "refused")
        return Cost(next(rates), 0.001, 0.5)

    monkeypatch.setattr(rights, "measure", measure)
    assert rights.run(arguments("--rounds", "1", "--json")) == 1
    captured = capsys.readouterr()
    assert "names: refused" in captured.err
    rows = [json.loads(line) for line in captured.out.splitlines()]
    assert [row["case"] for row in rows] == [case.name for case in CASES if case.name != "names"]
    assert {row["rate_ratio"] for row in rows} == {1.0}
    assert rights.run(arguments("--rounds", "1")) == 1
    assert "0.20" in capsys.readouterr().out


@pytest.mark.slow
def test_a_broker_with_everything_is_measured(tmp_path: Path) -> None:
    realm = rights._Realm(tmp_path)
    for case in [one for one in rights.installed() if one.tls and (one.roles or one.nats)]:
        cost = rights.measure(case, realm, 0.2, Cores.chosen())
        assert cost.rate > 0 and cost.lone > 0

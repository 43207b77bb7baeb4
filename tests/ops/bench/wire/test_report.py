"""The report: medians, ratios to the reference, verdicts, and words where nothing was measured."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from rich.console import Console

from headgate.ops.bench.kit import build
from headgate.ops.bench.wire import report
from headgate.ops.bench.wire.latency import Latency
from headgate.ops.bench.wire.load import Outcome, Shares


def outcome(rate: float, lost: int = 0) -> Outcome:
    events = round(rate) * 2
    return Outcome(events, events, events - lost, events, 2.0, Shares(1.0, 0.25, 0.1), 1 << 20)


def printed(show: Callable[[Console], None]) -> str:
    console = Console(width=160, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        show(console)
        return console.export_text()


OUTCOMES = {
    "a": {"headgate": [outcome(300), outcome(900), outcome(400)], "nats": [outcome(200)], "redis": []},
    "b": {"headgate": [outcome(100)], "nats": [outcome(200)]},
}
LATENCIES = {"headgate": [Latency(44.0, 90.0, 1000, 0, 0.05)], "nats": [Latency(40.0, 60.0, 1000, 0, 0.04)]}


def test_rates_are_medians_and_ratios_are_to_the_reference() -> None:
    text = printed(lambda console: report.print_outcomes(build("a"), OUTCOMES["a"], True, console))
    (row,) = [line for line in text.splitlines() if "headgate" in line]
    assert [word.strip() for word in row.split("│")[1:-1]] == [
        "headgate", "400", "300", "900", "2.00", "400", "100%", "25%", "10%", "server", "0",
    ]  # fmt: skip
    (missing,) = [line for line in text.splitlines() if "redis" in line]
    assert "not measured" in missing


def test_without_the_reference_there_is_no_ratio() -> None:
    text = printed(lambda console: report.print_outcomes(build("a"), {"headgate": [outcome(5)]}, True, console))
    (row,) = [line for line in text.splitlines() if "headgate" in line]
    assert row.split("│")[5].strip() == "-"


def test_loss_is_shown() -> None:
    text = printed(lambda console: report.print_outcomes(build("a"), {"redis": [outcome(50, lost=7)]}, True, console))
    (row,) = [line for line in text.splitlines() if "redis" in line]
    assert row.split("│")[-2].strip() == "7"


def test_targets_have_a_verdict() -> None:
    text = printed(lambda console: report.print_targets(OUTCOMES, LATENCIES, console))
    verdicts = {line.split("│")[1].strip(): line.split("│")[5].strip() for line in text.splitlines() if "│" in line}
    assert verdicts["a"] == "reached"
    assert verdicts["b"] == "MISSED"
    assert verdicts["c"] == verdicts["e1k"] == "-"
    assert verdicts["d, p50"] == "reached"
    assert verdicts["d, p99"] == "MISSED"


def test_latencies_with_and_without_a_reference() -> None:
    assert report.latency_ratio(LATENCIES, "headgate") == (pytest.approx(1.1), pytest.approx(1.5))
    assert report.latency_ratio({"headgate": LATENCIES["headgate"]}, "headgate") == (None, None)
    text = printed(lambda console: report.print_latencies({**LATENCIES, "redis": []}, console))
    assert "1.10" in text
    assert "not measured" in text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (9999, "9999"), (10_000, "10.0 k"), (1e6, "1.00 M"), (15e6, "15.0 M")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert report.short(value) == text


def test_the_json_holds_every_round() -> None:
    value = json.loads(json.dumps(report.as_json(OUTCOMES, LATENCIES, {"nats": "2.9", "redis": None}, "cores")))
    assert value["versions"] == {"nats": "2.9", "redis": None}
    assert value["workloads"]["a"]["headgate"]["rate"] == 400
    assert [one["rate"] for one in value["workloads"]["a"]["headgate"]["rounds"]] == [300, 900, 400]
    assert value["workloads"]["a"]["redis"] == {"rate": None, "rate_of_core": None, "rounds": []}
    assert value["latency"]["nats"][0]["p99"] == 60.0

"""Slow consumers: what is promised, what is measured, and when the promise counts as kept."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from headgate.broker.core.limits import OUTBOX_BYTES_DEFAULT, OUTBOX_BYTES_TOTAL_DEFAULT
from headgate.ops.bench.kit import Cores, Workload
from headgate.ops.bench.peers import Peer
from headgate.ops.bench.wire import slow
from headgate.ops.bench.wire.load import Outcome, Shares

MIB = 1 << 20


def outcome(events: int, reading: int, peak_bytes: int) -> Outcome:
    return Outcome(events, events * reading, events * reading, 0, 1.0, Shares(1.0, 0.1, 0.1), peak_bytes)


def test_the_declared_bound_follows_the_outboxes() -> None:
    assert slow.declared_bytes(0) == 0
    assert slow.declared_bytes(1) >= OUTBOX_BYTES_DEFAULT
    assert slow.declared_bytes(49) < OUTBOX_BYTES_TOTAL_DEFAULT + 49 * OUTBOX_BYTES_DEFAULT


def test_the_others_rate_is_counted_for_each_who_reads() -> None:
    verdict = slow.judge([outcome(1000, 50, 10 * MIB)], [outcome(950, 49, 12 * MIB)], 1)
    assert verdict.rate_alone == 1000
    assert verdict.rate_beside == 950
    assert verdict.change == pytest.approx(-0.05)
    assert verdict.kept


def test_a_promise_is_broken_by_rate_memory_or_loss() -> None:
    kept = slow.judge([outcome(1000, 50, 10 * MIB)], [outcome(1000, 49, 12 * MIB)], 1)
    assert kept.kept
    assert not replace(kept, rate_beside=899).kept
    assert not replace(kept, bytes_beside=kept.bytes_alone + kept.bytes_declared + 1).kept
    assert not replace(kept, lost=1).kept


@pytest.mark.parametrize(("beside", "code", "words"), [(980, 0, "held"), (500, 1, "BROKEN")])
def test_the_verdict_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], beside: int, code: int, words: str
) -> None:
    def measure(peer: Peer, workload: Workload, seconds: float, cores: Cores, stalled: int = 0) -> Outcome:
        return outcome(beside if stalled else 1000, 50 - stalled, 10 * MIB)

    monkeypatch.setattr(slow, "measure", measure)
    parser = argparse.ArgumentParser()
    slow.add_arguments(parser)
    assert slow.run(parser.parse_args([])) == code
    assert words in capsys.readouterr().out


def test_somebody_has_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert slow.run(argparse.Namespace(stalled=50, rounds=1, seconds=1.0)) == 2
    assert "somebody has to read" in capsys.readouterr().err

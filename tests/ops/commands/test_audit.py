"""`headgate audit`: hands its options and the address to the job."""

from __future__ import annotations

import argparse

import pytest

from headgate.ops.cli import main
from headgate.ops.jobs import audit


def test_the_job_gets_the_options_and_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[argparse.Namespace, str]] = []

    def run_audit(arguments: argparse.Namespace, servers: str) -> int:
        told.append((arguments, servers))
        return 1

    monkeypatch.setattr("headgate.ops.jobs.run_audit", run_audit)
    assert main(["--server", "b1:7400,b2:7400", "audit", "--stream", "quotes", "--stream", "orders", "--json"]) == 1
    ((arguments, servers),) = told
    assert servers == "b1:7400,b2:7400" and arguments.stream == ["quotes", "orders"] and arguments.json


def test_without_spark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "missing_parts", lambda: "PySpark: pip install 'headgate[spark]'")
    assert main(["audit"]) == 1
    assert "pip install 'headgate[spark]'" in capsys.readouterr().err


def test_without_a_broker_java_is_not_even_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "missing_parts", lambda: "")
    monkeypatch.setattr(audit, "start_session", lambda *details: pytest.fail("nobody is there to ask"))
    assert main(["--server", "127.0.0.1:1", "audit"]) == 3
    assert "cannot connect" in capsys.readouterr().err


def test_a_bad_option_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(audit, "missing_parts", lambda: "")
    assert main(["audit", "--since", "yesterday"]) == 2
    assert "15m" in capsys.readouterr().err

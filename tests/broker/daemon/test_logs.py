"""Lines in either form; floods are cut and counted, secrets struck out, texts of strangers tamed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from headgate.broker.daemon.limits import LOG_EVENTS_MAX, LOG_LINES_PER_SECOND_MAX, LOG_TEXT_LENGTH_MAX
from headgate.broker.daemon.logs import FloodGate, configure_logs, redact, tame
from headgate.protocol.messages import Hello


@pytest.fixture(autouse=True)
def _structlog_as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == "", "logs go to stderr: stdout belongs to whoever starts us"
    return [json.loads(line) for line in captured.err.splitlines()]


def test_json_has_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", "json")
    structlog.get_logger().info("listening", clients="127.0.0.1:7400", number=3)
    structlog.get_logger().debug("not this one")
    (line,) = lines(capsys)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "listening", "level": "info", "clients": "127.0.0.1:7400", "number": 3}


@pytest.mark.parametrize(
    ("at_terminal", "no_color", "coloured"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_lines_for_people_have_colours_at_a_terminal_that_wants_them(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    at_terminal: bool,
    no_color: str,
    coloured: bool,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: at_terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    configure_logs("info", "console")
    structlog.get_logger().info("listening", clients="127.0.0.1:7400")
    assert ("\x1b" in capsys.readouterr().err) is coloured


def test_auto_is_json_away_from_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("warning", "auto")
    structlog.get_logger().warning("here")
    assert lines(capsys)[0]["event"] == "here"


def test_console_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("debug", "console")
    structlog.get_logger().debug("here", name="ann")
    text = capsys.readouterr().err
    assert "here" in text and "ann" in text and not text.startswith("{")


@pytest.mark.parametrize(("settings", "colours"), [({}, True), ({"NO_COLOR": "1"}, False), (None, False)])
def test_colours_are_for_a_terminal_without_no_color(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], settings: dict[str, str] | None, colours: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in (settings or {}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr.isatty", lambda: settings is not None)
    configure_logs("info", "console")
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        structlog.get_logger().exception("fault", name="ann")
    assert ("\x1b" in capsys.readouterr().err) == colours


@pytest.mark.parametrize("form", ["json", "console"])
def test_an_exception_comes_with_its_traceback(capsys: pytest.CaptureFixture[str], form: str) -> None:
    configure_logs("info", form)
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        structlog.get_logger().exception("fault")
    text = capsys.readouterr().err
    assert "Traceback" in text and "RuntimeError" in text and "broken" in text


def test_a_flood_is_cut_and_the_rest_counted() -> None:
    now = 100.0
    gate = FloodGate(lambda: now)

    def log(kind: str) -> Any:
        try:
            return gate(None, "warning", {"event": kind})
        except structlog.DropEvent:
            return None

    passed = [line for line in (log("refused") for _ in range(1000)) if line]
    assert passed == [{"event": "refused"}] * LOG_LINES_PER_SECOND_MAX
    assert log("another kind") == {"event": "another kind"}
    now += 1
    assert log("refused") == {"event": "refused", "suppressed": 1000 - LOG_LINES_PER_SECOND_MAX}
    assert log("refused") == {"event": "refused"}


def test_kinds_without_end_do_not_fill_the_memory() -> None:
    gate = FloodGate(lambda: 0.0)
    for number in range(10 * LOG_EVENTS_MAX):
        gate(None, "info", {"event": f"kind {number}"})
    assert len(gate._kinds) <= LOG_EVENTS_MAX


def test_secrets_are_struck_out() -> None:
    hello = Hello(name="ann", credentials="hunter2")
    line = {"event": "x", "credentials": "hunter2", "password": b"p", "hello": hello, "list": [hello], "name": "ann"}
    told = redact(None, "info", line)
    assert "hunter2" not in repr(told)
    assert told == {
        "event": "x",
        "credentials": "(redacted)",
        "password": "(redacted)",
        "hello": "(Hello)",
        "list": "(list)",
        "name": "ann",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ótê — 東", "Ótê — 東"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ('one\nlevel="info"', 'one\\nlevel="info"'),
        ("\x00", "\\x00"),
    ],
)
def test_a_strangers_text_is_tamed(text: str, shown: str) -> None:
    assert tame(None, "info", {"event": "x", "client": text})["client"] == shown


def test_a_long_text_is_cut() -> None:
    shown = tame(None, "info", {"event": "x", "client": "n" * 100_000})["client"]
    assert shown == "n" * LOG_TEXT_LENGTH_MAX + "… (100000 characters)"

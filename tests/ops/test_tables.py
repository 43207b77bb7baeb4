"""Answers for people are whole, aligned, and harmless to a terminal."""

from __future__ import annotations

import io

import pytest

from headgate.ops.bench.wire import console
from headgate.ops.demo.view import View
from headgate.ops.tables import plain, print_json, print_map, print_table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "yes"),
        (1234567, "1234567"),
        (12345.5, "12345.5"),
        (2.5, "2.5"),
        (3.0, "3"),
        ([], "-"),
        (["a", 1], "a, 1"),
        ({"slow": 0, "lost": 2}, "slow 0, lost 2"),
        ("[bold]x[/]", "[bold]x[/]"),
        ("a\x1b[31m\n", "a\\x1b[31m\\n"),
        ("é", "é"),
    ],
)
def test_plain(value: object, text: str) -> None:
    assert plain(value) == text


def test_a_table_shows_texts_as_they_are_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    condition = "symbol IN ('[red]', 'x') AND " * 5
    print_table(("id", "condition"), [(7, condition), (12345, "\x1b[2J")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["id", "condition"]
    assert lines[1].startswith("    7  ")
    assert condition.strip() in lines[1]
    assert "\\x1b[2J" in lines[2]


def test_a_map_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_map({"a": 1, "long": "x"})
    assert capsys.readouterr().out == "a     1\nlong  x\n"


def test_no_color_means_no_escapes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table(("id",), [("a",)])
    assert "\x1b[1m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(("id",), [("a",)])
    assert capsys.readouterr().out == "id\na \n"


@pytest.mark.parametrize(("encoding", "text"), [("utf-8", "Αθήνα"), ("latin-1", "\\u0391\\u03b8\\u03ae\\u03bd\\u03b1")])
def test_json_has_letters_where_they_can_be_said(monkeypatch: pytest.MonkeyPatch, encoding: str, text: str) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stdout", out)
    print_json(["Αθήνα", "\x9b"])
    out.seek(0)
    assert out.read() == f'["{text}","\\u009b"]\n'


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"a": "\n"}])
    assert capsys.readouterr().out == '[{"a":"\\n"}]\n'


class Terminal(io.StringIO):
    """A terminal that keeps what is written."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("setting", ["", "1"])
def test_no_color_takes_away_colours_and_bold_and_nothing_else(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", setting)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    print_table(("a", "b"), [[1, "x"]])
    table = terminal.getvalue()
    console().print("failed: 1 of 2", style="red")
    View(False, terminal).say("said")
    escapes = [part.count("\x1b") for part in (table, terminal.getvalue()[len(table) :])]
    assert all(count == 0 for count in escapes) if setting else all(escapes)
    assert "1  x" in table

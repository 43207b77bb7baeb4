"""Answers for people are whole, aligned, and harmless to a terminal."""

from __future__ import annotations

import pytest

from headgate.ops.tables import plain, print_json, print_map, print_table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "yes"),
        (1234567, "1,234,567"),
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
    assert lines[1].startswith("     7")
    assert condition.strip() in lines[1]
    assert "\\x1b[2J" in lines[2]


def test_a_map_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_map({"a": 1, "long": "x"})
    assert capsys.readouterr().out == "a     1\nlong  x\n"


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"a": "\n"}])
    assert capsys.readouterr().out == '[{"a":"\\n"}]\n'

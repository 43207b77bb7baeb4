"""matching/likes.py: LIKE in linear time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching.likes import compile_like, literal_prefix, split_like


def dumb_like(pattern: str, text: str) -> bool:
    """The dumb twin: by the book, and exponential. No escapes."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return dumb_like(pattern[1:], text) or (bool(text) and dumb_like(pattern, text[1:]))
    return bool(text) and pattern[0] in ("_", text[0]) and dumb_like(pattern[1:], text[1:])


@given(st.text("ab_%", max_size=9), st.text("abc", max_size=12))
def test_agrees_with_the_dumb_twin(pattern: str, text: str) -> None:
    assert compile_like(pattern)(text) is dumb_like(pattern, text)


@given(st.text("ab%_\\", max_size=8), st.text("ab%_\\", max_size=8))
def test_escaping_makes_every_character_stand_for_itself(pattern: str, text: str) -> None:
    escaped = "".join("\\" + c if c in "%_\\" else c for c in pattern)
    assert compile_like(escaped)(text) is (pattern == text)


@pytest.mark.parametrize(
    ("pattern", "text", "verdict"),
    [
        ("", "", True),
        ("", "a", False),
        ("%", "", True),
        ("%", "line\nbreak", True),
        ("_", "\n", True),
        ("_", "😀", True),
        ("_", "", False),
        ("OTE%", "OTE.AT", True),
        ("%.AT", "OTE.AT", True),
        ("%E.A%", "OTE.AT", True),
        ("ab%ba", "aba", False),
        ("a%a", "a", False),
        ("a%b%c", "aXbYc", True),
        ("%b_d%", "abbcdd", True),
        ("%a_a%a_a", "abaXaca", True),
        ("%a_a%a_a", "abaca", False),
        ("A", "a", False),
    ],
)
def test_examples(pattern: str, text: str, verdict: bool) -> None:
    assert compile_like(pattern)(text) is verdict


def test_escape_may_be_another_character() -> None:
    assert compile_like("a!%", "!")("a%") and not compile_like("a!%", "!")("ab")
    assert compile_like("a\\b", "!")("a\\b")


@pytest.mark.parametrize(("pattern", "escape"), [("a\\b", None), ("a\\", None), ("a!b", "!"), ("!", "!")])
def test_a_wrong_escape_is_an_error(pattern: str, escape: str | None) -> None:
    with pytest.raises(ValueError, match="escape character"):
        split_like(pattern, escape)


def test_literal_prefix() -> None:
    assert [literal_prefix(p) for p in ("abc", "ab%c", "a_c", "%", "a\\%b%")] == ["abc", "ab", "a", "", "a%b"]


class CountingText(str):
    """A text that counts how often one of its characters is looked at."""

    looks = 0

    def __getitem__(self, key: object) -> str:
        type(self).looks += 1
        return super().__getitem__(key)  # type: ignore[index]


def test_a_piece_with_wildcards_looks_at_each_character_once() -> None:
    text = CountingText("a" * 5000)
    assert not compile_like("%a_a_a_a_a_b%")(text)
    assert CountingText.looks <= 5010


def test_many_percent_signs_do_not_backtrack() -> None:
    assert not compile_like("%a" * 500 + "%b")("a" * 20_000)

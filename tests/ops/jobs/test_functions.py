"""`headgate_match` means what a subscription means."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.ops.jobs.functions import headgate_match


class Row(dict[str, Any]):
    """What Spark hands a function for a struct."""

    def asDict(self) -> dict[str, Any]:
        return dict(self)


TYPED = {"price": Row(l=None, d=8.6, s=None, b=None), "name": Row(l=None, d=None, s="OTE", b=None)}


@pytest.mark.parametrize(
    ("pattern", "condition", "topic", "verdict"),
    [
        ("quotes/*/OTE", "price > 8.5", "quotes/A/OTE", True),
        ("quotes/*/OTE", "price > 8.7", "quotes/A/OTE", False),
        ("quotes/*/OTE", "price > 8.5", "quotes/A/IBM", False),
        ("quotes", "volume > 5", "quotes/A", None),
        ("quotes", "price > 'a'", "quotes/A", None),
        ("quotes", "", "quotes/A", True),
        ("quotes", None, "quotes/A", True),
        (None, "price > 8.5", "quotes/A", None),
        ("quotes", "price > 8.5", None, None),
    ],
)
def test_it_is_the_verdict_of_a_subscription(pattern: Any, condition: Any, topic: Any, verdict: bool | None) -> None:
    assert headgate_match(pattern, condition, topic, TYPED) is verdict


def test_attributes_as_a_log_gives_them() -> None:
    assert headgate_match("q", "n = 1", "q", Row(n=1))
    assert headgate_match("q", "n = '1'", "q", {"n": "1"})
    assert headgate_match("q", "n IS NULL", "q", None)


@pytest.mark.parametrize(("pattern", "condition"), [("q/#", ""), ("q", "n >"), ("q", "DELTA(n) > 1")])
def test_what_can_be_no_subscription_is_told(pattern: str, condition: str) -> None:
    with pytest.raises(ValueError, match="headgate_match"):
        headgate_match(pattern, condition, "q", {})


BOOK = b"<bib><book><author/><title/></book></bib>"


@pytest.mark.parametrize(
    ("condition", "value", "content_type", "verdict"),
    [
        ("XPATH '/bib/book[author]/title'", BOOK, "application/xml", True),
        ("XPATH '/bib/book[author]/title'", BOOK.decode(), "application/xml", True),
        ("XPATH 'book[author][title]'", b"<b><book><author/></book><book><title/></book></b>", "text/xml", False),
        ("XPATH 'a/b' AND XPATH 'a/c'", b'{"a": [{"b": 1}, {"c": 2}]}', "application/json", True),
        ("XPATH 'a[b][c]'", b'{"a": [{"b": 1}, {"c": 2}]}', "application/json", False),
        ("XPATH 'bib' AND price > 8.5", BOOK, "application/xml", True),
        ("XPATH 'bib' AND price > 8.7", BOOK, "application/xml", False),
        ("XPATH 'bib' AND volume > 8", BOOK, "application/xml", None),
        ("XPATH 'bid' AND volume > 8", BOOK, "application/xml", False),
        ("XPATH 'bib'", BOOK, "text/plain", False),
        ("XPATH 'bib'", BOOK, None, False),
        ("XPATH 'bib'", b"<bib>", "application/xml", False),
        ("XPATH 'bib'", None, "application/xml", False),
    ],
)
def test_xpath_is_asked_of_the_document(condition: str, value: Any, content_type: Any, verdict: bool | None) -> None:
    assert headgate_match("q", condition, "q", TYPED, value, content_type) is verdict


def test_xpath_without_a_document_is_told() -> None:
    with pytest.raises(ValueError, match="value, content_type"):
        headgate_match("q", "XPATH 'a'", "q", TYPED)

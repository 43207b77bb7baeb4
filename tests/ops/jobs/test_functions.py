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

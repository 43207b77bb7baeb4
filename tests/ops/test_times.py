"""Times as people type them; what is no time is left to others, what is a wrong one is told."""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from headgate.ops.exits import UsageError
from headgate.ops.times import parse_time

NOW = 1_795_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("-90s", NOW - 90),
        ("-10m", NOW - 600),
        ("-2h", NOW - 7200),
        ("-7d", NOW - 7 * 86_400),
        ("-1w", NOW - 7 * 86_400),
        ("2026-11-01T06:00Z", 1_793_512_800.0),
        ("2026-11-01T06:00+02:00", 1_793_505_600.0),
        ("2026-11-01 06:00:00.5+00:00", 1_793_512_800.5),
        ("2026-11-01T06:00", datetime(2026, 11, 1, 6).timestamp()),
        ("2026-11-01", datetime(2026, 11, 1).timestamp()),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_time(text, NOW) == seconds


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this machine has one zone")
def test_without_a_zone_it_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Europe/Athens")
            time.tzset()
            assert parse_time("2026-11-01T06:00", NOW) == 1_793_505_600.0
    finally:
        time.tzset()


@pytest.mark.parametrize(
    "text", ["start", "now", "17", "ann@1763492000:120", "2026-01-01@5:7", "2a6f2bd53a4a9c4c-68e77880.0", "yesterday"]
)
def test_other_places_are_no_times(text: str) -> None:
    assert parse_time(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("-1", "as in -90s"),
        ("-5y", "as in -90s"),
        ("2026-13-01", "as in 2026-11-19T06:00"),
        ("2026-11-01T25:00", "as in 2026-11-19T06:00"),
        ("2026-11-01T6 a.m.", "as in 2026-11-19T06:00"),
        ("2126-11-01", "still to come"),
    ],
)
def test_wrong_times_say_how_to_write_one(text: str, word: str) -> None:
    with pytest.raises(UsageError, match=f"--from {text}: .*{word}"):
        parse_time(text, NOW)

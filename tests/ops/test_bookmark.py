"""A bookmark names each log once, with the place behind its last event that was printed."""

from __future__ import annotations

from headgate.ops.bookmark import Bookmark
from headgate.protocol.client import Event, parse_start
from headgate.protocol.data import LogShift

ANN, BOB = LogShift("ann@1", 27), LogShift("bob@1", -4)


def event(log: LogShift | None, number: int) -> Event:
    return Event("00000000000000aa-1", number, 0.0, "q", {}, b"", "", 1, log)


def test_nothing_printed_is_nowhere() -> None:
    bookmark = Bookmark()
    bookmark.passed([])
    assert bookmark.text({"ann@1": 7}) == ""


def test_it_goes_on_behind_what_was_printed_of_each_log() -> None:
    bookmark = Bookmark()
    bookmark.passed([event(ANN, 3), event(BOB, 9), event(ANN, 4), event(BOB, 11), event(None, 70)])
    text = bookmark.text({"ann@1": 0, "bob@1": 5, "cyd@1": 8})
    assert text == "ann@1:32,bob@1:8,cyd@1:8"
    assert parse_start(text) == {"ann@1": 32, "bob@1": 8, "cyd@1": 8}
    bookmark.passed([event(ANN, 6)])
    assert bookmark.text({}) == "ann@1:34,bob@1:8"


def test_what_comes_late_takes_nothing_back() -> None:
    bookmark = Bookmark()
    bookmark.passed([event(ANN, 9)])
    bookmark.passed([event(ANN, 4)])
    assert bookmark.text({"ann@1": 20}) == "ann@1:37"


def test_a_stream_in_memory_has_no_places() -> None:
    bookmark = Bookmark()
    bookmark.passed([event(None, 9)])
    assert bookmark.text({}) == ""

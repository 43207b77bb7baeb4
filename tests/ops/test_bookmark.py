"""A bookmark names each log once, and the last event of each broker that came live."""

from __future__ import annotations

from headgate.ops.bookmark import Bookmark
from headgate.protocol.client import Event, parse_start

ANN, BOB = "00000000000000aa-1", "00000000000000bb-1"


def event(origin: str, number: int, position: str = "") -> Event:
    made = Event(origin, number, 0.0, "q", {}, b"", "", 1)
    made.position = position
    return made


def test_nothing_printed_is_nowhere() -> None:
    bookmark = Bookmark()
    bookmark.passed([])
    assert bookmark.text({"ann@1": 7}) == ""


def test_what_was_replayed_has_a_position_and_what_came_live_an_id() -> None:
    bookmark = Bookmark()
    bookmark.passed([event(ANN, 3, "ann@1:30"), event(BOB, 9), event(ANN, 4, "ann@1:31"), event(BOB, 11)])
    text = bookmark.text({"ann@1": 0, "bob@1": 5, "cyd@1": 8})
    assert text == f"ann@1:32,bob@1:5,cyd@1:8,{BOB}.11"
    assert parse_start(text) == {"ann@1": 32, "bob@1": 5, "cyd@1": 8, BOB: 11}
    bookmark.passed([event(ANN, 6)])
    assert bookmark.text({"ann@1": 20}) == f"ann@1:20,{ANN}.6,{BOB}.11"


def test_what_comes_late_takes_nothing_back() -> None:
    bookmark = Bookmark()
    bookmark.passed([event(ANN, 9)])
    bookmark.passed([event(ANN, 4, "ann@1:40")])
    assert bookmark.text({}) == f"{ANN}.9"

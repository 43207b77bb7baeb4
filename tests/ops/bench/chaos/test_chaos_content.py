"""Chaos content: drawn from a seed alone, every kind of condition, and wanted as the plain meaning says."""

from __future__ import annotations

import pytest

from headgate.matching import parse_condition, parse_pattern
from headgate.ops.bench.chaos.content import SCHEMA, STREAMS, Wish, occurrence, schemas, wanted, wishes


def test_an_event_is_made_from_its_number_alone() -> None:
    assert occurrence(1, 7) == occurrence(1, 7) != occurrence(1, 8)
    assert occurrence(2, 7) != occurrence(1, 7)
    assert [occurrence(1, number).attributes["number"] for number in range(3)] == [0, 1, 2]
    assert {occurrence(1, number).topic.split("/")[0] for number in range(100)} == set(STREAMS)


def test_wishes_can_be_asked_for_and_repeat() -> None:
    found = wishes(1, 40)
    assert found == wishes(1, 40) != wishes(2, 40)
    for wish in found:
        parse_pattern(wish.pattern)
        if wish.where:
            parse_condition(wish.where)
    assert sum(not wish.where for wish in found) == 4, "one kind of ten has no condition"


def test_every_kind_of_wish_gets_something_and_not_everything() -> None:
    count = 3000
    for wish, numbers in zip(found := wishes(3, 30), wanted(3, count, found), strict=True):
        assert len(numbers) < count / 10, wish
        assert numbers == sorted(set(numbers))
    assert sum(bool(numbers) for numbers in wanted(3, count, found)) >= 27


@pytest.mark.parametrize(
    ("wish", "takes"),
    [
        (Wish("orders", ""), lambda event: event.topic.startswith("orders/")),
        (Wish("quotes/*/S01", ""), lambda event: event.topic.startswith("quotes/") and event.topic.endswith("/S01")),
        (Wish("orders", "volume < 10"), lambda event: "orders/" in event.topic and event.attributes["volume"] < 10),
        (Wish("orders", "halted"), lambda event: "orders/" in event.topic and event.attributes.get("halted") is True),
    ],
)
def test_what_is_wanted_is_what_the_condition_says(wish: Wish, takes: object) -> None:
    assert callable(takes)
    (numbers,) = wanted(5, 2000, [wish])
    assert numbers == [number for number in range(2000) if takes(occurrence(5, number))] != []


def test_audited_streams_are_all_of_them() -> None:
    assert list(schemas(False)) == list(STREAMS[:2]) and not any("audit" in one for one in schemas(False).values())
    assert sorted(schemas(True)) == sorted(STREAMS) and all(one["audit"] for one in schemas(True).values())
    assert "price" in schemas(True)["orders"]["attributes"] and "audit" not in SCHEMA

"""The words between brokers: a FORWARD knows the place of each of its events."""

from __future__ import annotations

from headgate.protocol.data import make_batch
from headgate.protocol.messages import Forward
from tests.support.samples import forward


def make(places: list[int] | range, base: int = 40) -> Forward:
    batch = make_batch(["a"], {}, [b""] * len(places))
    return Forward.make([[["topic"], [0]]], 1, batch, "ann", base, places, 5)


def test_places_in_a_row_cost_nothing() -> None:
    for places in (range(3), [0, 1, 2]):
        message = make(places)
        assert (message.base, message.offsets) == (40, b"")
    message = make([4, 5, 6])
    assert (message.base, message.offsets, list(message.places())) == (44, b"", [0, 1, 2])


def test_places_with_holes_are_kept() -> None:
    message = make([1, 4, 9])
    assert (message.base, list(message.places())) == (40, [1, 4, 9])
    assert [message.base + place for place in make([7]).places()] == [40]
    assert list(forward().places()) == [0, 3]


def test_one_event_has_one_place() -> None:
    message = make([7])
    assert (message.base, list(message.places())) == (47, [0])

"""Ring arithmetic: the examples of its page, and its laws."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.config import broker_id
from headgate.broker.core.keyspace import RING_SIZE, between, distance, hash_identifier, in_arc, successor
from headgate.broker.core.keyspace.identifiers import BITS

SMALL = 16
places = st.integers(0, RING_SIZE - 1)
small = st.integers(0, SMALL - 1)


def test_an_identifier_is_the_first_eight_bytes_of_sha1() -> None:
    digest = hashlib.sha1(b"broker-1").hexdigest()
    assert f"{hash_identifier('broker-1'):016x}" == digest[: BITS // 4]
    assert hash_identifier("é") == hash_identifier("é".encode())
    assert hash_identifier("broker-1") == broker_id("broker-1") < RING_SIZE


@pytest.mark.parametrize(
    ("low", "place", "high", "inside"),
    [
        *((10, 12, 20, True), (20, 5, 10, True), (20, 30, 10, True), (10, 10, 20, False), (10, 20, 20, False)),
        *((20, 15, 10, False), (7, 8, 7, True), (7, 6, 7, True), (7, 7, 7, False)),
    ],
)
def test_between_by_example(low: int, place: int, high: int, inside: bool) -> None:
    assert between(low, place, high) is inside


@given(small, small, small)
def test_between_is_what_walking_clockwise_finds(low: int, place: int, high: int) -> None:
    walked, here = [], (low + 1) % SMALL
    while here != high:
        walked.append(here)
        here = (here + 1) % SMALL
    assert between(low, place, high) == (place in walked if low != high else place != low)
    assert in_arc(low, place, high) == (place in walked or place == high)


@given(places, places)
def test_there_and_back_is_once_around(start: int, end: int) -> None:
    assert (distance(start, end) + distance(end, start)) % RING_SIZE == 0
    assert (start + distance(start, end)) % RING_SIZE == end


@given(st.lists(places, min_size=1, unique=True), places)
def test_the_successor_is_the_nearest_member_clockwise(members: list[int], place: int) -> None:
    assert successor(sorted(members), place) == min(members, key=lambda member: distance(place, member))

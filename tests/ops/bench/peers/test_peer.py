"""What all peers share: chunks add up, sizes are divided, programs are found or not."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from headgate.ops.bench.kit import MeasurementFailed, Want, Workload, build
from headgate.ops.bench.limits import ARRIVALS_PER_CHUNK_MAX, BODY_LENGTH, CHUNK_EVENTS, RING_EVENTS
from headgate.ops.bench.peers import BODY, Chunk, Peer, Subscriber
from headgate.ops.bench.peers.peer import Publisher, SizedSubscriber, installed, read_until


class Plain(Peer):
    """A peer whose bytes are the topics."""

    name = "plain"

    def version(self) -> str | None:
        return "1"

    def command(self, port: int, folder: Path) -> list[str]:
        raise NotImplementedError

    def publisher(self, port: int) -> Publisher:
        raise NotImplementedError

    def subscriber(self, port: int, wants: Sequence[Want]) -> Subscriber:
        raise NotImplementedError

    def encode(self, workload: Workload, first: int, last: int) -> bytearray:
        return bytearray("".join(event.topic for event in workload.events[first:last]), "ascii")


@pytest.mark.parametrize("key", ["a", "b", "c", "e", "e1k"])
def test_chunks_cover_the_ring_once_and_their_counts_add_up(key: str) -> None:
    workload = build(key)
    chunks = Plain().chunks(workload)
    assert sum(chunk.events for chunk in chunks) == RING_EVENTS
    assert sum(chunk.arrivals for chunk in chunks) == sum(workload.flood())
    assert sum(chunk.useful for chunk in chunks) == sum(workload.useful())
    assert b"".join(chunk.data for chunk in chunks) == Plain().encode(workload, 0, RING_EVENTS)
    assert all(chunk.events <= CHUNK_EVENTS and chunk.arrivals <= ARRIVALS_PER_CHUNK_MAX for chunk in chunks)


def test_a_single_event_for_latency() -> None:
    assert Plain().single(build("b")) == Chunk(bytearray(b"bench/all"), 1, 50, 50)


def test_sized_deliveries_are_counted_however_they_are_cut() -> None:
    near, far = socket.socketpair()
    with near, far:
        subscriber = SizedSubscriber(near, 10)
        counts = [subscriber.feed(memoryview(bytes(length))) for length in (9, 1, 25, 0, 5)]
    assert counts == [0, 1, 2, 0, 1]


def test_reading_up_to_a_mark() -> None:
    near, far = socket.socketpair()
    with near, far:
        far.sendall(b"one OK two OK")
        assert read_until(near, b"OK", 2) == b"one OK two OK"
        far.sendall(b"refused")
        far.shutdown(socket.SHUT_WR)
        with pytest.raises(MeasurementFailed, match="refused"):
            read_until(near, b"OK")


def test_a_publisher_writes_chunks_as_they_are() -> None:
    near, far = socket.socketpair()
    with far:
        publisher = Publisher(near)
        publisher.send(Chunk(bytearray(b"abc"), 1, 1, 1))
        publisher.settle()
        publisher.finish()
        assert far.recv(10) == b"abc"
        assert far.recv(10) == b""


def test_a_program_that_is_not_installed_has_no_version() -> None:
    assert installed("no-such-server") is None
    assert installed("sh", "-c", "echo version 5; echo more") == "version 5"


def test_the_body_has_its_length() -> None:
    assert len(BODY) == BODY_LENGTH

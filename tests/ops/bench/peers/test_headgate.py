"""Headgate as a measured server: patched sequences are real ones, counting agrees with decoding, the window is kept."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.ops.bench.kit import MeasurementFailed, Want, build
from headgate.ops.bench.limits import RING_EVENTS
from headgate.ops.bench.peers import Headgate, HeadgateSubscriber
from headgate.ops.bench.peers.headgate import HeadgatePublisher, Line, patch
from headgate.protocol.data import Portion, join_u32
from headgate.protocol.limits import FRAME_LENGTH_MAX
from headgate.protocol.messages import (
    Credit,
    Deliver,
    Error,
    Gap,
    Hello,
    Message,
    Ping,
    Pong,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Welcome,
)
from headgate.protocol.wire import FrameReader, Role, Session, decode, encode_chunks, frame
from tests.ops.bench.peers.scripted import scripted


def framed(message: Message) -> bytes:
    return b"".join(frame(encode_chunks(message)))


def messages(data: bytes) -> list[Any]:
    return [decode(view) for view in FrameReader(FRAME_LENGTH_MAX).feed(data)]


def delivery(routes: list[Any], base: int = 7) -> bytes:
    count = sum(routes[1::2])
    portion = Portion("broker", base, 1, b"", "bench/one", join_u32([3] * count), b"abc" * count, count)
    return framed(Deliver(routes, portion))


class RecordingLine(Line):
    """A line over one half of a pair of sockets, that keeps what was said and never dials."""

    def __init__(self, window: int = 4) -> None:
        self.connection, self.far = socket.socketpair()
        self.window = window
        self.said: list[Message] = []
        self._reader = FrameReader(FRAME_LENGTH_MAX)

    def send(self, message: Message) -> None:
        self.said.append(message)

    def end(self) -> None:
        self.connection.close()
        self.far.close()


class TestChunks:
    @pytest.mark.parametrize(("size", "frames", "events"), [(500, 1, 500), (100, 5, 500), (1, 64, 64)])
    @pytest.mark.parametrize("key", ["c", "e"])
    def test_a_patched_chunk_is_a_run_of_publishes(self, key: str, size: int, frames: int, events: int) -> None:
        workload = build(key)
        chunk = Headgate(size).chunks(workload)[1]
        assert (chunk.frames, chunk.events) == (frames, events)
        patch(chunk.data, frames, 70_000)
        published = messages(bytes(chunk.data))
        assert all(isinstance(one, Publish) and one.mode == 1 for one in published)
        assert [one.sequence for one in published] == list(range(70_000, 70_000 + frames))
        assert [one.batch.count for one in published] == [size] * frames
        topics = [
            topic
            for one in published
            for topic in one.batch.topic_list() * (one.batch.count if "\n" not in one.batch.topics else 1)
        ]
        assert topics == [event.topic for event in workload.events[events : 2 * events]]

    def test_content_events_carry_their_columns(self) -> None:
        workload = build("e")
        (published,) = messages(bytes(Headgate(100).encode(workload, 0, 100)))
        assert list(published.batch.column("symbol")) == [event.symbol for event in workload.events[:100]]
        assert list(published.batch.column("price")) == [event.price for event in workload.events[:100]]

    def test_only_what_was_asked_for_is_expected(self) -> None:
        workload = build("e1k")
        chunks = Headgate().chunks(workload)
        assert (
            sum(chunk.arrivals for chunk in chunks) == sum(chunk.useful for chunk in chunks) == sum(workload.useful())
        )
        assert sum(chunk.events for chunk in chunks) == RING_EVENTS

    def test_labels(self) -> None:
        assert [Headgate().label, Headgate(1).label] == ["headgate", "headgate @1"]


class TestSubscriber:
    def test_a_run_for_one_subscription_is_counted_without_a_second_look(self, monkeypatch: pytest.MonkeyPatch) -> None:
        line = RecordingLine()
        subscriber = HeadgateSubscriber(line)
        monkeypatch.setattr(subscriber, "_count", lambda body, length: pytest.fail("what it reads is not what is sent"))
        assert subscriber.feed(memoryview(delivery([1, 1]) + delivery([127, 100]))) == 101
        line.end()

    @given(
        st.lists(
            st.lists(
                st.tuples(st.lists(st.integers(1, 70_000), min_size=1, max_size=4), st.integers(1, 300)),
                min_size=1,
                max_size=5,
            ),
            min_size=1,
            max_size=6,
        ),
        st.lists(st.integers(1, 5000), min_size=1, max_size=30),
    )
    def test_counting_agrees_with_decoding_however_bytes_are_cut(
        self, frames: list[list[tuple[list[int], int]]], cuts: list[int]
    ) -> None:
        data = b""
        for routes in frames:
            # A lone number is sent bare; a list of one is allowed as well.
            bare = [(some[0] if len(some) == 1 and some[0] % 2 else some, run) for some, run in routes]
            data += delivery([part for route in bare for part in route]) + framed(Ping(9)) + framed(Gap(1, 2, "slow"))
        line = RecordingLine()
        subscriber = HeadgateSubscriber(line, credit=1 << 40)
        counted = place = turn = 0
        while place < len(data):
            length = cuts[turn % len(cuts)]
            counted += subscriber.feed(memoryview(data)[place : place + length])
            place += length
            turn += 1
        line.end()
        assert counted == sum(len(numbers) * run for routes in frames for numbers, run in routes)
        assert subscriber.lost == 2 * len(frames)
        assert line.said == [Pong(9)] * len(frames)

    def test_credit_is_given_when_half_of_it_is_used(self) -> None:
        line = RecordingLine()
        subscriber = HeadgateSubscriber(line, credit=10)
        for _ in range(6):
            assert subscriber.feed(memoryview(delivery([[1, 2], 2]))) == 4
        line.end()
        assert line.said == [Credit(16, 6), Credit(22, 12)]

    def test_an_error_ends_the_measurement(self) -> None:
        line = RecordingLine()
        subscriber = HeadgateSubscriber(line)
        with pytest.raises(MeasurementFailed, match="too slow"):
            subscriber.feed(memoryview(framed(Error(6, 0, 0, "too slow"))))
        line.end()


class TestPublisher:
    def test_the_window_is_kept(self) -> None:
        line = RecordingLine(window=128)
        publisher = HeadgatePublisher(line)
        chunk = Headgate(1).chunks(build("a"))[0]
        assert chunk.frames == 64
        publisher.send(chunk)
        publisher.send(chunk)
        line.far.sendall(framed(Puback(10)) + framed(Puback(64)))
        publisher.send(chunk)  # would wait for ever without that answer
        received = b""
        while len(received) < 3 * len(chunk.data):
            received += line.far.recv(65536)
        assert [one.sequence for one in messages(received)] == list(range(1, 193))
        line.far.sendall(framed(Puback(192)))
        publisher.settle()
        publisher.settle()
        publisher.finish()
        line.end()

    def test_what_was_prepared_is_what_is_sent_and_only_once(self) -> None:
        line = RecordingLine()
        publisher = HeadgatePublisher(line)
        chunk = Headgate(1).chunks(build("a"))[0]
        line.window = 3 * chunk.frames
        publisher.prepare(chunk)
        publisher.prepare(chunk)
        for _ in range(3):
            publisher.send(chunk)
        received = b""
        while len(received) < 3 * len(chunk.data):
            received += line.far.recv(65536)
        assert [one.sequence for one in messages(received)] == list(range(1, 3 * chunk.frames + 1))
        line.end()

    def test_a_refusal_ends_the_measurement(self) -> None:
        line = RecordingLine(window=1)
        publisher = HeadgatePublisher(line)
        chunk = Headgate().chunks(build("a"))[0]
        publisher.send(chunk)
        line.far.sendall(framed(Error(103, 2, 1, "no such thing")))
        with pytest.raises(MeasurementFailed, match="no such thing"):
            publisher.send(chunk)
        line.end()


def test_a_subscriber_is_ready_when_all_its_subscriptions_are_in_force() -> None:
    session = Session(Role.BROKER, 0.0)
    fed = 0

    def answer(heard: bytes) -> bytes:
        nonlocal fed
        for message in session.receive(heard[fed:], 0.0):
            if isinstance(message, Subscribe):
                session.send(Suback(message.request, message.subscription))
            elif isinstance(message, Hello):
                session.send(Welcome(2, "broker", b"key", False, 0, 256, 15.0))
        fed = len(heard)
        return b"".join(session.take())

    with scripted(answer) as server:
        wants = [Want("quotes", f"S{number}", 1.0, 2.0) for number in range(250)]
        subscriber = Headgate().subscriber(server.port, wants)
        assert subscriber.feed(memoryview(delivery([[250], 3]))) == 3
        subscriber.finish()
    subscribed = [one for one in messages(server.heard) if isinstance(one, Subscribe)]
    assert [one.subscription for one in subscribed] == list(range(1, 251))
    assert subscribed[7].condition == "symbol = 'S7' AND price BETWEEN 1.0 AND 2.0"


def test_a_server_that_does_not_welcome_is_a_failure() -> None:
    with (
        scripted(lambda heard: framed(Error(2, 0, 0, "speaks version 2"))) as server,
        pytest.raises(MeasurementFailed, match="speaks version 2"),
    ):
        Headgate().publisher(server.port)

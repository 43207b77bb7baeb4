"""mosquitto's bytes: MQTT packets by hand, refusals, configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.ops.bench.kit import MeasurementFailed, Want, build
from headgate.ops.bench.peers import BODY, Mosquitto
from headgate.ops.bench.peers.mosquitto import packet
from tests.ops.bench.peers.scripted import scripted


@pytest.mark.parametrize(
    ("length", "head"),
    [
        (0, b"\x30\x00"),
        (127, b"\x30\x7f"),
        (128, b"\x30\x80\x01"),
        (16_383, b"\x30\xff\x7f"),
        (16_384, b"\x30\x80\x80\x01"),
    ],
)
def test_lengths_are_groups_of_seven_bits(length: int, head: bytes) -> None:
    assert packet(0x30, bytes(length)) == head + bytes(length)


def test_an_event_is_a_publish_packet() -> None:
    assert Mosquitto().encode(build("a"), 0, 1) == b"\x30\x8b\x01\x00\x09bench/one" + BODY


def test_a_subscriber_connects_subscribes_and_knows_a_deliverys_length() -> None:
    def answer(heard: bytes) -> bytes:
        return b"\x90\x04\x00\x01\x00\x00" if b"\x82" in heard else b"\x20\x02\x00\x00"

    with scripted(answer) as server:
        subscriber = Mosquitto().subscriber(server.port, [Want("bench/t0000"), Want("bench/t0001")])
        assert subscriber.feed(memoryview(packet(0x30, b"\x00\x0bbench/t0001" + BODY))) == 1
        subscriber.finish()
    connect, _, subscribe = server.heard.partition(b"\x82")
    assert connect == b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00"
    assert subscribe == b"\x1e\x00\x01\x00\x0bbench/t0000\x00\x00\x0bbench/t0001\x00"


def test_a_refused_connection_is_a_failure() -> None:
    with scripted(lambda heard: b"\x20\x02\x00\x05") as server, pytest.raises(MeasurementFailed, match="refused"):
        Mosquitto().publisher(server.port)


def test_the_command_names_its_port(tmp_path: Path) -> None:
    words = Mosquitto().command(1883, tmp_path)
    assert Path(words[-1]).read_text().startswith("listener 1883 127.0.0.1\n")

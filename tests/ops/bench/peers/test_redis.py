"""redis-server's bytes: commands, confirmations, deliveries of equal length."""

from __future__ import annotations

from pathlib import Path

from headgate.ops.bench.kit import Want, build
from headgate.ops.bench.peers import BODY, Redis
from tests.ops.bench.peers.scripted import scripted


def test_an_event_is_a_publish_command() -> None:
    expected = b"*3\r\n$7\r\nPUBLISH\r\n$9\r\nbench/one\r\n$128\r\n" + BODY + b"\r\n"
    assert Redis().encode(build("a"), 0, 2) == expected * 2


def test_a_subscriber_waits_for_the_last_confirmation() -> None:
    def confirm(heard: bytes) -> bytes:
        one = b"*3\r\n$9\r\nsubscribe\r\n$11\r\nbench/t0000\r\n:1\r\n"
        return one + one.replace(b"t0000", b"t0001").replace(b":1", b":2")

    with scripted(confirm) as server:
        subscriber = Redis().subscriber(server.port, [Want("bench/t0000"), Want("bench/t0001"), Want("bench/t0001")])
        delivery = b"*3\r\n$7\r\nmessage\r\n$11\r\nbench/t0001\r\n$128\r\n" + BODY + b"\r\n"
        assert subscriber.feed(memoryview(delivery * 2)) == 2
        subscriber.finish()
    assert server.heard == b"*3\r\n$9\r\nSUBSCRIBE\r\n$11\r\nbench/t0000\r\n$11\r\nbench/t0001\r\n"


def test_a_publisher_turns_its_replies_off() -> None:
    with scripted(lambda heard: b"+PONG\r\n" if heard.endswith(b"PING\r\n") else b"") as server:
        Redis().publisher(server.port).finish()
    assert server.heard.endswith(b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n")


def test_the_command_saves_nothing(tmp_path: Path) -> None:
    words = Redis().command(6379, tmp_path)
    assert words[words.index("--save") + 1] == ""
    assert words[words.index("--dir") + 1] == str(tmp_path)

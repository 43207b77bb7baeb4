"""nats-server's bytes: subjects, PUB lines, subscription ids of equal width."""

from __future__ import annotations

from pathlib import Path

from headgate.ops.bench.kit import Want, build
from headgate.ops.bench.peers import BODY, Nats
from tests.ops.bench.peers.scripted import scripted


def pong(heard: bytes) -> bytes:
    return b'INFO {"max_payload":1048576}\r\nPONG\r\n' if heard.endswith(b"PING\r\n") else b""


def test_an_event_is_a_pub_line_and_its_body() -> None:
    assert Nats().encode(build("a"), 0, 2) == (b"PUB bench.one 128\r\n" + BODY + b"\r\n") * 2


def test_a_subscriber_asks_for_each_topic_once_and_knows_a_deliverys_length() -> None:
    with scripted(pong) as server:
        wants = [Want("bench/t0000"), Want("bench/t0001"), Want("bench/t0001", "OTE", 1.0, 2.0)]
        subscriber = Nats().subscriber(server.port, wants)
        delivery = b"MSG bench.t0001 10001 128\r\n" + BODY + b"\r\n"
        assert subscriber.feed(memoryview(delivery * 3)) == 3
        subscriber.finish()
    assert server.heard.count(b"SUB ") == 2
    assert b"SUB bench.t0000 10000\r\nSUB bench.t0001 10001\r\nPING\r\n" in server.heard


def test_a_publisher_is_ready_after_the_pong() -> None:
    with scripted(pong) as server:
        Nats().publisher(server.port).finish()
    assert server.heard.startswith(b"CONNECT {")


def test_the_command_keeps_its_files_in_its_folder(tmp_path: Path) -> None:
    words = Nats().command(4222, tmp_path)
    assert words[words.index("--port") + 1] == "4222"
    assert Path(words[-1]).parent == tmp_path
    assert Path(words[-1]).read_text().startswith("max_pending")

"""mosquitto: MQTT 3.1.1 at QoS 0, packets encoded by hand; what it drops at QoS 0 shows as lost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..kit import MeasurementFailed, Want, Workload
from ..limits import BODY_LENGTH, IN_FLIGHT_ARRIVALS_SLOW_MAX
from .peer import BODY, Peer, Publisher, SizedSubscriber, dial, find, installed

__all__ = ["Mosquitto", "packet"]

_CONFIG = """listener {port} 127.0.0.1
allow_anonymous true
persistence false
max_queued_messages 0
max_inflight_messages 0
set_tcp_nodelay true
sys_interval 0
log_type error
"""
_CONNECT, _PUBLISH, _SUBSCRIBE = 0x10, 0x30, 0x82


def packet(kind: int, body: bytes) -> bytes:
    """An MQTT packet: its type, its length in groups of seven bits, its body."""
    length, head = len(body), bytearray([kind])
    while True:
        length, low = divmod(length, 128)
        head.append(low | 0x80 if length else low)
        if not length:
            return bytes(head) + body


def _text(value: str) -> bytes:
    data = value.encode()
    return len(data).to_bytes(2, "big") + data


class Mosquitto(Peer):
    """mosquitto with unlimited queues, so that it drops as little as it can."""

    name = "mosquitto"
    in_flight_arrivals_max = IN_FLIGHT_ARRIVALS_SLOW_MAX

    def version(self) -> str | None:
        line = installed("mosquitto", "-h")
        found = re.search(r"\d+\.\d+\S*", line or "")
        return found.group() if found else line

    def command(self, port: int, folder: Path) -> list[str]:
        config = folder / "mosquitto.conf"
        config.write_text(_CONFIG.format(port=port), encoding="ascii")
        return [find("mosquitto") or "mosquitto", "-c", str(config)]

    def publisher(self, port: int) -> Publisher:
        connection = dial(port)
        clean_session, keep_alive_seconds = 2, 0
        hello = _text("MQTT") + bytes([4, clean_session]) + keep_alive_seconds.to_bytes(2, "big") + _text("")
        connection.sendall(packet(_CONNECT, hello))
        answer = connection.recv(4)
        if answer != b"\x20\x02\x00\x00":
            connection.close()
            raise MeasurementFailed("mosquitto", f"refused the connection with {answer!r}")
        return Publisher(connection)

    def subscriber(self, port: int, wants: Sequence[Want]) -> SizedSubscriber:
        topics = list(dict.fromkeys(want.topic for want in wants))
        connection = self.publisher(port).connection
        connection.sendall(packet(_SUBSCRIBE, b"\x00\x01" + b"".join(_text(topic) + b"\x00" for topic in topics)))
        expected = len(packet(0x90, bytes(2 + len(topics))))
        while expected > 0:
            received = len(connection.recv(expected))
            if not received:
                raise MeasurementFailed("mosquitto", "closed the connection instead of answering SUBSCRIBE")
            expected -= received
        return SizedSubscriber(connection, len(packet(_PUBLISH, _text(topics[0]) + BODY[:BODY_LENGTH])))

    def encode(self, workload: Workload, first: int, last: int) -> bytearray:
        return bytearray().join(packet(_PUBLISH, _text(event.topic) + BODY) for event in workload.events[first:last])

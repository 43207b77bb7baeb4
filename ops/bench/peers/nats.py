"""nats-server: core NATS, the text protocol, subjects; the peer that ratios are given to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..kit import Want, Workload
from ..limits import BODY_LENGTH
from .peer import BODY, Peer, Publisher, SizedSubscriber, dial, find, installed, read_until

__all__ = ["Nats"]

# A slow reader would be cut off at 64 MiB by default; nothing here is meant to be cut off.
_CONFIG = "max_pending: 1GB\nwrite_deadline: '60s'\nping_interval: '1h'\n"
_CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"lang":"bench","version":"1"}\r\nPING\r\n'
_FIRST_SUBSCRIPTION = 10_000
"""Subscription ids all have five digits, so that every delivery has the same length."""


def _subject(topic: str) -> str:
    return topic.replace("/", ".")


class Nats(Peer):
    """nats-server, installed from the distribution or from its releases."""

    name = "nats"

    def version(self) -> str | None:
        line = installed("nats-server", "--version")
        found = re.search(r"\d+\.\d+\S*", line or "")
        return found.group() if found else line

    def command(self, port: int, folder: Path) -> list[str]:
        config = folder / "nats.conf"
        config.write_text(_CONFIG, encoding="ascii")
        return [find("nats-server") or "nats-server", "--addr", "127.0.0.1", "--port", str(port), "-c", str(config)]

    def publisher(self, port: int) -> Publisher:
        connection = dial(port)
        connection.sendall(_CONNECT)
        read_until(connection, b"PONG\r\n")
        return Publisher(connection)

    def subscriber(self, port: int, wants: Sequence[Want]) -> SizedSubscriber:
        subjects = [_subject(topic) for topic in dict.fromkeys(want.topic for want in wants)]
        lines = [f"SUB {subject} {number}\r\n".encode() for number, subject in enumerate(subjects, _FIRST_SUBSCRIPTION)]
        connection = dial(port)
        connection.sendall(_CONNECT.removesuffix(b"PING\r\n") + b"".join(lines) + b"PING\r\n")
        read_until(connection, b"PONG\r\n")
        head = f"MSG {subjects[0]} {_FIRST_SUBSCRIPTION} {BODY_LENGTH}\r\n"
        return SizedSubscriber(connection, len(head) + BODY_LENGTH + 2)

    def encode(self, workload: Workload, first: int, last: int) -> bytearray:
        return bytearray().join(
            b"PUB %s %d\r\n%s\r\n" % (_subject(event.topic).encode(), BODY_LENGTH, BODY)
            for event in workload.events[first:last]
        )

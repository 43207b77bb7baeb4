"""redis-server: PUBLISH and SUBSCRIBE, pipelined, with the publisher's replies turned off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..kit import Want, Workload
from ..limits import BODY_LENGTH
from .peer import BODY, Peer, Publisher, SizedSubscriber, dial, find, installed, read_until

__all__ = ["Redis"]


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Redis(Peer):
    """redis-server without persistence and without a limit on a subscriber's output."""

    name = "redis"

    def version(self) -> str | None:
        line = installed("redis-server", "--version")
        found = re.search(r"v=(\S+)", line or "")
        return found.group(1) if found else line

    def command(self, port: int, folder: Path) -> list[str]:
        program = find("redis-server") or "redis-server"
        options = {
            "--port": [str(port)],
            "--bind": ["127.0.0.1"],
            "--dir": [str(folder)],
            "--save": [""],
            "--appendonly": ["no"],
            "--client-output-buffer-limit": ["pubsub 0 0 0"],
        }
        return [program, *(word for name, values in options.items() for word in (name, *values))]

    def publisher(self, port: int) -> Publisher:
        connection = dial(port)
        connection.sendall(_command(b"PING"))
        read_until(connection, b"+PONG\r\n")
        connection.sendall(_command(b"CLIENT", b"REPLY", b"OFF"))
        return Publisher(connection)

    def subscriber(self, port: int, wants: Sequence[Want]) -> SizedSubscriber:
        topics = [topic.encode() for topic in dict.fromkeys(want.topic for want in wants)]
        connection = dial(port)
        connection.sendall(_command(b"SUBSCRIBE", *topics))
        # The mark is the end of the last confirmation: its running number. Topics hold no line break.
        read_until(connection, b"\r\n:%d\r\n" % len(topics))
        return SizedSubscriber(connection, len(_command(b"message", topics[0], BODY[:BODY_LENGTH])))

    def encode(self, workload: Workload, first: int, last: int) -> bytearray:
        return bytearray().join(
            _command(b"PUBLISH", event.topic.encode(), BODY) for event in workload.events[first:last]
        )

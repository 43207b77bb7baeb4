"""The words about logs: which defaults may go on the wire."""

from __future__ import annotations

from headgate.protocol.messages import Copy, LogChunk, Mode, Publish, ReadLog, Stamp
from headgate.protocol.wire import decode, encode
from tests.support.samples import batch


def test_defaults_are_valid_on_the_wire() -> None:
    for message in (
        ReadLog(1, "ann", 1, 0, "quotes", 0),
        LogChunk(1, 0, 0, 0, []),
        Copy("ann", 1, 0, "quotes", b""),
        Publish(1, Mode.ACCEPTED, batch(), Stamp("job", 0, 0)),
    ):
        assert decode(encode(message)) == message


def test_a_chunk_does_not_look_into_its_rows() -> None:
    chunk = LogChunk(1, 0, 9, 9, [b"", b"no row", b"x" * 100_000])
    assert decode(encode(chunk)) == chunk

"""Speaks the wire: frames in a byte stream, messages in frames, and one connection's state, without I/O.

    frames    bytes <-> frames, a length and so many bytes: `FrameReader`, `frame`
    codec     frame <-> message: `encode`, `encode_chunks` (without joining the parts), `decode`
    session   a connection from its handshake to its goodbye: `Session`, of one `Role`, in a `State`; how long it waits
              is in its `SessionLimits`; `WORDLESS` is the failure of one whose other side went without a word

Clients and brokers hold one `Session` for each connection: `receive` takes bytes and gives messages, `send` takes
messages, `take` gives bytes, and `next_deadline` and `wake` keep heartbeats. It never raises on what the other side
sent; what was wrong is in its `failure`. `protocol/SPEC.md` describes each message; vectors check that it is true.
"""

from . import codec, session
from .codec import decode, encode, encode_chunks
from .frames import FrameReader, frame
from .session import WORDLESS, Role, Session, SessionLimits, State

__all__ = [
    "WORDLESS",
    "FrameReader",
    "Role",
    "Session",
    "SessionLimits",
    "State",
    "codec",
    "decode",
    "encode",
    "encode_chunks",
    "frame",
    "session",
]

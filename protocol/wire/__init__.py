"""FACE of wire."""

from . import codec, session
from .codec import decode, encode, encode_chunks
from .frames import FrameReader, frame
from .session import Role, Session, State

__all__ = [
    "FrameReader",
    "Role",
    "Session",
    "State",
    "codec",
    "decode",
    "encode",
    "encode_chunks",
    "frame",
    "session",
]

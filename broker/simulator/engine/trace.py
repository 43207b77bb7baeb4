"""The trace: what went into a Node and what came out of it, as stable text and its SHA-256 digest.

Two runs of one seed have the same digest, whatever the hash seed, the machine or the day. Bytes are written as their
length and checksum, so that a trace stays readable and any changed byte still changes the digest.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import Input
from headgate.protocol.data import Batch, Portion

from ..limits import TRACE_VALUE_LENGTH_MAX

__all__ = ["Trace", "as_text"]


def as_text(value: Any) -> str:
    """A value as one short line that is the same in every run."""
    if isinstance(value, bytes):
        return f"{len(value)}b#{zlib.crc32(value):08x}"
    if isinstance(value, Portion):
        parts = (value.base, value.count, value.time, value.offsets, value.topics, value.lengths, value.records)
        return f"Portion({' '.join(map(as_text, parts))})"
    if isinstance(value, Batch):
        columns = " ".join(f"{name}={as_text(column)}" for name, column in value.columns.items())
        shape = (value.count, value.topics, value.lengths, value.records, value.complete)
        return f"Batch({' '.join(map(as_text, shape))} {{{columns}}})"
    if is_dataclass(value) and not isinstance(value, type):
        inner = " ".join(f"{field.name}={as_text(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({inner})"
    if isinstance(value, dict):
        return "{" + " ".join(f"{as_text(key)}:{as_text(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(as_text, value)) + "]"
    text = repr(value)
    if len(text) > TRACE_VALUE_LENGTH_MAX:
        text = f"{text[:TRACE_VALUE_LENGTH_MAX]}…{len(text)}#{zlib.crc32(text.encode()):08x}"
    return text


class Trace:
    """Lines into a digest, and to whoever wants to read them."""

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self._hash = hashlib.sha256()
        self._write = write
        self.lines = 0

    def step(self, now: float, node: str, happened: Input, effects: Sequence[Effect]) -> None:
        """One input of one node with everything that it led to."""
        self.line(f"{now:.6f} {node} < {as_text(happened)}")
        for effect in effects:
            self.line(f"{now:.6f} {node} > {as_text(effect)}")

    def line(self, text: str) -> None:
        """One line, without its line feed."""
        self.lines += 1
        self._hash.update(text.encode())
        self._hash.update(b"\n")
        if self._write is not None:
            self._write(text + "\n")

    @property
    def digest(self) -> str:
        """SHA-256 of all lines so far."""
        return self._hash.hexdigest()

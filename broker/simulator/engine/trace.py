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

from headgate.protocol.data import Batch, Portion

from ..limits import TRACE_VALUE_LENGTH_MAX

__all__ = ["Trace", "as_text"]


def as_text(value: Any) -> str:
    """A value as one short line that is the same in every run."""
    if isinstance(value, bytes):
        return f"{len(value)}b#{zlib.crc32(value):08x}"
    if isinstance(value, Portion):
        parts = (value.base, value.count, value.time, value.offsets, value.topics, value.lengths, value.records)
        log = () if value.log is None else (value.log,)
        return f"Portion({' '.join(map(as_text, (*parts, *log)))})"
    if isinstance(value, Batch):
        columns = " ".join(f"{name}={as_text(column)}" for name, column in value.columns.items())
        shape = (value.count, value.topics, value.lengths, value.records, value.complete)
        return f"Batch({' '.join(map(as_text, shape))} {{{columns}}})"
    if is_dataclass(value) and not isinstance(value, type):
        shown = [field.name for field in fields(value) if field.repr]
        inner = " ".join(f"{name}={as_text(getattr(value, name))}" for name in shown)
        return f"{type(value).__name__}({inner})"
    if isinstance(value, dict):
        return "{" + " ".join(f"{as_text(key)}:{as_text(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(as_text, value)) + "]"
    text = repr(value)
    if len(text) > TRACE_VALUE_LENGTH_MAX:
        text = f"{text[:TRACE_VALUE_LENGTH_MAX]}…{len(text)}#{zlib.crc32(text.encode()):08x}"
    return text


def _shape(what: Any) -> str:
    """The name of an input or effect, and of the messages in it."""
    said = getattr(what, "messages", None) or [getattr(what, "message", None) or getattr(what, "letter", None)]
    said = [getattr(one, "body", one) if type(one).__name__ == "Letter" else one for one in said if one is not None]
    return " ".join(type(one).__name__ for one in (what, *said))


class Trace:
    """Writes a line for each step, and adds it to a digest: the whole line, or the time and shape of the step."""

    def __init__(self, write: Callable[[str], object] | None = None, whole: bool = True) -> None:
        self._hash = hashlib.sha256()
        self._write = write
        self._whole = whole

    def step(self, now: float, node: str, happened: Any, effects: Sequence[Any], cause: str = "") -> None:
        """Add one input of one Node with its effects; `cause` is written and is no part of the digest."""
        if self._whole or self._write is not None:
            lines = [f"{now:.6f} {node} < {as_text(happened)}"]
            lines += [f"{now:.6f} {node} > {as_text(effect)}" for effect in effects]
            if self._write is not None and cause:
                self._write(f"{now:.6f} {node} = {cause}\n")
            for line in lines:
                if self._write is not None:
                    self._write(f"{line}\n")
                if self._whole:
                    self._hash.update(line.encode())
        if not self._whole:
            self._hash.update(f"{now:.9f} {node} {' '.join(map(_shape, (happened, *effects)))}\n".encode())

    def line(self, text: str) -> None:
        """Add one line, given without its line feed."""
        self._hash.update(f"{text}\n".encode())
        if self._write is not None:
            self._write(text + "\n")

    @property
    def digest(self) -> str:
        """SHA-256 of all lines so far."""
        return self._hash.hexdigest()

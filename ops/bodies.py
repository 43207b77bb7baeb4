"""The body of the one event that `pub` publishes: a text, or what a file holds, which may be a document."""

from __future__ import annotations

import json
import sys
from pathlib import PurePath

from headgate.protocol.data import Scalar
from headgate.protocol.errors import LocalError
from headgate.protocol.limits import RECORD_LENGTH_MAX
from headgate.protocol.structure import kind_of, read_document

from .exits import UsageError
from .jsonlines import read_attributes

__all__ = ["check_body", "read_file"]

_ENDINGS = {".xml": "application/xml", ".json": "application/json"}
"""Ending of a file's name -> content type of its body, when --content-type is not given."""


def read_file(name: str, content_type: str) -> tuple[bytes, str]:
    """(body, content type) of a file; `-` is standard input. Raises UsageError."""
    try:
        if name == "-":
            body = sys.stdin.buffer.read(RECORD_LENGTH_MAX + 1)
        else:
            with open(name, "rb") as file:
                body = file.read(RECORD_LENGTH_MAX + 1)
    except OSError as error:
        raise UsageError(f"--body-file: cannot read {name}: {error.strerror}") from error
    if len(body) > RECORD_LENGTH_MAX:
        raise UsageError(f"--body-file: {name} is over the limit of {RECORD_LENGTH_MAX} bytes for an event")
    return body, content_type or _ENDINGS.get(PurePath(name).suffix.lower(), "")


def check_body(body: bytes, content_type: str) -> dict[str, Scalar]:
    """The dotted `body.…` attributes of an object of JSON, as of `json` on a line of `--jsonl`. Raises UsageError for
    what is no document and has the type of one.
    """
    kind = kind_of(content_type)
    if not kind:
        return {}
    try:
        read_document(body, content_type)
        return read_attributes({"json": json.loads(body)}) if kind == "json" else {}
    except LocalError as error:
        raise UsageError(f"{error}; another --content-type publishes it as it is") from error

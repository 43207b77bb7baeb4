"""The stamp of a batch in a PRODUCE: five fields between its mode and its topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import ProtocolViolation
from .fields import is_counter
from .limits import ATTRIBUTE_NAME_LENGTH_MAX, DIGEST_LENGTH_MAX
from .log_messages import Stamp

__all__ = ["decode_stamp", "encode_stamp"]


def encode_stamp(stamp: Stamp, pack: Callable[[Any], bytes]) -> bytes:
    """The fields of a stamp as they stand in a PRODUCE."""
    # Packed at once as an array, whose head of one byte is cut off.
    return pack((stamp.producer, stamp.epoch, stamp.number, stamp.digest, stamp.ids))[1:]


def decode_stamp(parts: list[Any]) -> Stamp:
    """The stamp of these five parts. Raises ProtocolViolation."""
    producer, epoch, number, digest, ids = parts
    if type(producer) is not str or not 0 < len(producer) <= ATTRIBUTE_NAME_LENGTH_MAX:
        raise ProtocolViolation(f"PRODUCE: a producer has a name of 1 to {ATTRIBUTE_NAME_LENGTH_MAX} characters")
    if not is_counter(epoch) or not is_counter(number):
        raise ProtocolViolation("PRODUCE: epoch and number are integers from 0 to 2^53")
    if type(digest) is not bytes or len(digest) > DIGEST_LENGTH_MAX:
        raise ProtocolViolation(f"PRODUCE: a digest is a bin of at most {DIGEST_LENGTH_MAX} bytes")
    if type(ids) is not bytes:
        raise ProtocolViolation("PRODUCE: ids are a column with one string an event, or an empty bin")
    return Stamp(producer, epoch, number, digest, ids)

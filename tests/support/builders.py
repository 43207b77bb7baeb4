"""Builders of the messages that tests of the broker say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.protocol.data import Batch, Portion, Scalar, decode_record, make_batch
from headgate.protocol.messages import Deliver, Mode, Publish, Subscribe

__all__ = ["deliveries_of", "make_publish", "make_subscribe", "quote_batch"]


def quote_batch(
    topics: str | Sequence[str] = "quotes/NYSE/OTE",
    bodies: Sequence[str] = ("one",),
    interest: Sequence[str] | None = None,
    **attributes: Sequence[Scalar],
) -> Batch:
    """A batch of as many events as there are bodies; attributes are columns."""
    names = [topics] if isinstance(topics, str) else list(topics)
    return make_batch(names, attributes, [body.encode() for body in bodies], interest)


def make_publish(sequence: int, batch: Batch | None = None, mode: Mode = Mode.ACCEPTED) -> Publish:
    """A PUBLISH; without a batch, of one event whose body is the sequence."""
    return Publish(sequence, mode, batch if batch is not None else quote_batch(bodies=[str(sequence)]))


def make_subscribe(number: int, pattern: str = "quotes", condition: str = "", **options: Any) -> Subscribe:
    """A SUBSCRIBE whose request is 100 and its number."""
    return Subscribe(100 + number, number, pattern, condition, options)


def deliveries_of(messages: Sequence[object]) -> list[tuple[int, str]]:
    """(subscription, body) of every delivery in these messages, in order."""
    unrolled: list[tuple[int, str]] = []
    for message in messages:
        if isinstance(message, Deliver):
            bodies = _bodies(message.portion)
            for numbers, count in message.runs():
                for body in (bodies.pop(0) for _ in range(count)):
                    unrolled += [(number, body) for number in numbers]
            assert not bodies, "the routes do not cover the portion"
    return unrolled


def _bodies(portion: Portion) -> list[str]:
    batch = Batch(portion.topics, portion.count, portion.lengths, portion.records)
    batch.check()
    return [decode_record(piece)[1].decode() for piece in batch.pieces()]

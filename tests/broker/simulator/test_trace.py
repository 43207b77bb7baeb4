"""The trace: stable text, and a digest that any change of anything changes."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.effects import Send
from headgate.broker.core.inputs import Received
from headgate.broker.simulator.engine import Trace, as_text
from headgate.protocol.messages import Ask, Deliver, Ping, Puback
from tests.support.builders import make_publish, quote_batch


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"123456789", "9b#cbf43926"),
        ([1, "a", None], "[1 'a' None]"),
        ({"b": 1, "a": (2.5,)}, "{'b':1 'a':[2.5]}"),
        (Ping(7), "Ping(token=7)"),
        (Send(3, Puback(9)), "Send(link=3 message=Puback(sequence=9))"),
    ],
)
def test_values_have_one_text(value: Any, text: str) -> None:
    assert as_text(value) == text


def test_long_values_are_cut_and_still_tell_a_difference() -> None:
    first, second = as_text("x" * 500 + "a"), as_text("x" * 500 + "b")
    assert len(first) < 240
    assert first != second


def test_a_batch_shows_its_columns_and_not_what_it_remembers_of_them() -> None:
    batch = quote_batch(bodies=["a"], price=[1.5])
    before = as_text(make_publish(1, batch))
    batch.column("price")
    batch.pieces()
    assert as_text(make_publish(1, batch)) == before
    assert "price=" in before


def test_a_portion_is_the_same_before_and_after_it_was_encoded() -> None:
    portion = quote_batch(bodies=["a", "b"]).portion([1], "o", 5, 6)
    before = as_text(Deliver([[1], 1], portion))
    portion.encoded = b"something"
    assert as_text(Deliver([[1], 1], portion)) == before


def test_every_line_counts_for_the_digest_and_reaches_the_reader() -> None:
    lines: list[str] = []
    trace, other = Trace(lines.append), Trace()
    trace.step(1.5, "broker-1", Received(1, [Ask(1, "status", {})]), [Send(1, Puback(2))])
    assert [line.split(" ", 3)[:3] for line in lines] == [["1.500000", "broker-1", "<"], ["1.500000", "broker-1", ">"]]
    other.step(1.5, "broker-1", Received(1, [Ask(1, "status", {})]), [Send(1, Puback(3))])
    assert len(trace.digest) == 64
    assert trace.digest != other.digest
    assert trace.digest == trace.digest


def test_the_shape_alone_is_of_time_and_kinds_and_is_written_whole() -> None:
    def digest(time: float, *messages: Any) -> str:
        trace = Trace(whole=False)
        trace.step(time, "broker-1", Received(1, list(messages)), [Send(1, Puback(2))])
        return trace.digest

    assert digest(1.5, Ping(1)) == digest(1.5, Ping(2))
    assert len({digest(1.5, Ping(1)), digest(1.6, Ping(1)), digest(1.5, Ping(1), Ping(1)), digest(1.5, Puback(1))}) == 4
    lines: list[str] = []
    Trace(lines.append, whole=False).step(1.5, "broker-1", Received(1, [Ping(7)]), [])
    assert lines[0].startswith("1.500000 broker-1 < Received(link=1 messages=[Ping(token=7)]")

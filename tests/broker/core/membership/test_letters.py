"""Letters on the wire: every kind goes there and back, and nonsense of every sort is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.membership import Letter, Member, Notify, State, from_wire, member_of, to_wire
from headgate.broker.core.membership.members import after
from headgate.broker.core.membership.messages import (
    Agree,
    Body,
    Busy,
    Fenced,
    Gone,
    Greet,
    Look,
    Meet,
    Open,
    Ping,
    Pong,
    Propose,
    Query,
    Ringed,
    Seen,
    Shrunk,
)
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Letter as WireLetter

ANNA, BERT, CARL = (member_of(name, life, f"{name}:7401") for life, name in enumerate(("anna", "bert", "carl")))
LIST = (BERT, CARL, after(CARL), after(after(CARL)))

BODIES: list[Body] = [
    Query(1),
    State(2, CARL, LIST),
    State(3, None, LIST),
    Busy(4),
    Ping(5),
    Pong(6),
    Notify(),
    Gone(BERT),
    Fenced(),
    Look(7),
    Seen(8, LIST, (ANNA,)),
    Greet(()),
    Greet((ANNA, BERT)),
    Ringed(),
    Meet(),
    Propose((ANNA, BERT)),
    Agree((ANNA, BERT)),
    Open((ANNA, BERT)),
    Shrunk((ANNA, BERT), (CARL,)),
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
@pytest.mark.parametrize("recipient", [None, BERT])
def test_there_and_back(body: Body, recipient: Member | None) -> None:
    letter = Letter(ANNA, recipient, body)
    assert from_wire(to_wire(letter)) == letter


def test_every_kind_has_its_own_number() -> None:
    kinds = {type(body): to_wire(Letter(ANNA, BERT, body)).kind for body in BODIES}
    assert sorted(kinds.values()) == list(range(len(kinds)))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (99, []),
        (0, []),
        (0, [1, 2]),
        (0, ["1"]),
        (0, [True]),
        (0, [-1]),
        (1, [1, None, []]),
        (1, [1, None, [[1, 2, 3]]]),
        (1, [1, None, [[2**64, 0, 0, "x"]]]),
        (1, [1, None, [[1, -1, 0, "x"]]]),
        (1, [1, None, [[1, 0, 10**6, "x"]]]),
        (1, [1, None, [[1, 0, 0, "x" * 1000]]]),
        (1, [1, None, [list(ANNA)] * 300]),
        (6, [list(after(ANNA))]),
        (10, [[list(after(ANNA))]]),
        (10, [None]),
    ],
)
def test_nonsense_is_refused(kind: int, body: list[Any]) -> None:
    with pytest.raises(ProtocolViolation):
        from_wire(WireLetter(list(ANNA), None, kind, body))


@pytest.mark.parametrize("sender", [None, [], [1, 2, 3, 4], list(after(ANNA)), [1, 0, 0, ""], [True, 0, 0, "x"]])
def test_nobody_writes_under_a_broken_name(sender: Any) -> None:
    with pytest.raises(ProtocolViolation):
        from_wire(WireLetter(sender, None, 5, []))


@given(kind=st.integers(-1, 40), body=st.recursive(st.none() | st.integers() | st.text(max_size=3), st.lists))
def test_anything_at_all_is_a_letter_or_a_violation(kind: int, body: Any) -> None:
    try:
        letter = from_wire(WireLetter(list(ANNA), None, kind, body if isinstance(body, list) else [body]))
    except ProtocolViolation:
        return
    assert from_wire(to_wire(letter)) == letter

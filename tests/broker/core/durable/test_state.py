"""States of durable subscriptions: as bytes, joined, and what their options say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.durable import (
    Cursor,
    DeadLetter,
    DurableState,
    Former,
    Options,
    Place,
    Section,
    check_options,
    check_settings,
    decode_state,
    encode_state,
    join,
    key_attribute,
    parse_positions,
    positions_text,
    runs_of,
)
from headgate.protocol.data import pack_value, unpack_value
from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused

ANN, BOB = Place("ann", 1), Place("bob", 7)
END = 8

FULL = DurableState(
    "orders",
    version=3,
    generation=9,
    base=8,
    stream="orders",
    pattern="orders/*",
    condition="price > 3",
    sharing="key:symbol",
    ack_wait=2.5,
    max_deliver=4,
    backoff=(1.0, 2.0),
    dead_letter="orders/dead",
    created=77,
    starts={BOB: 4},
    sections=(Section("a = 1", {ANN: 9}),),
    cursors={ANN: Cursor(20, ((3, 9), (11, 12)))},
    handed={ANN: 30},
    counts={ANN: {4: 2, 5: 2, 7: 9}},
    dead=(DeadLetter(ANN, 2, 4, "poison", 99, 7),),
    rewinds=2,
    former=(Former("price > 5", (Section("b = 1", {BOB: 2}),), {ANN: 15, BOB: 3}),),
)


@st.composite
def states(draw: st.DrawFn) -> DurableState:
    state = DurableState(
        "orders",
        version=draw(st.integers(1, 3)),
        removed=draw(st.booleans()),
        generation=draw(st.integers(0, 3)),
        condition=draw(st.sampled_from(["", "a = 1", "b = 2"])),
        ack_wait=draw(st.sampled_from([1.0, 30.0])),
        backoff=draw(st.sampled_from([(), (1.0,), (1.0, 2.0)])),
        starts=draw(st.dictionaries(st.sampled_from([ANN, BOB]), st.integers(0, 3))),
        handed=draw(st.dictionaries(st.sampled_from([ANN, BOB]), st.integers(0, 20))),
        rewinds=draw(st.integers(0, 1)),
    )
    for place in draw(st.sets(st.sampled_from([ANN, BOB]))):
        upto = draw(st.integers(0, END))
        owed = sorted(draw(st.sets(st.integers(0, END))) & set(range(upto)))
        state.cursors[place] = Cursor(upto, tuple(runs_of(owed)))
        counted = {position: draw(st.integers(2, 4)) for position in owed if draw(st.booleans())}
        if counted:
            state.counts[place] = counted
    letters = st.builds(
        DeadLetter,
        *(
            st.just(ANN),
            st.integers(0, 3),
            st.just(1),
            st.sampled_from("ab"),
            st.integers(0, 3),
            st.integers(0, 2**32 - 1),
        ),
    )
    state.dead = join(replace(state, dead=tuple(draw(st.lists(letters, max_size=3)))), state).dead
    return state


def same(left: DurableState, right: DurableState) -> None:
    assert encode_state(left) == encode_state(right)


@given(states())
def test_a_state_comes_back_from_bytes(state: DurableState) -> None:
    assert decode_state(encode_state(state)) == state


def test_every_field_comes_back_from_bytes() -> None:
    assert decode_state(encode_state(FULL)) == FULL


@given(states(), states(), states(), st.tuples(*[st.integers(0, 2)] * 3))
def test_join_is_commutative_associative_and_idempotent(
    a: DurableState, b: DurableState, c: DurableState, bases: tuple[int, int, int]
) -> None:
    a.base, b.base, c.base = bases
    same(join(a, b), join(b, a))
    same(join(join(a, b), c), join(a, join(b, c)))
    same(join(a, a), a)
    same(join(join(a, b), b), join(a, b))
    assert decode_state(encode_state(join(a, b))) == join(a, b)


def test_what_a_coordinator_wrote_after_it_was_fenced_off_counts_no_more() -> None:
    kept = DurableState("orders", version=3, generation=3, base=3, cursors={ANN: Cursor(20)})
    off = DurableState("orders", version=9, generation=2, base=2, rewinds=5, cursors={ANN: Cursor(9, ((1, 2),))})
    assert join(kept, off) == join(off, kept) == kept
    promised = replace(off, generation=4)  # whoever takes it over next has a generation before it knows all of it
    assert join(kept, promised) == replace(kept, generation=4)


def settled(state: DurableState, place: Place) -> set[int]:
    """The dumb twin of a cursor: the positions that are settled, one by one."""
    cursor = state.cursors.get(place, Cursor(0))
    return set(range(cursor.upto)) - {position for run in cursor.owed for position in range(*run)}


@given(states(), states())
def test_what_either_settled_is_settled_and_nothing_else(a: DurableState, b: DurableState) -> None:
    joined = join(a, b)
    for place in (ANN, BOB):
        if a.rewinds == b.rewinds:
            assert settled(joined, place) == settled(a, place) | settled(b, place)
            uptos = [state.cursors[place].upto for state in (a, b) if place in state.cursors]
            assert [joined.cursors[place].upto] == [max(uptos)] if uptos else place not in joined.cursors
        else:
            assert joined.cursors == max(a, b, key=lambda state: state.rewinds).cursors
        assert joined.handed.get(place, 0) == max(a.handed.get(place, 0), b.handed.get(place, 0))
    assert joined.generation == max(a.generation, b.generation)
    newer = [state for state in (a, b) if state.version == max(a.version, b.version)]
    assert joined.condition in {state.condition for state in newer}
    assert joined.removed == any(state.removed for state in newer)


def test_counts_are_the_larger_of_what_is_still_owed() -> None:
    a = DurableState("n", cursors={ANN: Cursor(5, ((1, 4),))}, counts={ANN: {1: 2, 2: 3, 3: 2}})
    b = DurableState("n", cursors={ANN: Cursor(4, ((2, 4),))}, counts={ANN: {2: 2, 3: 4}})
    assert join(a, b).counts == {ANN: {2: 3, 3: 4}}


# --- Bytes that are none ----------------------------------------------------------------------------------------------


def altered(at: list[int], value: Any) -> bytes:
    parts = unpack_value(encode_state(FULL), bytes_max=2**20, items_max=1000)
    inner = parts
    for place in at[:-1]:
        inner = inner[place]
    inner[at[-1]] = value
    return pack_value(parts)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ([0], 2),
        ([1], ""),
        ([1], "a\n"),
        ([2], -1),
        ([3], True),
        ([4], -1),
        ([5], -1),
        ([6], 1.0),
        ([7], 1),
        ([8], "x" * 2000),
        ([12], "key:"),
        ([12], "none"),
        ([13], 0.0),
        ([13], float("nan")),
        ([13], 3),
        ([14], 1001),
        ([15], [1.0] * 17),
        ([16], 65_537),
        ([19], [["ann", 1, 2], ["ann", 1, 3]]),
        ([19], [["bob", 1, 2], ["ann", 1, 3]]),
        ([19], [["", 1, 2]]),
        ([19], [["ann", 1, 2, 3]]),
        ([20], [["a = 1"]]),
        ([21, 0, 2], 10),
        ([21, 0, 3], b"123"),
        ([21, 0, 3], "123"),
        ([22], {"ann": 1}),
        ([23, 0, 2], [4, 1]),
        ([23, 0, 2], [4, 1, 1]),
        ([23, 0, 2], [9, 1, 2]),
        ([23, 0, 2], [4, 0, 2]),
        ([23, 0, 2], [4, 2**43, 2]),
        ([23, 0, 2], [5, 1, 2, 4, 1, 2]),
        ([24, 0, 4], "x" * 121),
        ([24, 0], ["ann", 1, 2, 3, ""]),
    ],
)
def test_a_wrong_shape_is_refused(at: list[int], value: Any) -> None:
    with pytest.raises(ProtocolViolation):
        decode_state(altered(at, value))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_state_or_refused(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        decode_state(data)


# --- Options ----------------------------------------------------------------------------------------------------------


def test_options_say_what_is_given() -> None:
    assert check_options({"durable": "orders"}) == Options("orders")
    given_options = {
        "durable": "orders",
        "from": "ann@1:120, bob@7:0",
        "sharing": "key:symbol",
        "ack_wait": 2,
        "max_deliver": 0,
        "backoff": [1, 2.5],
        "max_unacked": 10,
        "dead_letter": "orders/dead",
        "takeover": True,
        "window": 7,
    }
    assert check_options(given_options) == Options(
        "orders",
        {ANN: 120, BOB: 0},
        True,
        7,
        0,
        {
            "sharing": "key:symbol",
            "ack_wait": 2.0,
            "max_deliver": 0,
            "backoff": (1.0, 2.5),
            "max_unacked": 10,
            "dead_letter": "orders/dead",
        },
    )
    assert check_settings({"durable": "orders", "ack_wait": 0.1}) == {"ack_wait": 0.1}
    assert (key_attribute("key:symbol"), key_attribute("shared")) == ("symbol", "")
    assert positions_text(parse_positions("bob@7:0,ann@1:120")) == "ann@1:120,bob@7:0"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "1 to 256 characters"),
        ({"durable": "x" * 257}, "1 to 256 characters"),
        ({"durable": "a\x7f"}, "no control characters"),
        ({"sharing": "both"}, "exclusive, failover, shared, or key:ATTRIBUTE"),
        ({"sharing": "key:"}, "key:ATTRIBUTE"),
        ({"sharing": None}, "key:ATTRIBUTE"),
        ({"ack_wait": 0.05}, "0.1 to 86400 seconds"),
        ({"ack_wait": True}, "0.1 to 86400 seconds"),
        ({"ack_wait": float("nan")}, "0.1 to 86400 seconds"),
        ({"max_deliver": 1001}, "0 .*to 1000"),
        ({"max_deliver": 1.5}, "0 .*to 1000"),
        ({"backoff": [1.0] * 17}, "up to 16"),
        ({"backoff": [-1]}, "0 to 86400"),
        ({"backoff": "1,2"}, "a list"),
        ({"max_unacked": 0}, "1 to 65536"),
        ({"window": 65_537}, "1 to 65536"),
        ({"takeover": 1}, "true or false"),
        ({"dead_letter": "a/*/#\n"}, "dead_letter is a topic"),
        ({"dead_letter": 3}, "dead_letter is a topic"),
        ({"from": "yesterday"}, "begin at start, now, or positions"),
        ({"from": 3}, "begin at start, now, or positions"),
        ({"from": "ann@1:99999999999999999"}, "begin at"),
        ({"from": "@1:9"}, "begin at"),
    ],
)
def test_an_option_that_will_not_do_is_refused_with_what_would(options: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        check_options({"durable": "orders", **options} if options else {})
    assert refused.value.code == ErrorCode.BAD_REQUEST


def test_a_dead_letter_of_before_keys_were_kept_has_none() -> None:
    parts = unpack_value(encode_state(replace(FULL, former=())), bytes_max=2**20, items_max=1000)
    assert [len(letter) for letter in parts[-1]] == [7]
    parts[-1] = [letter[:6] for letter in parts[-1]]
    assert decode_state(pack_value(parts)).dead == (FULL.dead[0]._replace(key=0),)

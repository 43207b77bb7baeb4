"""The vocabulary: stable numbers, slots, defaults that are valid on the wire."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from headgate.protocol.messages import (
    MESSAGE_TYPES,
    PEER_VERSION,
    VERSION,
    AckVerb,
    Hello,
    Message,
    Mode,
    Scope,
    Subscribe,
)
from headgate.protocol.wire import decode, encode
from tests.support.samples import MESSAGES


def test_type_numbers_never_change() -> None:
    names = "Hello Welcome Error Goodbye Ping Pong Credit Subscribe Suback Unsubscribe Unsuback Publish Puback Deliver"
    names += " Gap Interest Ask Answer Publish ReadLog LogChunk Hold Handed Ack Acked Ended Rejected"
    names += " Peer Letter Control Forward Copy Fetched"
    assert [kind.__name__ for kind in MESSAGE_TYPES.values()] == names.split()
    assert list(MESSAGE_TYPES) == [*range(1, 28), *range(32, 38)]
    assert (VERSION, PEER_VERSION) == (2, 5)


def test_the_union_names_every_type() -> None:
    assert set(typing.get_args(Message)) == set(MESSAGE_TYPES.values())


@pytest.mark.parametrize("kind", MESSAGE_TYPES.values(), ids=lambda kind: kind.__name__)
def test_a_message_is_slotted_and_its_slots_are_its_fields_in_order(kind: type[typing.Any]) -> None:
    assert list(kind.__slots__) == [field.name for field in dataclasses.fields(kind)]
    assert kind.__dictoffset__ == 0
    assert kind.__doc__ and not kind.__doc__.startswith(kind.__name__ + "(")


def test_the_samples_have_one_of_each() -> None:
    assert [type(message) for message in MESSAGES] == list(MESSAGE_TYPES.values())


def test_defaults_are_valid_on_the_wire() -> None:
    for message in (Hello(), Subscribe(1, 1, "quotes")):
        assert decode(encode(message)) == message


def test_options_are_not_shared() -> None:
    Subscribe(1, 1, "a").options["exact"] = True
    assert Subscribe(1, 2, "a").options == {}


def test_modes_scopes_and_verbs_never_change() -> None:
    verbs = [("ACK", 0), ("NAK", 1), ("PROGRESS", 2), ("TERM", 3), ("SKIP", 4)]
    assert [(verb.name, int(verb)) for verb in AckVerb] == verbs
    assert [(mode.name, int(mode)) for mode in Mode] == [("FIRE", 0), ("ACCEPTED", 1), ("STORED", 2)]
    assert [(scope.name, int(scope)) for scope in Scope] == [("CONNECTION", 0), ("REQUEST", 1), ("PUBLISH", 2)]

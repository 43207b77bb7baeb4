"""Messages between brokers: each that is declared travels and comes back; each that is spoiled is refused."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, NamedTuple

import pytest

from headgate.broker.core import node  # noqa: F401  (it imports every room, and so every declaration)
from headgate.broker.core.durable import join_runs
from headgate.broker.core.keyspace import count_dimension
from headgate.broker.core.messages import (
    CONTROLS,
    LETTERS,
    STORE,
    Counter,
    Declared,
    Field,
    Text,
    Vocabulary,
    choice,
    listed,
    nested,
    nullable,
    record,
)
from headgate.protocol.data import LogKind
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Control, Letter
from headgate.protocol.wire import decode, encode
from tests.support.node_world import NodeWorld

SAID = (LETTERS, CONTROLS, STORE)
EVERY = [pytest.param(one, id=f"{said.envelope}-{one.message.__name__}") for said in SAID for one in said]
JUNK: list[Any] = [None, -1, 2**64, 1.5, True, "", "x" * 100_000, b"", b"x" * 100_000, [], [[]], [None], {}, {1: 2}]


def wire_value(field: Field, random: Random) -> Any:
    """Something on the wire that the field may hold, as far as one field can say."""
    match field.label:
        case "whole" | "choice":
            return random.choice([0, 1, field.bound, random.randint(0, field.bound)]) if field.label == "whole" else 0
        case "text":
            return "é" * random.randint(1, min(field.bound, 9))
        case "binary":
            return random.randbytes(random.randint(0, min(field.bound, 9)))
        case "runs":
            start = random.randint(0, 9)
            return join_runs([(start, start + random.randint(1, 9))][: random.randint(0, 1)])
        case "flag":
            return random.random() < 0.5
        case "listed":
            return [wire_value(field.parts[0], random) for _ in range(random.randint(1, 3))]
        case "nullable":
            return None if random.random() < 0.3 else wire_value(field.parts[0], random)
        case "record":
            return [wire_value(part, random) for part in field.parts]
        case "map":
            return {"a": [1, None]}
        case "anything":
            return random.choice([None, 1, "x", [1, {"a": 2.5}]])
        case "dimension":
            return count_dimension("price").wire()
        case "nested":
            return list(STORE.write(STORE.read(7, [3])))
        case "item name":
            return ["sub", random.randint(0, 9)]
    raise AssertionError(f"no example of a field {field.label!r}: add one here")


def examples(declared: Declared, count: int) -> list[list[Any]]:
    """Bodies that are read; what two fields together say is met by chance, so some are tried in vain."""
    random, found = Random(declared.kind), list[list[Any]]()
    for _ in range(20_000):
        body = [wire_value(field, random) for _, field in declared.fields]
        try:
            declared.read(body)
        except ProtocolViolation:
            continue
        found.append(body)
        if len(found) == count:
            return found
    raise AssertionError(f"found {len(found)} examples of {declared.message.__name__}")


def carried(said: Vocabulary, kind: int, body: list[Any]) -> list[Any]:
    """The body behind the codec of the wire."""
    if said is not LETTERS:
        control = decode(encode(Control(kind, body)))
        assert isinstance(control, Control)
        return list(control.body)
    letter = decode(encode(Letter([1, 2, 0, "a:1"], None, kind, body)))
    assert isinstance(letter, Letter)
    return list(letter.body)


@pytest.mark.parametrize("declared", EVERY)
def test_what_is_declared_travels(declared: Declared) -> None:
    said = next(said for said in SAID if declared.message in [one.message for one in said])
    for body in examples(declared, 20):
        message = said.read(declared.kind, body)
        kind, written = said.write(message)
        assert type(message) is declared.message and kind == declared.kind
        assert said.read(kind, carried(said, kind, written)) == message
        assert written == body


@pytest.mark.parametrize("declared", EVERY)
def test_what_is_spoiled_is_refused_or_means_what_it_says(declared: Declared) -> None:
    (body,) = examples(declared, 1)
    for wrong in (None, "x", {}, body[:-1] if body else [1], [*body, 1]):
        with pytest.raises(ProtocolViolation):
            declared.read(wrong)
    for place, (name, field) in enumerate(declared.fields):
        refused = 0
        for junk in JUNK:
            spoiled = [*body[:place], junk, *body[place + 1 :]]
            try:
                message = declared.read(spoiled)
            except ProtocolViolation as error:
                assert declared.message.__name__ in error.text or field.parts or field.label == "dimension", error.text
                assert len(error.text) <= 400
                refused += 1
            else:
                assert declared.write(message) == spoiled, "what is read is what was said"
        assert refused or field.label == "anything", f"{name} takes whatever comes"


def test_a_kind_that_nobody_declared_is_refused() -> None:
    for said in SAID:
        with pytest.raises(ProtocolViolation, match="has kind 199"):
            said.read(199, [])


def test_every_declared_message_has_its_handler() -> None:
    cluster = NodeWorld().node.cluster
    assert {one.message for one in CONTROLS} <= cluster.table_of_controls.keys()
    assert {one.message for one in STORE} <= cluster.kv._table.keys()


# --- The mechanism ----------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """Two of something."""

    left: Counter
    right: Annotated[int | None, nullable(choice(LogKind))]


said = Vocabulary("TEST")


@said.message(7)
@dataclass(slots=True)
class Pairs:
    name: Text
    pairs: Annotated[tuple[Pair, ...], listed(record(Pair, lambda pair: pair.left < 9), 2, 1)]

    def check(self) -> str:
        return "no pairs of nobody" if not self.name else ""


@said.message(8)
@dataclass(slots=True)
class Inside:
    inner: Annotated[Any, nested(said)]


def test_a_declaration_says_all_there_is() -> None:
    message = Pairs("ann", (Pair(1, None), Pair(2, 2)))
    assert said.write(message) == (7, ["ann", [[1, None], [2, 2]]])
    assert said.read(7, ["ann", [[1, None], [2, 2]]]) == message
    assert said.write(Inside(message)) == (8, [[7, ["ann", [[1, None], [2, 2]]]]])
    assert said.read(8, [[7, ["ann", [[1, None], [2, 2]]]]]) == Inside(message)
    for body, words in {
        (): "Pairs has 2 fields, not 0",
        (7, ()): "Pairs: name is not a string",
        ("a", ()): "Pairs: pairs is not a list of 1 to 2, each [left, right]",
        ("a", ((9, None),)): "Pairs: pairs",
        ("a", ((1, 3),)): "Pairs: pairs",
        ("", ((1, 2),)): "Pairs: no pairs of nobody",
    }.items():
        with pytest.raises(ProtocolViolation) as caught:
            said.read(7, plain(body))
        assert words in caught.value.text
    with pytest.raises(AssertionError, match="TEST 7 is Pairs already"):
        said.message(7)


def plain(value: Any) -> Any:
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def test_a_field_without_a_kind_is_no_declaration() -> None:
    @dataclass(slots=True)
    class Bare:
        number: int

    with pytest.raises(AssertionError, match=r"Bare\.number does not say"):
        Vocabulary("TEST").message(1)(Bare)

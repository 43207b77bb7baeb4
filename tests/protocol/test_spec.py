"""SPEC.md is true: its vectors are the bytes of the code, its tables are the tables of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import msgpack
import pytest

from headgate.protocol import limits
from headgate.protocol.data import Row, decode_column, decode_record, decode_row, encode_row, join_u32, split_u32
from headgate.protocol.data.records import encode_record
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import MESSAGE_TYPES, Deliver, Forward, Handed, Publish, Stamp, Suback, wire_name
from headgate.protocol.wire import FrameReader, Role, State, codec, decode, encode, frame, session
from headgate.protocol.wire.codec import FIELDS
from tests.support.samples import MESSAGES, name_of, row

TEXT = (Path(__file__).resolve().parents[2] / "protocol" / "SPEC.md").read_text(encoding="utf-8")
SPELLINGS = {"nil": "None", "true": "True", "false": "False"}
KINDS = ["counter", "text", "name", "bin", "flag", "seconds", "map", "names", "any", "scope"]
KINDS += ["small", "rows", "condition"]
PEER_KINDS = ["settings", "member", "member or nil", "list", "row"]
ACK_KINDS = ["verb", "spans", "some spans", "delay", "checks"]
"""The kinds of fields as SPEC.md calls them, in the order of the codec's own numbers."""


def value_of(notation: str) -> Any:
    """The value that SPEC.md's notation stands for."""
    outside = re.split(r'("(?:[^"\\]|\\.)*")', re.sub(r'bin\("([0-9a-f]*)"\)', r'"\\x00\1"', notation))
    words = [re.sub(r"\w+", lambda word: SPELLINGS.get(word[0], word[0]), piece) for piece in outside[::2]]
    outside[::2] = words
    return with_bins(ast.literal_eval("".join(outside)))


def with_bins(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("\x00"):
        return bytes.fromhex(value[1:])
    if isinstance(value, list):
        return [with_bins(one) for one in value]
    if isinstance(value, dict):
        return {key: with_bins(one) for key, one in value.items()}
    return value


def vectors() -> list[tuple[str, Any, bytes]]:
    """(name, value, bytes) of every block marked `vector`."""
    found = []
    for name, block in re.findall(r"^```vector ([^\n]+)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        first = next(place for place, line in enumerate(lines) if re.fullmatch(r"[0-9a-f]{2}( [0-9a-f]{2})*", line))
        found.append((name, value_of("".join(lines[:first])), bytes.fromhex("".join(lines[first:]))))
    return found


VECTORS = vectors()
BY_NAME = {name_of(message): message for message in MESSAGES}


def table_after(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    _, found, rest = TEXT.partition(f"\n{heading}")
    assert found, f"SPEC.md has no heading {heading!r}"
    rows = []
    for line in rest.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


def test_every_message_has_its_vector() -> None:
    assert [name for name, _, _ in VECTORS if name in BY_NAME] == [name_of(message) for message in MESSAGES]
    others = [name for name, _, _ in VECTORS if name not in BY_NAME]
    routes = "DELIVER, routes as a bin"
    columns = ["column", "column d", "column q"]
    checks = "SUBACK, checks"
    assert others == ["frame PING", checks, routes, "u32", *columns, "record", "record", "column b", "row"]


@pytest.mark.parametrize(("name", "value", "data"), [one for one in VECTORS if one[0] in BY_NAME], ids=lambda one: one)
def test_a_vector_is_the_bytes_of_its_message_both_ways(name: str, value: Any, data: bytes) -> None:
    assert msgpack.unpackb(data) == value
    assert msgpack.packb(value) == data
    assert encode(BY_NAME[name]) == data
    assert decode(data) == BY_NAME[name]
    assert encode(decode(data)) == data


def test_the_other_vectors() -> None:
    for name, value, data in VECTORS:
        if name == "frame PING":
            assert data == b"".join(frame([encode(BY_NAME["PING"])]))
            assert [msgpack.unpackb(view) for view in FrameReader().feed(data)] == [value]
        elif name.startswith("DELIVER,"):
            message = decode(data)
            assert isinstance(message, Deliver)
            assert msgpack.unpackb(data) == value and encode(message) == data
            assert list(message.runs()) == [([7], 1), ([9], 1)]
        elif name.startswith("SUBACK,"):
            assert decode(data) == Suback(*value[1:]) and encode(decode(data)) == data
        elif name == "u32":
            assert join_u32(value) == data and list(split_u32(data)) == value
        elif name.startswith("column"):
            assert data[:1] == (name[7:] or "m").encode()
            assert decode_column(data, len(value)) == value
        elif name == "record":
            attributes, body, *content_type = value
            assert encode_record(attributes, body, *content_type) == data
            assert decode_record(data) == (attributes, body, "".join(content_type))
        elif name == "row":
            assert msgpack.unpackb(data) == value
            assert encode_row(row()) == data and decode_row(data) == row()


@pytest.mark.parametrize(("number", "kind"), MESSAGE_TYPES.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_a_message_has_its_fields_in_order(number: int, kind: type[Any]) -> None:
    name = "PRODUCE" if number == 19 else wire_name(kind)
    sides = [
        (Role.CLIENT, State.OPEN, "broker"),
        (Role.BROKER, State.OPEN, "client"),
        (Role.CLIENT, State.OPENING, "broker"),
        (Role.BROKER, State.OPENING, "client"),
    ]
    senders = {sender for role, state, sender in sides if kind in session._ACCEPTED[role, state]}
    sender = "from both" if len(senders) == 2 else f"from the {senders.pop()}" if senders else "between brokers"
    rows = table_after(f"### {name}, type {number}, {sender}\n")
    fields = [row[0] for row in rows]
    if kind is Publish:
        stamp = list(Stamp.__slots__) if number == 19 else []
        assert fields == ["sequence", "mode", *stamp, "topics", "lengths", "columns", "complete", "records"]
    elif kind is Deliver:
        assert fields == ["routes", "log", "origin", "base", "time", "offsets", "topics", "lengths", "records"]
    elif kind is Handed:
        portion = ["origin", "base", "time", "offsets", "topics", "lengths", "records"]
        assert fields == ["subscription", "first", "counts", *portion]
    elif kind is Forward:
        names = "dimensions hops log origin base time offsets topics lengths columns complete records"
        assert fields == names.split()
    else:
        assert fields == list(kind.__slots__)
        assert [row[1] for row in rows] == [(KINDS + PEER_KINDS + ACK_KINDS)[field] for field in FIELDS[number]]


def test_the_kinds_are_explained() -> None:
    assert {row[0] for row in table_after("## 3. ")} == set(KINDS + ACK_KINDS)
    assert {row[0] for row in table_after("### 18.2 ")} == set(PEER_KINDS)


def test_the_table_of_states_is_the_sessions() -> None:
    for name, clients, brokers, _ in table_after("## 4. "):
        state = State(name)
        for cell, listener, speaker in ((clients, Role.BROKER, Role.CLIENT), (brokers, Role.CLIENT, Role.BROKER)):
            said = set() if cell == "nothing" else set(cell.split(", "))
            assert ("PRODUCE" in said) == ("PUBLISH" in said), "one message under two numbers"
            assert said - {"PRODUCE"} == {wire_name(kind) for kind in session._ACCEPTED[listener, state]}
            assert said - {"PRODUCE"} == {wire_name(kind) for kind in session._SENT[speaker, state]}


def test_the_table_of_states_between_brokers_is_the_sessions() -> None:
    for name, cell, _ in table_after("### 18.1 "):
        said = set() if cell == "nothing" else set(cell.split(", "))
        for table in (session._ACCEPTED, session._SENT):
            assert said == {wire_name(kind) for kind in table[Role.PEER, State(name)]}


def test_the_table_of_errors_is_complete() -> None:
    rows = table_after("## 13. ")
    assert [(int(row[0]), row[1]) for row in rows] == [(code.value, code.name) for code in ErrorCode]
    assert all((row[2] == "yes") == (int(row[0]) < 100 or row[1] == "SEQUENCE_GAP") for row in rows)


def test_limits_are_those_of_the_code() -> None:
    rows = table_after("## 15. ")
    assert len(rows) > 15
    for name, value, _ in rows:
        assert float(value) == getattr(limits, name), name


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("it is at most {}, afterwards", limits.HANDSHAKE_FRAME_LENGTH_MAX),
        ("afterwards at most {};", limits.FRAME_LENGTH_MAX),
        ("an integer from 0 to {} ", limits.CREDIT_MAX),
        ("text | a string of at most {} bytes", limits.TEXT_LENGTH_MAX),
        ("condition | a string of at most {} bytes", limits.CONDITION_LENGTH_MAX),
        ("a list of at most {} attribute names", limits.INTEREST_ATTRIBUTES_MAX),
        ("A batch holds 1 to {} events", limits.BATCH_EVENTS_MAX),
        ("A record has at most {} bytes", limits.RECORD_LENGTH_MAX),
        ("attribute name to column (section 6.2), at most {} ", limits.COLUMNS_MAX),
        ("subscription, at most {};", limits.LIST_LENGTH_MAX),
        ("have at most {} elements, of a SUBSCRIBE", limits.LIST_LENGTH_MAX),
        ("of a SUBSCRIBE, INTEREST or ASK {};", codec._LIST_LENGTH_MAX[17]),
        ("has at most {} members, of an ASK", codec._MAP_LENGTH_MAX[8]),
        ("of an ASK or ANSWER {}.", codec._MAP_LENGTH_MAX[17]),
        ("of an ASK or ANSWER {}.", codec._MAP_LENGTH_MAX[18]),
        ("Ring control; lists have at most {} elements", codec._LIST_LENGTH_MAX[33]),
        ("that is small; lists have at most {} elements", codec._LIST_LENGTH_MAX[34]),
        ("a PEER has at most {} bytes", codec._LENGTH_MAX[32]),
        ("of a CONTROL {}, of a FORWARD", codec._LENGTH_MAX[34]),
        ("of a FORWARD, COPY or FETCHED {}.", codec._LENGTH_MAX[35]),
        ("a list of at most {} pairs of counters", limits.ACK_SPANS_MAX),
        ("a list of at most {} bins", limits.LOG_CHUNK_ROWS_MAX),
        ("1 to {} events; the next row", limits.BATCH_EVENTS_MAX),
        ("of at most {} bytes of rows", limits.LOG_CHUNK_BYTES_MAX),
        ("at most {} bytes: the producer's own word", limits.DIGEST_LENGTH_MAX),
        ("a map of at most {} names to nil", limits.SETTINGS_MAX),
        ("1 to {} pairs", limits.DIMENSIONS_MAX),
        ("a list of 1 to {} scalars", limits.DIMENSION_LENGTH_MAX),
    ],
)
def test_numbers_in_sentences_are_those_of_the_code(sentence: str, value: int) -> None:
    assert sentence.format(value) in re.sub(r"\s+", " ", TEXT)


def test_the_questions_are_those_of_the_broker() -> None:
    from headgate.broker.core.clients.questions import VERBS

    others = {row[0].strip("`") for heading in ("### 19.4 ", "### 20.5 ") for row in table_after(heading)}
    assert {row[0].strip("`") for row in table_after("## 14. ")} == set(VERBS) - others


def test_a_row_has_its_fields_in_order() -> None:
    rows = table_after("### 19.1 ")
    assert [int(cells[0]) for cells in rows] == list(range(len(Row.__slots__)))
    assert [cells[1] for cells in rows] == list(Row.__slots__)

"""Schemas: every log has its columns, and `attributesSchema` is understood or refused by name."""

from __future__ import annotations

import pytest

from headgate.protocol.spark.errors import BadOption
from headgate.protocol.spark.options import KINDS, read_options
from headgate.protocol.spark.reading.decoding import _MAKERS
from headgate.protocol.spark.schemas import TYPED, attributes_type, schema_text


def names(kind: str) -> list[str]:
    text = schema_text(read_options({"headgate.bootstrap.servers": "a", "topic": "q", "subscribe": kind}))
    depth, found = 0, [""]
    for character in text:
        depth += (character == "<") - (character == ">")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [column.split()[0] for column in found]


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_has_a_maker_and_the_other_way_round(kind: str) -> None:
    assert sorted(names(kind)) == sorted(_MAKERS[kind])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "MAP<STRING, STRING>"),
        ("typed", f"MAP<STRING, {TYPED}>"),
        ("symbol STRING", "STRUCT<`symbol`: STRING>"),
        ("a: long, b Double , c boolean", "STRUCT<`a`: BIGINT, `b`: DOUBLE, `c`: BOOLEAN>"),
        ("`body.order.price` DOUBLE, `a``b` DATE", "STRUCT<`body.order.price`: DOUBLE, `a``b`: DATE>"),
        ("at TIMESTAMP, n INT", "STRUCT<`at`: TIMESTAMP, `n`: INT>"),
        (
            "price STRUCT<l BIGINT, d: double, `s` STRING>, n int",
            "STRUCT<`price`: STRUCT<`l`: BIGINT, `d`: DOUBLE, `s`: STRING>, `n`: INT>",
        ),
    ],
)
def test_attributes(text: str, wanted: str) -> None:
    assert attributes_type(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "symbol",
        "symbol STRING price DOUBLE",
        "symbol STRING,",
        "symbol STRING; DROP",
        "a ARRAY<INT>",
        "a DECIMAL(9,2)",
        "a STRUCT<x BIGINT>",
        "a STRUCT<l STRING>",
        "a STRUCT",
        "`` STRING",
        "1a STRING",
        ",",
    ],
)
def test_anything_else_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(BadOption, match="'attributesSchema'"):
        attributes_type(text)


def test_declared_attributes_are_a_struct_of_their_types() -> None:
    options = read_options({"headgate.bootstrap.servers": "a", "topic": "q", "attributesSchema": "declared"})
    entries = {"price": {"type": "float"}, "n": {"type": "int"}, "a b": {"type": "string"}, "live": {"type": "bool"}}
    assert "STRUCT<`a b`: STRING, `live`: BOOLEAN, `n`: BIGINT, `price`: DOUBLE>" in schema_text(
        options, lambda: entries
    )
    with pytest.raises(BadOption, match="the schema of q declares"):
        schema_text(options, dict)

"""Layout: which column becomes what, and which can become nothing."""

from __future__ import annotations

import pytest

from headgate.protocol.spark.errors import BadOption, MissingOption, UnsupportedType
from headgate.protocol.spark.layout import RESERVED, Layout, plan_layout
from headgate.protocol.spark.options import WriteOptions, write_options


def options(**more: str) -> WriteOptions:
    return write_options({"headgate.bootstrap.servers": "one:7400", "topic": "quotes/a"} | more)


def test_every_scalar_is_an_attribute_of_its_type() -> None:
    kinds = {"t": "tinyint", "s": "smallint", "i": "int", "l": "bigint", "f": "float", "d": "double", "b": "boolean"}
    kinds |= {"x": "string", "v": "varchar(10)", "at": "timestamp", "local": "timestamp_ntz", "day": "date"}
    layout = plan_layout(list(kinds.items()), options())
    assert layout == Layout(
        topic="quotes/a",
        value="",
        maps=(),
        attributes=(
            *(("t", "int"), ("s", "int"), ("i", "int"), ("l", "int"), ("f", "double"), ("d", "double")),
            *(("b", "bool"), ("x", "string"), ("v", "string"), ("at", "int"), ("local", "int"), ("day", "int")),
        ),
        id_column="",
    )


def test_a_document_is_the_body() -> None:
    kinds = [("n", "int"), ("value", "void"), ("page", "string")]
    layout = plan_layout(kinds, options(documentColumn="page"))
    assert (layout.body, layout.value, layout.content_type) == ("page", "string", "application/xml")
    assert layout.attributes == (("n", "int"),)
    layout = plan_layout([("value", "binary")], options(documentColumn="value", documentKind="json"))
    assert (layout.body, layout.value, layout.content_type) == ("value", "binary", "application/json")


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        ([("n", "int"), ("value", "binary")], "one of n, value"),
        ([("page", "string"), ("value", "binary")], "drop column 'value'"),
        ([("page", "struct<a:int>")], "to_json"),
        ([("page", "int")], "STRING or BINARY"),
    ],
)
def test_what_is_no_column_of_documents(kinds: list[tuple[str, str]], text: str) -> None:
    with pytest.raises((BadOption, UnsupportedType), match=text):
        plan_layout(kinds, options(documentColumn="page"))


def test_reserved_names() -> None:
    kinds = [(name, allowed[0]) for name, allowed in RESERVED.items()]
    layout = plan_layout(kinds, options(topic=""))
    assert (layout.topic, layout.value, layout.maps) == ("", "binary", ("headers",))
    assert layout.attributes == (("event_id", "string"), ("key", "string"), ("event_time", "int"))


@pytest.mark.parametrize("name", RESERVED)
def test_a_reserved_name_has_its_type(name: str) -> None:
    with pytest.raises(UnsupportedType, match=f"'{name}'"):
        plan_layout([(name, "array<int>")], options())


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("decimal(10,2)", "DOUBLE"),
        ("binary", "'value'"),
        ("array<int>", "flat"),
        ("map<string,int>", "'headers'"),
        ("struct<a:int>", "select its fields"),
        ("variant", "to_json"),
        ("interval day to second", "cast it"),
    ],
)
def test_what_no_event_can_hold_is_refused_with_a_cure(kind: str, word: str) -> None:
    with pytest.raises(UnsupportedType, match="'price'") as caught:
        plan_layout([("price", kind)], options())
    assert kind in str(caught.value)
    assert word in str(caught.value)


def test_a_column_of_nothing_is_left_out() -> None:
    layout = plan_layout([("a", "void"), ("value", "void"), ("b", "int")], options())
    assert layout.attributes == (("b", "int"),)


def test_a_topic_is_needed_and_checked() -> None:
    with pytest.raises(MissingOption, match="'topic'"):
        plan_layout([("a", "int")], options(topic=""))
    with pytest.raises(MissingOption, match="'topic'"):
        plan_layout([("topic", "void")], options(topic=""))
    for topic in ("quotes//a", "quotes/*"):
        with pytest.raises(BadOption, match="'topic'"):
            plan_layout([("a", "int")], options(topic=topic))


def test_the_option_wins_over_the_column() -> None:
    assert plan_layout([("topic", "string")], options(topic="quotes/b")).topic == "quotes/b"


def test_too_many_attributes() -> None:
    with pytest.raises(UnsupportedType, match="1024"):
        plan_layout([(f"a{number}", "int") for number in range(1025)], options())


def test_an_id_column_must_exist_and_be_an_id() -> None:
    kinds = [("event_id", "string"), ("order", "bigint"), ("price", "double")]
    assert plan_layout(kinds, options()).id_column == ""
    assert plan_layout(kinds, options(idempotence="id")).id_column == "event_id"
    assert plan_layout(kinds, options(eventIdColumn="order")).id_column == "order"
    with pytest.raises(BadOption, match="eventIdColumn"):
        plan_layout(kinds, options(eventIdColumn="number"))
    with pytest.raises(UnsupportedType, match="'price'"):
        plan_layout(kinds, options(eventIdColumn="price"))


LOG = [("topic", "string"), ("partition", "int"), ("offset", "bigint"), ("timestamp", "timestamp")]
LOG += [("event_id", "string"), ("producer_id", "string"), ("sequence", "bigint")]
REST = [("headers", "map<string,string>"), ("value", "binary")]
TYPED = "map<string,struct<l:bigint,d:double,s:string,b:boolean>>"


def test_a_frame_that_was_read_can_be_written() -> None:
    texts = plan_layout([*LOG, ("attributes", "map<string,string>"), *REST], options(topic=""))
    assert (texts.attributes, texts.maps, texts.fields) == ((), ("headers", "attributes"), ())
    typed = plan_layout([*LOG, ("attributes", TYPED), *REST], options(topic=""))
    assert (typed.attributes, typed.maps) == ((), ("attributes",)), "typed values have the headers among them"
    fields = [("price", "double"), ("sequence", "bigint")]
    struct = plan_layout([*LOG, ("attributes", "struct<...>"), *REST], options(topic=""), fields)
    assert (struct.attributes, struct.maps) == ((("price", "double"), ("sequence", "int")), ("headers",))


def test_without_attributes_these_names_are_attributes() -> None:
    assert plan_layout([("offset", "bigint")], options()).attributes == (("offset", "int"),)


def test_an_id_of_a_log_still_tells_rows_apart() -> None:
    made = plan_layout([*LOG, ("attributes", TYPED), *REST], options(topic="", eventIdColumn="event_id"))
    assert (made.id_column, made.attributes) == ("event_id", ())


def test_an_attribute_twice_is_refused() -> None:
    with pytest.raises(UnsupportedType, match=r"attributes.price"):
        plan_layout([("price", "double"), ("attributes", "struct<...>")], options(), [("price", "double")])

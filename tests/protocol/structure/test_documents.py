"""protocol/structure: documents and their filters agree with the twigs of the matching room, and with lxml."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from headgate.matching.structure import DEFAULT_SHAPE, filter_of, pack, parse_twig, unpack
from headgate.protocol.errors import LocalError
from headgate.protocol.structure import (
    Check,
    Checks,
    DocumentError,
    Finding,
    filter_columns,
    filters_of_body,
    is_document,
    is_filter_name,
    read_document,
    to_body,
)
from tests.matching.structure.samples import twig_texts, xml_documents, xml_items

XML, JSON = "application/xml", "application/json"
COLUMNS = (DEFAULT_SHAPE.column, DEFAULT_SHAPE.values_column)
LEAVES = st.one_of(st.sampled_from(["1", "it's", "ü", "\ud800\x00", ""]), st.integers(0, 2), st.booleans(), st.none())
OBJECTS: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.dictionaries(st.sampled_from(["a", "b", "c", "no name", "@x"]), below, max_size=3),
        st.lists(below, max_size=3),
    ),
    max_leaves=12,
)


def checks(twig: str) -> Checks:
    """The check of one twig."""
    made = parse_twig(twig)
    return Checks([Check(made.xpath(), tuple(made.items() | made.values()))])


def passes(twig: str, cells: dict[str, bytes]) -> bool:
    """What a broker says."""
    made = parse_twig(twig)
    items, values = (unpack(cells[name], 1024) for name in COLUMNS)
    assert items is not None and values is not None
    return not made.filter(1024, 1) & ~items and not made.values_filter(1024, 1) & ~values


@given(xml_documents(), twig_texts())
def test_xml_that_has_a_twig_passes_its_filter(text: str, twig: str) -> None:
    """BLOOM 3.2.3; never a false negative, and what is false is told apart."""
    body = text.encode()
    finding = checks(twig).find(body, XML)
    found = etree.fromstring(body).getroottree().xpath(parse_twig(twig).xpath())
    assert (finding is Finding.TRUE) == found
    assert not found or passes(twig, filter_columns(read_document(body, XML), COLUMNS))
    has_items = (parse_twig(twig).items() | parse_twig(twig).values()) <= xml_items(etree.fromstring(body))
    assert found or finding is (Finding.STRUCTURE if has_items else Finding.HASH)


@given(OBJECTS, twig_texts())
def test_json_that_has_a_twig_passes_its_filter(value: Any, twig: str) -> None:
    body = json.dumps(value).encode()
    if checks(twig).find(body, JSON) is Finding.TRUE:
        assert passes(twig, filter_columns(read_document(body, JSON), COLUMNS))


@given(xml_documents())
def test_both_rooms_know_the_same_items_and_bits(text: str) -> None:
    document = read_document(text.encode(), XML)
    items = xml_items(etree.fromstring(text))
    assert document.items() == items
    structure = {item for item in items if item[0] != "v"}
    cells = filter_columns(document, ["price", *COLUMNS, "#structure/64/3"])
    assert cells[COLUMNS[0]] == pack(filter_of(structure, 1024, 1), 1024)
    assert cells[COLUMNS[1]] == pack(filter_of(items - structure, 1024, 1), 1024)
    sparse = filter_of(structure, 64, 3)
    assert cells.get("#structure/64/3") == (pack(sparse, 64) if sparse.bit_count() <= 32 else None)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (
            "<p:a xmlns:p='u' p:x='1' y='2'><p:b/></p:a>",
            {"n/a", "r/a", "s/a/@x", "n/@x", "s/a/@y", "n/@y", "s/a/b", "n/b"},
        ),
        ("<a xmlns='urn:u'><a xmlns=''/></a>", {"n/a", "r/a", "s/a/a"}),
        ("<!DOCTYPE a [<!ATTLIST a x CDATA '1'>]><a/>", {"n/a", "r/a", "s/a/@x", "n/@x"}),
        ("<!DOCTYPE a SYSTEM 'a.dtd'><a>&it-s;</a>", {"n/a", "r/a"}),
    ],
)
def test_names_are_local_ones(text: str, items: set[str]) -> None:
    document = read_document(text.encode(), XML)
    assert {one for one in document.items() if one[0] != "v"} == items
    assert filter_columns(document, COLUMNS)[COLUMNS[0]] == pack(filter_of(items, 1024, 1), 1024)


def test_a_document_of_many_names_has_its_filter() -> None:
    names = [f"n{number}" for number in range(100)]
    document = read_document(f"<a>{''.join(f'<{name}/>' for name in names)}</a>".encode(), XML)
    items = {"r/a", "n/a", *(f"n/{name}" for name in names), *(f"s/a/{name}" for name in names)}
    assert filter_columns(document, COLUMNS)[COLUMNS[0]] == pack(filter_of(items, 1024, 1), 1024)


def test_of_texts_that_cannot_be_read_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(body: bytes) -> Any:
        raise ValueError("no tree")

    document = read_document(b"<a>1</a>", XML)
    monkeypatch.setattr("headgate.protocol.structure.xml_documents.xml_element", refuse)
    assert list(filter_columns(document, COLUMNS)) == [COLUMNS[0]]
    with pytest.raises(DocumentError, match="no tree"):
        document.items()


@pytest.mark.parametrize(
    ("value", "twig", "found"),
    [
        ({"bib": {"book": [{"title": "x"}, {"author": {"last": "y"}}]}}, "/bib/book[title]", True),
        ({"bib": {"book": [{"title": "x"}, {"author": {"last": "y"}}]}}, "book/author/last", True),
        ({"bib": {"book": [{"title": "x"}, {"author": {"last": "y"}}]}}, "book[title][author]", False),
        ({"a": 1, "b": 2}, "/b", True),
        ([[{"a": [[{"b": 1}]]}]], "/a/b", True),
        ({"a": []}, "a", False),
        ({"a": {}}, "a=''", True),
        ({"a": [1.50, 2]}, "a='1.5'", True),
        ({"a": True}, "a='true'", False),
        ({"no name": {"a": {"b": 1}}}, "a/b", True),
        ({"no name": {"a": {"b": 1}}}, "/a", False),
        ({"@id": "7"}, "@id", False),
        ({"a": "x\x00y"}, "a='x\ufffdy'", True),
        (7, "a", False),
    ],
)
def test_json_is_read_as_elements(value: Any, twig: str, found: bool) -> None:
    body, content_type = to_body(value, "")
    assert content_type == JSON
    assert (checks(twig).find(body, content_type) is Finding.TRUE) == found
    assert not found or passes(twig, filter_columns(read_document(body, content_type), COLUMNS))


def test_a_number_is_the_text_that_it_is_written_with() -> None:
    items = read_document(b'{"a": 1.50, "b": 12345678901234567890123}', JSON).items()
    assert {"v/a/1.50", "v/b/12345678901234567890123"} <= items


@pytest.mark.parametrize(
    ("text", "twig"),
    [
        ('<x:a xmlns:x="urn:y"><x:b x:c="1"/></x:a>', "/a/b[@c='1']"),
        ("<a><![CDATA[<b>]]><!-- <c/> --><?d <e/>?></a>", "a='<b>'"),
        ('<a x="&lt;b> c=&quot;1&quot;"><d e=">"/></a>', "a[@x]/d/@e='>'"),
        ('<a xmlns="urn:it\'s&amp;b=c"><b/></a>', "/a/b"),
        ("<!DOCTYPE a SYSTEM 'nowhere.dtd'><a>b&c;</a>", "a='b'"),
        ("<größe>1</größe>", "/größe='1'"),
    ],
)
def test_xml_of_every_kind_is_read_as_lxml_reads_it(text: str, twig: str) -> None:
    body = text.encode()
    assert checks(twig).find(body, XML) is Finding.TRUE
    assert passes(twig, filter_columns(read_document(body, XML), COLUMNS))
    in_utf16 = f"<?xml version='1.0' encoding='utf-16'?>{text}".encode("utf-16")
    assert passes(twig, filter_columns(read_document(in_utf16, XML), COLUMNS))


BOMB = "<!DOCTYPE a [<!ENTITY b 'x'>" + "".join(
    f"<!ENTITY {chr(99 + n)} '{f'&{chr(98 + n)};' * 10}'>" for n in range(9)
)


@pytest.mark.parametrize(
    ("body", "content_type", "why"),
    [
        (f"{BOMB}]><a>&k;</a>".encode(), XML, "no XML"),
        (b"<!DOCTYPE a [<!ENTITY b SYSTEM 'nowhere.txt'>]><a>&b;</a>", XML, "declares entities"),
        (b"<a><b></a>", XML, "no XML that can be read"),
        (b"", XML, "no XML that can be read"),
        (b"<a>\xff</a>", XML, "no XML that can be read"),
        (b"<?xml version='1.0' encoding='klingon'?><a/>", XML, "no XML that can be read"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, JSON, "nested"),
        (b"[" * 100_000 + b"]" * 100_000, JSON, "nested"),
        (b"<a>b&c;</a>", XML, "undefined entity"),
        (b'{"a": NaN}', JSON, "NaN is no JSON"),
        (b'{"a": "\xff"}', JSON, "no JSON that can be read"),
        (b"<a/>", "text/plain", "no document"),
    ],
)
def test_a_bad_document_is_refused_and_has_no_twig(body: bytes, content_type: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        read_document(body, content_type).items()
    assert checks("nothing").find(body, content_type) is not Finding.TRUE
    nothing = dict.fromkeys(COLUMNS, b"") if not body or content_type == "text/plain" else {}
    assert filters_of_body(body, content_type, COLUMNS) == nothing


def test_objects_nest_so_deep_and_no_deeper() -> None:
    def nested(depth: int) -> bytes:
        return b'{"a":' * depth + b"1" + b"}" * depth

    assert read_document(nested(256), JSON).items() >= {"r/a", "s/a/a", "v/a/1"}
    with pytest.raises(DocumentError, match="deeper than 256"):
        read_document(nested(258), JSON).items()


def test_a_hundred_thousand_levels_harm_nobody() -> None:
    body = b"<a>" * 100_000 + b"</a>" * 100_000
    assert read_document(body, XML).items() == {"r/a", "n/a", "s/a/a", "v/a/"}
    assert checks("a").find(body, XML) is Finding.NO_DOCUMENT  # lxml has its bound


def test_many_siblings_are_a_few_items() -> None:
    body = b"<a>" + b"<b/>" * 20_000 + b"</a>"
    assert read_document(body, XML).items() == {"r/a", "n/a", "n/b", "s/a/b", "v/b/"}


@pytest.mark.slow
@pytest.mark.parametrize("content_type", [XML, JSON])
def test_a_million_siblings_are_a_few_items_too(content_type: str) -> None:
    """No event is as long; a file on its way to becoming one is."""
    many = b"<a>" + b"<b/>" * 1_000_000 + b"</a>" if content_type == XML else b'{"a":{"b":[' + b"1," * 999_999 + b"1]}}"
    cells = filter_columns(read_document(many, content_type), COLUMNS[:1])
    assert cells == filter_columns(read_document(b"<a><b/></a>", XML), COLUMNS[:1])


def test_a_filter_that_would_say_nothing_is_left_out() -> None:
    body = json.dumps({f"key{number}": "x" for number in range(1000)}).encode()
    assert filter_columns(read_document(body, JSON), COLUMNS) == {}
    assert filter_columns(read_document(body, JSON), ["#structure/65536/1"]).keys() == {"#structure/65536/1"}


def test_names_of_filters() -> None:
    assert is_filter_name("#structure/1024/1") and is_filter_name("#values/8/4")
    assert not any(map(is_filter_name, ("price", "#structure/1023/1", "#structure/8/5", "#values/65544/1", "#x/8/1")))


@pytest.mark.parametrize(
    ("content_type", "is_one"),
    [
        ("application/xml", True),
        ("text/XML; charset=utf-8", True),
        ("application/atom+xml", True),
        ("application/json", True),
        ("application/problem+json ; x=1", True),
        ("", False),
        ("text/plain", False),
        ("xml", False),
    ],
)
def test_the_content_type_says_what_a_document_is(content_type: str, is_one: bool) -> None:
    assert is_document(content_type) == is_one


def test_what_is_given_as_a_document() -> None:
    assert to_body("<ü/>", "") == ("<ü/>".encode(), XML)
    assert to_body(b"{}", "application/vnd.x+json") == (b"{}", "application/vnd.x+json")
    assert to_body({"a": ["ü", 1.5]}, "") == ('{"a":["ü",1.5]}'.encode(), JSON)
    for document, content_type in ((object(), ""), ({"a": float("nan")}, ""), ({"a": 1}, XML), ("\ud800", "")):
        with pytest.raises(DocumentError):
            to_body(document, content_type)


def test_xpath_needs_lxml(monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.protocol.structure import xml_documents

    def absent() -> Any:
        raise ImportError("no lxml")

    monkeypatch.setattr(xml_documents, "_parser", absent)
    with pytest.raises(LocalError, match=r"pip install 'headgate\[xml\]'"):
        Checks([])
    assert filters_of_body(b"<a/>", XML, COLUMNS)[COLUMNS[0]]  # who publishes needs none
    assert filters_of_body(b'{"a": 1}', JSON, COLUMNS)[COLUMNS[0]]

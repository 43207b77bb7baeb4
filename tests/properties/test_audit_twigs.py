"""The audit's two evaluations of twigs agree with each other and with lxml, on random documents and twigs.

Our own walks elements; the other is Spark's `xpath_boolean`, in Java, which the audit asks of plain XML alone. The
subscriber's library has the third word: XPath in lxml.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from headgate.matching.structure import parse_twig
from headgate.ops.jobs.audit_documents import has_twig, read_for_spark, spark_evaluates, with_twigs
from headgate.ops.jobs.audit_limits import SPARK_DEPTH_MAX, SPARK_NAMES_MAX
from headgate.protocol.structure import Check, Checks, Finding, elements_of
from tests.matching.structure.samples import twig_texts, xml_documents
from tests.support.local_spark import local_spark

XML, JSON = "application/xml", "application/json"

FOREIGN = (
    '<p:a xmlns:p="u" p:x="1"><p:b>1</p:b></p:a>',
    '<a xmlns="u"><b x="ü"/></a>',
    '<!DOCTYPE a [<!ELEMENT a ANY>]><a><b y="1">1</b></a>',
    "<?xml-stylesheet href='s'?><a><b/></a>",
    "<a xml:lang='x'><b/></a>",
    "<ä><b/></ä>",
    "\ufeff<a><b/></a>",
    "<a>" * (SPARK_DEPTH_MAX + 1) + "</a>" * (SPARK_DEPTH_MAX + 1),
)
"""What our own evaluation takes, each for a reason of its own."""

PLAIN = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<a><b>1<!-- -->1</b></a>',
    "<?xml version='1.0'?><a><b><![CDATA[it's]]></b></a>",
    '<a x="&#13;1">&#13;</a>',
    "<a>1<b/></a>",
    "<a>" * SPARK_DEPTH_MAX + "</a>" * SPARK_DEPTH_MAX,
    f"<a {' '.join(f'{name}{number}={chr(34)}1{chr(34)}' for name in 'xy' for number in range(90))}/>",
)

DEEP = "/".join("abc"[place % 3] for place in range(SPARK_NAMES_MAX + 1))
WIDE = "a" + "".join(f"[c='{place}']" for place in range(SPARK_NAMES_MAX - 1))


def objects() -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c", "no name", "@x"])
    leaves = st.sampled_from(["", "1", "it's", "ü", 1, True, None])
    inner: st.SearchStrategy[Any] = st.recursive(
        leaves,
        lambda below: st.dictionaries(names, below, max_size=3) | st.lists(below, max_size=3),
        max_leaves=12,
    )
    return inner


def lxml_says(body: bytes, content_type: str, twig: str) -> bool:
    return Checks([Check(parse_twig(twig).xpath(), ())]).find(body, content_type) is Finding.TRUE


@given(xml_documents(), twig_texts())
@example("<a>1<b/></a>", "a='1'")
@example("<a x='1'><b/><a x='2'/></a>", "/a[@x='2']")
def test_our_own_evaluation_is_lxmls(text: str, twig: str) -> None:
    body = text.encode()
    assert has_twig(elements_of(body, XML), parse_twig(twig)) == lxml_says(body, XML, twig)


@given(objects(), twig_texts())
def test_our_own_evaluation_is_lxmls_of_json(value: Any, twig: str) -> None:
    body = json.dumps(value).encode()
    assert has_twig(elements_of(body, JSON), parse_twig(twig)) == lxml_says(body, JSON, twig)


@pytest.mark.parametrize("text", FOREIGN)
def test_what_java_may_read_otherwise_is_evaluated_here(text: str) -> None:
    body = text.encode()
    for twig in ("/a", "a/b", "@x", "@lang", "b[@x='ü']", "b='1'", "ä/b", "b/a"):
        plain, found = read_for_spark(body, XML, [parse_twig(twig)], [])
        assert plain is None and bool(found) == lxml_says(body, XML, twig), twig


@pytest.mark.parametrize(
    ("value", "content_type"),
    [(None, XML), (b"<a/>", None), (b"<a/>", "text/plain"), (b"<a>", XML), (b"{", JSON), (b"<a/>", "text/json; c=xml")],
)
def test_what_is_no_document_has_no_twig(value: bytes | None, content_type: str | None) -> None:
    assert read_for_spark(value, content_type, [parse_twig("a")], []) == (None, [])


def test_which_twigs_java_takes() -> None:
    assert not spark_evaluates(parse_twig(DEEP)) and spark_evaluates(parse_twig(WIDE))


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with local_spark() as session:
        yield session


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    st.lists(xml_documents(), min_size=60, max_size=60),
    st.lists(twig_texts(), min_size=25, max_size=25),
    st.lists(objects(), min_size=10, max_size=10),
)
def test_xpath_boolean_agrees(spark: Any, texts: list[str], some: list[str], values: list[Any]) -> None:
    bodies = [(text.encode(), XML) for text in (*texts, *PLAIN, *FOREIGN)]
    bodies += [(json.dumps(value).encode(), JSON) for value in values]
    twigs = {parse_twig(twig).text for twig in (*some, "a/b", "@x='\r1'", "a='\r'", "a='1'", "/a/a/a", DEEP, WIDE)}
    asked = [parse_twig(twig) for twig in twigs]
    plain = sum(read_for_spark(body, kind, asked, [])[0] is not None for body, kind in bodies)
    assert plain == len(texts) + len(PLAIN), "those are for Spark"
    rows = [(number, *one) for number, one in enumerate(bodies)]
    frame = spark.createDataFrame(rows, "number int, value binary, content_type string")
    found = {row["number"]: set(row["twigs"]) for row in with_twigs(frame, twigs).collect()}
    assert found == {
        number: {twig.text for twig in asked if has_twig(elements_of(body, kind), twig)}
        for number, (body, kind) in enumerate(bodies)
    }

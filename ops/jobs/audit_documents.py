"""Which twigs the documents of events have, for subscriptions with XPATH: Spark's XPath says it, or our own evaluation.

An event's document is read once by a function of ours in Python. It hands text on to Spark's `xpath_boolean` where that
is sure to mean what `matching/SPEC.md`, 7.4 says and where Java is sure to read it (`_plain_text`): XML 1.0 in UTF-8,
with names of ASCII, without namespaces, DTD and processing instructions, within the limits of Java's parser. What Spark
reads badly would end the whole job. Of everything else (JSON, namespaces, DTDs, other encodings, long twigs) that
function answers itself: `has_twig` walks the elements as the twig's text says, and shares nothing with the filters of
brokers and the XPath of subscribers but the parser of twigs. `tests/properties/test_audit_twigs.py` has both agree.

What is no document, or none that Python's parser reads, has no twig: its publisher made no filter of it either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from headgate.matching.structure import Step, Twig, parse_twig
from headgate.protocol.structure import elements_of, kind_of

from .audit_limits import SPARK_ATTRIBUTES_MAX, SPARK_DEPTH_MAX, SPARK_NAMES_MAX, SPARK_TWIGS_MAX

__all__ = ["has_twig", "read_for_spark", "spark_evaluates", "with_twigs"]

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,254}")
_DECLARATION: Final = re.compile(
    rb"""<\?xml\s+version\s*=\s*["']1\.0["'](\s+encoding\s*=\s*["'][Uu][Tt][Ff]-8["'])?\s*\?>"""
)
_FOREIGN: Final = (b"<!DOCTYPE", b"<?", b"xmlns", b"\xef\xbb\xbf", b"\0")
"""What a text does not have that Spark may read; the last two are other encodings."""


def with_twigs(events: Any, twigs: Iterable[str]) -> Any:
    """The events with column `twigs`, those of these canonical twigs that their documents have, for `value` and
    `content_type`.
    """
    from pyspark.sql import functions as sql

    parsed = [parse_twig(text) for text in sorted(set(twigs))]
    for_spark = [twig for twig in parsed if spark_evaluates(twig)][:SPARK_TWIGS_MAX]
    own = [twig for twig in parsed if twig not in for_spark]

    made = sql.udf(
        lambda value, content_type: read_for_spark(value, content_type, parsed, own),  # Spark warns of type hints
        "plain string, twigs array<string>",
    )
    plain = sql.col("document.plain")
    verdicts = [sql.when(sql.xpath_boolean(plain, sql.lit(twig.xpath())), sql.lit(twig.text)) for twig in for_spark]
    found = sql.array_compact(sql.array(*verdicts)) if verdicts else sql.array().cast("array<string>")
    return (
        events.withColumn("document", made("value", "content_type"))
        .withColumn("twigs", sql.concat("document.twigs", found))
        .drop("document", "value", "content_type")
    )


def spark_evaluates(twig: Twig) -> bool:
    """Whether its XPath is within the limits that Java has for one."""
    return sum(1 for _ in twig.root.walk()) <= SPARK_NAMES_MAX


def read_for_spark(
    value: bytes | None, content_type: str | None, twigs: Sequence[Twig], own: Sequence[Twig]
) -> tuple[str | None, list[str]]:
    """The text that Spark evaluates, or None, and what was found here: of `own` where Spark evaluates, else of all."""
    kind = kind_of(content_type) if value and content_type else ""
    if not value or not content_type or not kind:
        return None, []
    roots = elements_of(bytes(value), content_type)
    plain = _plain_text(bytes(value), roots) if kind == "xml" else None
    return plain, [twig.text for twig in (twigs if plain is None else own) if has_twig(roots, twig)]


def has_twig(roots: Sequence[Any], twig: Twig) -> bool:
    """Whether a document of these elements has the twig."""
    if twig.is_absolute:
        return any(_has(root, twig.root) for root in roots)
    if twig.root.name[0] == "@":
        return any(_has_attribute(element, twig.root) for root in roots for element in root.iter())
    return any(_has(element, twig.root) for root in roots for element in root.iter())


def _has(element: Any, step: Step) -> bool:
    """Whether this element is what the step asks for, with all that hangs on it."""
    if _local(element.tag) != step.name:
        return False
    if step.value is not None and (len(element) or (element.text or "") != step.value):
        return False
    return all(
        _has_attribute(element, below) if below.name[0] == "@" else any(_has(child, below) for child in element)
        for below in step.branches
    )


def _has_attribute(element: Any, step: Step) -> bool:
    return any(_local(name) == step.name[1:] and step.value in (None, value) for name, value in element.attrib.items())


def _local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def _plain_text(body: bytes, roots: Sequence[Any]) -> str | None:
    """The document as text that Spark may read; None where our own evaluation has to."""
    declaration = _DECLARATION.match(body)
    rest = body[declaration.end() :] if declaration else body
    if not roots or any(word in rest for word in _FOREIGN):
        return None
    waiting = [(root, 1) for root in roots]
    while waiting:
        element, depth = waiting.pop()
        names = (element.tag, *element.attrib)
        if depth > SPARK_DEPTH_MAX or len(names) > SPARK_ATTRIBUTES_MAX or not all(map(_PLAIN_NAME.fullmatch, names)):
            return None
        waiting += [(child, depth + 1) for child in element]
    try:
        return rest.decode("utf-8")
    except UnicodeDecodeError:  # UTF-16, which says so by its first bytes
        return None

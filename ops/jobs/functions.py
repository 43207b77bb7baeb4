"""Conditions of Headgate as a SQL function of Spark: `headgate_match(pattern, condition, topic, attributes)`, and for
conditions with XPATH `headgate_match(pattern, condition, topic, attributes, value, content_type)`.

    from headgate.ops.jobs.functions import register_functions
    register_functions(spark)
    spark.sql("SELECT * FROM log WHERE headgate_match('quotes/*/OTE', 'price > 8.5', topic, attributes)")

It is true where a subscription with this pattern and this condition would get the event, false where it would not for
its topic or because the condition is false, and NULL where the condition is unknown. `attributes` is what a log gives:
with option `attributesSchema` `typed` every value has its own type, as for the brokers; a struct has what was declared;
in a map of texts every value is a text. `value` is the document, and `content_type` says what it is; what is none has
nothing that XPATH asks for. The whole meaning of conditions is in `matching/SPEC.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from headgate.matching import MatchingError, Pattern, Tree, deltas, evaluate, parse_condition, parse_pattern
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.matching.structure import Twig, parse_twig
from headgate.matching.tree import twigs
from headgate.protocol.structure import elements_of

from .audit_documents import has_twig

__all__ = ["headgate_match", "register_functions"]

_KEPT = 1_000
"""Patterns and conditions that stay parsed: a query has a few, a table of subscriptions more."""

_DOCUMENTS_KEPT = 4
"""Documents that stay read: a join with a table of subscriptions asks for the same one again and again."""


def register_functions(session: Any) -> None:
    """Make `headgate_match` known to the session's SQL."""
    session.udf.register("headgate_match", headgate_match, "boolean")


def headgate_match(
    pattern: str | None,
    condition: str | None,
    topic: str | None,
    attributes: Any,
    value: bytes | str | None = None,
    content_type: str | None = "",
) -> bool | None:
    """Whether a subscription would get the event. Raises ValueError for a pattern or condition that is none."""
    if pattern is None or topic is None:
        return None
    try:
        wanted, tree, asked = _parsed(pattern, condition or "")
    except MatchingError as error:
        raise ValueError(f"headgate_match: {error}") from error
    if asked and content_type == "":
        text = "XPATH asks a document: headgate_match(pattern, condition, topic, attributes, value, content_type)"
        raise ValueError(f"headgate_match: {text}, with 'application/xml' or 'application/json' for the last")
    if not wanted.matches(topic):
        return False
    verdict = True if tree is None else evaluate(tree, _plain(attributes))
    if verdict is False or not asked:
        return verdict
    body = value.encode() if isinstance(value, str) else bytes(value or b"")
    roots = _read(body, content_type or "")
    return verdict if all(has_twig(roots, twig) for twig in asked) else False


@lru_cache(_KEPT)
def _parsed(pattern: str, condition: str) -> tuple[Pattern, Tree | None, tuple[Twig, ...]]:
    tree = parse_condition(condition, CANONICAL_BYTES_MAX) if condition.strip() else None
    if tree is not None and deltas(tree):
        raise ValueError("headgate_match: DELTA and HEARTBEAT depend on more than one event")
    return parse_pattern(pattern), tree, () if tree is None else tuple(map(parse_twig, twigs(tree)))


@lru_cache(_DOCUMENTS_KEPT)
def _read(body: bytes, content_type: str) -> list[Any]:
    return elements_of(body, content_type)


def _plain(attributes: Any) -> dict[str, Any]:
    """Name -> value, from a map, from a map of typed values, or from a struct of either."""
    members: Mapping[str, Any] = attributes.asDict() if hasattr(attributes, "asDict") else attributes or {}
    return {name: _value(value) for name, value in members.items()}


def _value(value: Any) -> Any:
    """The member of a typed value that is set."""
    if not hasattr(value, "asDict"):
        return value
    return next((member for member in value.asDict().values() if member is not None), None)

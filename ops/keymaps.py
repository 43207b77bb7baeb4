"""Learns the key map of a stream from its subscriptions and from documents like those that are published to it.

The map decides where on the hypercube an event with a document begins and where subscriptions with XPATH rest, so it
decides about traffic alone (`matching/cube/keys.py`). The paper's, `fold`, sends every bit of a filter to some bit of
the key: large documents then have all bits, and all of them begin at one vertex, which is one broker's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.matching import parse_condition
from headgate.matching.cube import KeyMap, chosen, named
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.matching.structure import DEFAULT_SHAPE, Shape, parse_twig, unpack
from headgate.matching.tree import twigs
from headgate.protocol.structure import filters_of_body

from .everywhere import ask_everywhere
from .exits import UsageError
from .jsonlines import Line, parse_line
from .server import pages_of

__all__ = ["Learned", "learn", "read_documents"]

_BITS_DEFAULT = 8
_TYPES = {".xml": "application/xml", ".json": "application/json"}
_DOCUMENTS_MIN = 10
_DOCUMENTS_MAX = 500
"""Documents that are looked at, spread over those that are given: for each bit that is sent all of them are."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A map, what it was learned from, and what it does beside the one in force."""

    name: str
    documents: int
    subscriptions: int
    busiest: tuple[float, float]
    """The share of documents that begin at the vertex where most do: by the map in force, and by this one."""
    without_key: tuple[float, float]
    """The share of subscriptions whose key is empty, so that all documents come by."""


def read_documents(names: Sequence[str]) -> Iterator[Line]:
    """The documents in these files: each file is one, or one a line as `pub --jsonl` takes it. Raises UsageError."""
    for name in names:
        path = Path(name)
        try:
            content_type = _TYPES.get(path.suffix)
            if content_type is not None:
                yield Line("", {}, path.read_bytes(), content_type)
                continue
            for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                try:
                    yield parse_line(text, "documents")
                except UsageError as error:
                    raise UsageError(f"{name}, line {number}: {error}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error


async def learn(client: Any, stream: str, schema: dict[str, Any], documents: Sequence[Line]) -> Learned:
    """The map for what is subscribed to now and for documents like these. Raises UsageError when these are too few."""
    shape = Shape(schema.get("structure.l", DEFAULT_SHAPE.length), schema.get("structure.k", DEFAULT_SHAPE.hashes))
    bits = schema.get("structure.n", _BITS_DEFAULT)
    filters = []
    for line in documents:
        cell = filters_of_body(line.body, line.content_type, [shape.column]).get(shape.column)
        made = unpack(cell, shape.length) if cell else None
        filters += [made] if made else []
    filters = filters[:: 1 + len(filters) // _DOCUMENTS_MAX]
    if len(filters) < _DOCUMENTS_MIN:
        text = f"a map is learned from at least {_DOCUMENTS_MIN} documents, and here are {len(filters)} of "
        raise UsageError(f"{text}{len(documents)} with a filter: name more files with --documents")
    told = await ask_everywhere(client, lambda at: pages_of(client, "subs", "id", **at, stream=stream))
    asked = [made for rows in told.answers.values() for row in rows if (made := _filter_of(row["condition"], shape))]
    if not asked:
        raise UsageError(f"no subscription to {stream} has XPATH: learn when those are there that the map is to serve")
    before = named(schema.get("structure.map", "fold"), shape.length, bits)
    after = chosen(shape.length, bits, filters, asked)
    if not after.name:
        raise UsageError("every document has what is asked for: no map tells them apart")
    return Learned(
        after.name,
        len(filters),
        len(asked),
        (_busiest(before, filters), _busiest(after, filters)),
        (_without_key(before, asked), _without_key(after, asked)),
    )


def _filter_of(condition: str, shape: Shape) -> int:
    """What a subscription's twigs ask for together; 0 when it has none."""
    made = 0
    if "xpath" in condition.lower():
        for twig in twigs(parse_condition(condition, CANONICAL_BYTES_MAX)):
            made |= parse_twig(twig).filter(shape.length, shape.hashes)
    return made


def _busiest(keys: KeyMap, documents: Sequence[int]) -> float:
    return max(Counter(map(keys.key, documents)).values()) / len(documents)


def _without_key(keys: KeyMap, asked: Sequence[int]) -> float:
    return sum(not keys.key(one) for one in asked) / len(asked)

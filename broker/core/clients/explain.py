"""What the ring looks like from one broker, for people: the answers to `ring` and `explain`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate.matching import Pattern, Tree, Value, to_text
from headgate.matching.tree import Literal

from ..keyspace import EQUAL, RING_SIZE, TOPIC, Arc, Domain, Segment, distance
from ..placement import Anchor, Counted, CountedPart, Resting

if TYPE_CHECKING:
    from ..node import Node

__all__ = [
    "explain_resting",
    "lives_on",
    "ring_of",
]

# An anchor, or lists, in words: where a subscription lives and why, as `headgate explain` shows it.


def explain_resting(resting: Resting, owner_of: Callable[[int], str], uncounted: str = "") -> dict[str, Any]:
    """Where a subscription lives and why, as `headgate explain` shows it; `owner_of` names the broker of a key, and
    `uncounted` says why it is anchored although the stream's placement is counting."""
    owners = [owner_of(key) for segment in resting.segments for key in (segment.low, segment.high)]
    because = _because_counted(resting) if isinstance(resting, Counted) else _because(resting)
    if uncounted:
        because += f"; the placement of {resting.stream} is counting, which it cannot be: {uncounted}"
    return {
        "shelf": resting.dimensions[0].kind,
        "shelf_in_words": ", ".join(map(str, resting.dimensions)),
        "keys": [_keys_text(segment) for segment in resting.segments],
        "owners": list(dict.fromkeys(owners)),
        "because": because,
    }


def _keys_text(segment: Segment) -> str:
    low, high = f"{segment.low:016x}", f"{segment.high:016x}"
    return low if low == high else f"{low}..{high}"


def _because_counted(counted: Counted) -> str:
    lists = " and ".join(_asked(counted.stream, part) for part in counted.parts)
    often = "on this list" if len(counted.parts) == 1 else f"on {len(counted.parts)} of these lists"
    return (
        f"the placement of {counted.stream} is counting, so it is on the lists of {lists}; an event that meets it "
        f"{often} is brought to its home, which looks at the topic and all of the condition"
    )


def _asked(stream: str, part: CountedPart) -> str:
    """What one attribute has to be."""
    name = f"{stream}.{part.dimension.attribute}"
    if part.dimension.is_arc:
        return _stretches_text(name, part.dimension.domain(stream), part.about)
    values = [_value_text(value) for value in part.about]
    return f"{name} = {values[0]}" if len(values) == 1 else f"{name} IN ({', '.join(values)})"


def _because(anchor: Anchor) -> str:
    dimension, name = anchor.dimension, f"{anchor.stream}.{anchor.dimension.attribute}"
    if dimension.kind == TOPIC:
        return f"{anchor.because}, so it rests where the topics at and below {anchor.about[0]} meet"
    if dimension.kind == EQUAL:
        values = [_value_text(value) for value in anchor.about]
        if len(values) == 1:
            return f"it asks {dimension.attribute} = {values[0]}, so it rests where {name} = {values[0]} meets"
        listed = ", ".join(values)
        return f"it asks {dimension.attribute} IN ({listed}), so it rests where each of these values of {name} meets"
    domain = dimension.domain(anchor.stream)
    share = sum(last - first + 1 for first, last in _stretches(anchor.about)) / domain.cells
    asked = _stretches_text(dimension.attribute, domain, anchor.about)
    return f"it asks {asked}, so it rests along that part of the arc of {name}: {share:.2%} of the ring"


def _stretches(about: tuple[Value, ...]) -> list[tuple[int, int]]:
    ends = [int(cell or 0) for cell in about]
    return list(zip(ends[::2], ends[1::2], strict=True))


def _stretches_text(name: str, domain: Domain, about: tuple[Value, ...]) -> str:
    return " or ".join(f"{name} {_stretch_text(domain, first, last)}" for first, last in _stretches(about))


def _value_text(value: Value) -> str:
    return repr(value) if isinstance(value, float) else to_text(Literal(value))


def _stretch_text(domain: Domain, first: int, last: int) -> str:
    """The numbers of some cells, as round as the precision is."""
    digits = max(0, 1 - math.floor(math.log10(domain.precision)))
    low, high = (f"{round(domain.minimum + cell * domain.precision, digits):.12g}" for cell in (first, last))
    if first == last:
        return f"about {low}"
    if first == 0:
        return f"up to {high}"
    return f"from {low} up" if last == domain.cells - 1 else f"from {low} to {high}"


def ring_of(node: Node, now: float) -> dict[str, Any]:
    """Every broker that this one knows, in the order of the ring."""
    cluster, config = node.cluster, node.config
    chord = cluster.chord
    known = {cluster.me: _mine(node, now)}
    for info in cluster.peers.by_identifier.values():
        linked = info.link is not None
        if linked or info.identifier in cluster.table.known:
            known[info.identifier] = {
                "name": info.name,
                "address": info.address,
                "client_address": info.client_address,
                "life": info.life,
                "state": "up" if linked else "down",
                "subscriptions": None,  # each broker knows its own
            }
    ring = sorted(known)
    brokers = []
    for place, identifier in enumerate(ring):
        after = ring[place - 1]
        share = (distance(after, identifier) or RING_SIZE) / RING_SIZE
        siblings = [ring[(place + step) % len(ring)] for step in range(1, min(config.replicas, len(ring) - 1) + 1)]
        brokers.append(
            {
                **known[identifier],
                "identifier": f"{identifier:016x}",
                "after": f"{after:016x}",
                "share": share,
                "replicas": [known[one]["name"] for one in siblings],
            }
        )
    return {
        "broker": config.name,
        "cluster": config.cluster,
        "role": "mesh" if chord is None or chord.ring is None else "ring",
        "settled": cluster.settled(now),
        "replicas": config.replicas,
        "log_copies": config.log_copies,
        "scope": cluster.scope_share(now),
        "items": len(cluster.kv.items),
        "brokers": brokers,
        "away": _away(node),
        "refused": [{"address": address, "reason": text} for address, text in cluster.refusals(now).items()],
    }


def _away(node: Node) -> list[dict[str, str]]:
    """Brokers that were here once, and are not: they may have logs that no other broker has."""
    known = node.cluster.peers.by_identifier.values()
    names = {address: info.name for info in known for address in (info.address, *info.aliases)}
    return [{"name": names.get(address, ""), "address": address} for address in node.cluster.unreached()]


def _mine(node: Node, now: float) -> dict[str, Any]:
    cluster = node.cluster
    own = sum(len(session.subscriptions) for session in node.subscribers.by_key.values())
    return {
        "name": node.config.name,
        "address": cluster.address,
        "client_address": cluster.client_address,
        "life": node.config.incarnation,
        "state": "up" if cluster.settled(now) else "joining",
        "subscriptions": own,
    }


def lives_on(node: Node, pattern: Pattern, condition: Tree | None) -> dict[str, Any]:
    """Where such a subscription rests, and why."""
    cluster = node.cluster
    resting, uncounted = node.registry.plan(pattern, condition, False)
    names = {one.identifier: one.name for one in cluster.peers.by_identifier.values()} | {cluster.me: node.config.name}
    ring = sorted((cluster.me, *cluster.table.known), key=lambda one: distance(resting.segments[0].low, one))
    owners = [
        one
        for before, one in zip([ring[-1], *ring], ring, strict=False)
        if any(Arc(before, one).touches(segment.low, segment.high) for segment in resting.segments)
    ]
    words = explain_resting(resting, lambda key: names.get(cluster.owner_of(key), node.config.name), uncounted)
    because = words["because"]
    if cluster.alone:
        because += "; this broker is alone, so it holds every subscription itself"
    return {
        "lives_on": [names.get(one, f"{one:016x}") for one in owners],  # a range has more than its two ends
        "because": because,
        "shelf": words["shelf_in_words"],
        "keys": words["keys"],
    } | (
        {"subid": {"c1": f"{cluster.me:016x}", "c2": None, "c3": len(resting.parts)}}  # c2 it has when it is made
        if isinstance(resting, Counted)
        else {}
    )

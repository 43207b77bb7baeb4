"""What the ring looks like from one broker, for people: the answers to `ring` and `explain`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate.matching import Pattern, Tree

from ..delivery import Carrier, Subscription
from ..keyspace import CUBE, RING_SIZE, Arc, Segment, distance
from ..limits import LAST_SENT_MAX
from ..placement import Resting

if TYPE_CHECKING:
    from ..node import Node

__all__ = [
    "explain_resting",
    "last_sent",
    "lives_on",
    "ring_of",
]


def explain_resting(resting: Resting, owner_of: Callable[[int], str]) -> dict[str, Any]:
    """Where a subscription lives and why, as `headgate explain` shows it; `owner_of` names the broker of a key."""
    owners = [owner_of(key) for segment in resting.segments for key in (segment.low, segment.high)]
    return {
        "shelf": resting.dimensions[0].kind,
        "shelf_in_words": ", ".join(map(str, resting.dimensions)),
        "keys": [_keys_text(segment) for segment in resting.segments],
        "owners": list(dict.fromkeys(owners)),
        "because": resting.because(),
    }


def last_sent(node: Node, pattern: Pattern, condition: str, topic: str | None) -> list[dict[str, Any]]:
    """What subscriptions of this broker's clients to just this, with DELTA, were last sent: of a topic, or of some."""
    rows: list[dict[str, Any]] = []
    for carrier in node.subscribers.carriers.values():
        if carrier.pattern != pattern:
            continue
        for identity, member in carrier.members.items():
            if member.condition == condition:
                rows += _references(carrier, identity, member, topic)
            if len(rows) >= LAST_SENT_MAX:
                return rows[:LAST_SENT_MAX]
    return rows


def _references(carrier: Carrier, identity: int, member: Subscription, topic: str | None) -> list[dict[str, Any]]:
    triggers = carrier.triggers
    topics = triggers.topics_of(identity)[-LAST_SENT_MAX:] if topic is None else [topic]
    known = [(one, triggers.reference(identity, one)) for one in reversed(topics)]
    return [
        {
            "client": member.session.name,
            "subscription": member.number,
            "topic": one,
            "attributes": list(triggers.attributes),
            "last": None if reference is None else list(reference.values),
            "time": None if reference is None else reference.time,
            "below": None if reference is None else reference.lower,
            "above": None if reference is None else reference.upper,
        }
        for one, reference in known
    ]


def _keys_text(segment: Segment) -> str:
    low, high = f"{segment.low:016x}", f"{segment.high:016x}"
    return low if low == high else f"{low}..{high}"


def ring_of(node: Node, now: float) -> dict[str, Any]:
    """Every broker that this one knows, in the order of the ring."""
    cluster, config = node.cluster, node.config
    chord = cluster.chord
    policy = node.clients.access.policy
    known = {cluster.me: _mine(node, now) | ({} if policy is None else {"users_and_roles": policy.version})}
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
                **({} if policy is None else {"users_and_roles": info.named}),
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
    resting = node.registry.plan(pattern, condition, False)
    names = {one.identifier: one.name for one in cluster.peers.by_identifier.values()} | {cluster.me: node.config.name}
    ring = sorted((cluster.me, *cluster.table.known), key=lambda one: distance(resting.segments[0].low, one))
    owners = [
        one
        for before, one in zip([ring[-1], *ring], ring, strict=False)
        if any(Arc(before, one).touches(segment.low, segment.high) for segment in resting.segments)
    ]
    words = explain_resting(resting, lambda key: names.get(cluster.owner_of(key), node.config.name))
    because = words["because"]
    if cluster.alone:
        because += "; this broker is alone, so it holds every subscription itself"
    dimension = resting.dimensions[0]
    if dimension.kind == CUBE:
        vertex = dimension.vertices(pattern.stream).vertex_at(resting.segments[0].low)
        words["vertex"] = f"{vertex:0{dimension.depth}b}"
    subid = node.registry.subid(resting)  # without a number, which it has when it is made
    return {
        "lives_on": [names.get(one, f"{one:016x}") for one in owners],  # a range has more than its two ends
        "because": because,
        "shelf": words["shelf_in_words"],
        "keys": words["keys"],
        **({"vertex": words["vertex"]} if "vertex" in words else {}),
    } | ({} if subid is None else {"subid": subid})

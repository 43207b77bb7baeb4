"""Ablations of the cluster: one safeguard of a Node switched off, from outside. A campaign must find a failing seed for
each; the product knows no such switch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.broker.core import Node
from headgate.broker.core.forwarding import AskLists, list_messages
from headgate.broker.core.keyspace import Stretch
from headgate.broker.core.placement import Check, InForce
from headgate.matching import parse_condition, parse_pattern

from .ring_ablations import ablate_ring

__all__ = ["CLUSTER_ABLATIONS", "ablate_cluster"]


def _replace(part: object, name: str, function: Callable[..., Any]) -> None:
    """Shadow a method of one object."""
    assert hasattr(part, name), f"{type(part).__name__}.{name} is gone: the ablation would do nothing"
    setattr(part, name, function)


def _no_placing(node: Node) -> None:
    """SUBACK before the subscription has come to rest."""
    place: Callable[..., None] = node.rendezvous.place

    def place_and_go_on(subscription: Any, *what: Any) -> None:
        place(subscription, *what)
        node.rendezvous.events.append(InForce(subscription, True))

    _replace(node.rendezvous, "place", place_and_go_on)


def _no_summary(node: Node) -> None:
    """SUBACK before everybody knows what is in use."""
    use = node.rendezvous.usage.use

    def use_and_go_on(*what: Any) -> bool:
        use(*what)
        return True

    _replace(node.rendezvous.usage, "use", use_and_go_on)


def _no_leases(node: Node) -> None:
    """A broker answers for keys as long as it believes that they are its own, or that it holds a copy of them."""
    keyed = node.cluster.keyed

    def ours(now: float) -> list[tuple[Stretch, float]]:
        return [] if keyed.ownership.ready is None else [(keyed.ownership.ready, now + 0.01)]

    def theirs(now: float) -> list[tuple[Stretch, float]]:
        return [(one.granted, now + 0.01) for one in keyed.replicas.held.values() if one.granted is not None]

    _replace(keyed.leases, "scope", ours)
    _replace(keyed.replicas, "scope", theirs)


def _no_lapse(node: Node) -> None:
    """Who was without a lease for a while goes on where it was."""
    _replace(node.cluster.keyed.leases, "lapsed", lambda now: False)


def _no_allowing(node: Node) -> None:
    """Whoever gets an event matches it with all that rests with it, whatever it was asked for."""
    match = node.forwarding._match
    _replace(node.forwarding, "_match", lambda task, allowed: match(task, None))


def _no_waiting(node: Node) -> None:
    """Who answers for no key takes its idea of what is in use for the truth."""
    carry = node.forwarding._carry

    def carry_anyway(task: Any, now: float, late: bool) -> bool:
        if not node.cluster.scope(now).stretches and task.stream.name not in node.rendezvous.usage.summaries:
            return True
        return carry(task, now, late)

    _replace(node.forwarding, "_carry", carry_anyway)


def _no_copies(node: Node) -> None:
    """A write is confirmed before the siblings have it."""
    wait_for = node.cluster.keyed.siblings.wait_for

    def wait_for_nobody(items: Any, sent: bool, waiting: int) -> list[int]:
        wait_for(items, sent, waiting)
        return []

    _replace(node.cluster.keyed.siblings, "wait_for", wait_for_nobody)


def _no_patience(node: Node) -> None:
    """Who gained keys confirms writes in them at once, whoever may still answer for them."""
    _replace(node.cluster.keyed.ownership, "_confirm_from", lambda now: now)


def _no_loss(node: Node) -> None:
    """What was lost on the way is not told to anybody."""

    def say_nothing(stream: str, count: int, now: float) -> None:
        node.forwarding.losses.events += count

    _replace(node.forwarding.losses, "lose", say_nothing)


def _no_withdrawal(node: Node) -> None:
    """An ended subscription stays in its home's own index until its removal has gone round."""
    rest_no_more = node.rendezvous._rest_no_more

    def later(home: int, life: int, number: int) -> None:
        if home != node.config.identifier:
            rest_no_more(home, life, number)

    _replace(node.rendezvous, "_rest_no_more", later)


def _no_checking(node: Node) -> None:
    """Whoever is counted is taken for a match; wants a stream whose placement is counting."""
    counting = node.rendezvous.counting

    def enter(number: int, pattern: Any, condition: Any) -> None:
        counting.checks[number] = Check.of(parse_pattern(pattern.stream), parse_condition("TRUE"))

    _replace(counting, "enter", enter)


def _no_lists_by_lease(node: Node) -> None:
    """Whoever is asked for a list says what he has, whether he answers for its key or not; wants counting as well."""
    cluster = node.cluster

    def answer(info: Any, question: AskLists, now: float) -> None:
        lists = [(spot, node.rendezvous.counting.lists.at(question.stream, *spot)) for spot in question.spots]
        for message in list_messages(question.number, lists):
            cluster.tell_address(question.address, message, now)

    assert AskLists in cluster.table_of_controls
    cluster.table_of_controls[AskLists] = answer


def _ring_without(safeguard: str) -> Callable[[Node], None]:
    """One of the ablations of the bare ring, at the ring of a Node, which has none before it can be reached."""
    harm = ablate_ring(safeguard)

    def wait_for_the_ring(node: Node) -> None:
        begin = node.cluster.begin

        def begin_and_harm(address: str, client_address: str, now: float) -> None:
            begin(address, client_address, now)
            assert node.cluster.chord is not None
            harm(node.cluster.chord)

        _replace(node.cluster, "begin", begin_and_harm)

    return wait_for_the_ring


CLUSTER_ABLATIONS: dict[str, Callable[[Node], None]] = {
    "allowing": _no_allowing,
    "checking": _no_checking,
    "copies": _no_copies,
    "lapse": _no_lapse,
    "leases": _no_leases,
    "lists": _no_lists_by_lease,
    "loss": _no_loss,
    "patience": _no_patience,
    "placing": _no_placing,
    "ring-notify": _ring_without("notify"),
    "ring-repeat-last": _ring_without("repeat-last"),
    "summary": _no_summary,
    "waiting": _no_waiting,
    "withdrawal": _no_withdrawal,
}
"""Name -> what it does to a fresh Node."""


def ablate_cluster(node: Node, name: str) -> None:
    """Switch a safeguard off; an empty name changes nothing. Raises KeyError."""
    if name:
        CLUSTER_ABLATIONS[name](node)

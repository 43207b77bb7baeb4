"""Ablations: one safeguard of the Node switched off, from outside. A campaign must find a failing seed for each.

They patch the parts of one Node object; the product knows no such switch. An ablation that no seed notices means that
a checker sleeps, or that the safeguard guards nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.broker.core import Node
from headgate.protocol.messages import Hello, Mode, Publish

__all__ = ["ABLATIONS", "ablate"]


def _no_dedupe(node: Node) -> None:
    """A batch that is sent again counts again."""
    publish = node.clients.table[Publish]

    def accept_again(session: Any, message: Any, now: float) -> None:
        if message.mode != Mode.FIRE and message.sequence <= session.accepted:
            session.accepted = message.sequence - 1
        publish(session, message, now)

    node.clients.table[Publish] = accept_again


def _no_withdraw(node: Node) -> None:
    """What waits for a subscription is sent even after its end."""
    _replace(node.subscribers, "withdraw", lambda session, number: None)


def _no_credit(node: Node) -> None:
    """Deliveries flow whatever the subscriber allowed."""
    deliver = node.subscribers.deliver

    def deliver_anyway(session: Any, routes: Any, portion: Any) -> None:
        session.allowed = session.sent + 1_000_000
        deliver(session, routes, portion)

    _replace(node.subscribers, "deliver", deliver_anyway)


def _no_gap(node: Node) -> None:
    """What was dropped is not announced."""
    drop = node.subscribers._drop

    def drop_silently(session: Any, message: Any, reason: str) -> None:
        drop(session, message, reason)
        session.gaps.clear()

    _replace(node.subscribers, "_drop", drop_silently)


def _no_outbox_in_grace(node: Node) -> None:
    """What waits is lost with the connection, and nobody counts it."""
    detach = node.subscribers.detach

    def detach_and_forget(session: Any, now: float) -> None:
        while session.outbox:
            node.subscribers._pop(session)
        detach(session, now)

    _replace(node.subscribers, "detach", detach_and_forget)


def _no_loss_in_flight(node: Node) -> None:
    """What a broken connection swallowed is taken for received."""

    def forget(session: Any, received: int) -> None:
        session.sent = session.received = received

    _replace(node.subscribers, "lost_in_flight", forget)


def _no_bound(node: Node) -> None:
    """Outboxes grow without end."""
    _replace(node.subscribers, "_relieve", lambda session: None)


def _no_order(node: Node) -> None:
    """Of what waits, the newest goes first."""
    push = node.subscribers._push

    def push_in_front(session: Any, message: Any) -> None:
        push(session, message)
        session.outbox.rotate(1)

    _replace(node.subscribers, "_push", push_in_front)


def _no_derived_columns(node: Node) -> None:
    """A match column that the publisher did not send counts as absent."""
    publish = node.clients.table[Publish]

    def believe(session: Any, message: Any, now: float) -> None:
        message.batch.complete = True
        publish(session, message, now)

    node.clients.table[Publish] = believe


def _no_grace(node: Node) -> None:
    """A session ends with its connection."""
    hello = node.clients.hello

    def hello_stranger(link: int, address: str, message: Hello, now: float) -> Any:
        return hello(link, address, Hello(name=message.name, credit=message.credit), now)

    _replace(node.clients, "hello", hello_stranger)


def _no_second_gap(node: Node) -> None:
    """A GAP is said once, whether it came in or not."""
    lost_in_flight = node.subscribers.lost_in_flight

    def trust(session: Any, received: int) -> None:
        session.announced.clear()
        lost_in_flight(session, received)

    _replace(node.subscribers, "lost_in_flight", trust)


def _no_second_answer(node: Node) -> None:
    """A batch that is sent again is recognised, in silence."""
    publish = node.clients.table[Publish]

    def ignore(session: Any, message: Any, now: float) -> None:
        if message.mode == Mode.FIRE or message.sequence > session.accepted:
            publish(session, message, now)

    node.clients.table[Publish] = ignore


def _no_pause(node: Node) -> None:
    """A full pipe stops nothing, and the oldest in the outbox is thrown away instead."""
    deliver = node.subscribers.deliver

    def deliver_or_lose(session: Any, routes: Any, portion: Any) -> None:
        if not session.paused:
            deliver(session, routes, portion)

    _replace(node.subscribers, "deliver", deliver_or_lose)


def _replace(part: object, name: str, function: Callable[..., Any]) -> None:
    """Shadow a method of one object."""
    assert hasattr(part, name), f"{type(part).__name__}.{name} is gone: the ablation would do nothing"
    setattr(part, name, function)


ABLATIONS: dict[str, Callable[[Node], None]] = {
    "bound": _no_bound,
    "credit": _no_credit,
    "dedupe": _no_dedupe,
    "derive": _no_derived_columns,
    "gap": _no_gap,
    "grace": _no_grace,
    "in-flight": _no_loss_in_flight,
    "order": _no_order,
    "outbox": _no_outbox_in_grace,
    "pause": _no_pause,
    "second-answer": _no_second_answer,
    "second-gap": _no_second_gap,
    "withdraw": _no_withdraw,
}
"""Name -> what it does to a fresh Node."""


def ablate(node: Node, name: str) -> None:
    """Switch a safeguard off; an empty name changes nothing. Raises KeyError."""
    if name:
        ABLATIONS[name](node)

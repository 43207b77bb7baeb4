"""The checker: hooks for all that happens in a run, which do nothing; each promise overrides those that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from headgate.protocol.data import LogName, Portion, Row
from headgate.protocol.messages import Error, Gap, Goodbye, Message

from ..engine import Entry, Server, Violation, World
from ..workloads import Client, Delivery, SubscriptionLog

__all__ = ["Checker"]


class Checker:
    """Checks one promise. The first that fails ends the run."""

    world: World | None = None

    def fail(self, text: str) -> NoReturn:
        """Raises Violation."""
        raise Violation(type(self).__name__, text if self.world is None else f"at {self.world.now:.4f}: {text}")

    def step(self, host: Any, happened: Any, effects: Sequence[Any]) -> None:
        """A host handled one input; its effects are not carried out yet."""

    def look(self) -> None:
        """Look at the state of brokers: at intervals, and when a SUBACK went out."""

    def settled(self) -> None:
        """The pointers of a member of the ring changed, or a broker died or began."""

    def found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        """A row is on a disk where it was not before."""

    def portion(self, client: Client, portion: Portion) -> None:
        """A DELIVER reached a client, and its events are not counted yet."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """An event reached a subscription; `log` is None when the client knows no such subscription."""

    def gap(self, client: Client, log: SubscriptionLog | None, gap: Gap) -> None:
        """A GAP reached a client; `log` is None and the number 0 when it concerns the whole session."""

    def refused(self, client: Client, request: Message | None, error: Error) -> None:
        """A request was refused; None when the client asked nothing of that number."""

    def acknowledged(self, client: Client, sequence: int) -> None:
        """A PUBACK reached a client."""

    def turned_away(self, client: Client, error: Error | Goodbye) -> None:
        """The broker ended a connection."""

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """All faults have ended, and nothing is under way."""

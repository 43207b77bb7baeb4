"""Carries what parts of brokers say to each other about durable subscriptions, also when both are this broker.

A part says `tell(identifier, message)` and does not ask where the other one is. What is said to another broker goes
over its link at once, and is lost without one; what is said here waits until `settle`, so that no part is called while
it is at work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..cluster import Cluster
from ..links import PeerInfo

__all__ = ["Handler", "Relay"]

Handler: TypeAlias = Callable[[int, Any, float], None]
"""Takes what a broker says: its identifier, the message, now."""


class Relay:
    """Says messages to brokers, this one among them."""

    def __init__(self, cluster: Cluster, work: dict[str, None]) -> None:
        self._work = work
        self._cluster = cluster
        self._handlers: dict[type, Handler] = {}
        self._here: deque[Any] = deque()
        self.now = 0.0

    def take(self, handlers: Mapping[Any, Handler]) -> None:
        """Who takes which messages."""
        self._handlers |= handlers
        self._cluster.take_controls(dict.fromkeys(handlers, self._heard))

    def tell(self, identifier: int, message: Any) -> None:
        """Say it."""
        if identifier == self._cluster.me:
            self._here.append(message)
            self._work["relay"] = None
            return
        info = self._cluster.peers.by_identifier.get(identifier)
        if info is not None and info.link is not None:
            self._cluster.tell(info, message, self.now)

    def is_here(self, identifier: int) -> bool:
        """Whether that broker hears us: it is this one, or there is a link to it."""
        info = self._cluster.peers.by_identifier.get(identifier)
        return identifier == self._cluster.me or (info is not None and info.link is not None)

    def settle(self, now: float) -> None:
        """What this broker said to itself is heard, and what it says because of that."""
        self.now = now
        while self._here:
            message = self._here.popleft()
            self._handlers[type(message)](self._cluster.me, message, now)

    def _heard(self, info: PeerInfo, message: Any, now: float) -> None:
        self.now = now
        self._handlers[type(message)](info.identifier, message, now)

    def validate(self) -> None:
        """Nothing waits between inputs."""
        assert not self._here

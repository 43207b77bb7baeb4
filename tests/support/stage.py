"""A stage for forwarding: five brokers, one key, and clients where that key is not answered for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headgate.broker.core.cluster import WAIT
from headgate.broker.core.keyspace import Scope, equality_key
from tests.support.builders import quote_batch
from tests.support.node_cluster import NodeCluster

__all__ = ["OTE", "Stage"]

OTE = equality_key("quotes", "symbol", "OTE") or 0


class Stage:
    """Five brokers; a publisher and a subscriber where the key of OTE is not answered for, and other subscribers."""

    def __init__(self, *conditions: str, **config: Any) -> None:
        self.cluster = NodeCluster(5, **config)
        self.owner = self.cluster.owner(OTE).name
        at = [name for name in self.cluster.hosts if not self.scope(name).covers(OTE)]
        self.publisher, self.subscriber = self.cluster.connect(at[0]), self.cluster.connect(at[1])
        self.other = self.cluster.connect(self.owner)
        for number, condition in enumerate(conditions or ("symbol = 'OTE'",), 1):
            self.subscriber.subscribe(number, "quotes", condition)
        self.other.subscribe(1, "trades")
        self.cluster.run(0.5)
        self.take()

    def scope(self, name: str) -> Scope:
        return self.cluster.node(name).cluster.scope(self.cluster.now)

    def take(self) -> None:
        for client in (self.publisher, self.subscriber, self.other):
            client.take()

    def publish(self, *bodies: str, symbol: str = "OTE") -> None:
        self.publisher.publish(quote_batch("quotes/a", list(bodies), symbol=[symbol] * len(bodies)))

    @property
    def home(self) -> str:
        return self.subscriber.host.name

    @property
    def source(self) -> str:
        return self.publisher.host.name

    @property
    def bodies(self) -> list[str]:
        return [body for _, body in self.subscriber.bodies]

    @contextmanager
    def silence(self, *keys: int) -> Iterator[None]:
        """Nobody answers for these keys, as the publisher's broker sees it."""
        cluster = self.publisher.host.node.cluster
        find = cluster._find

        def find_none(key: int) -> int:
            return WAIT if key in keys or not keys else find(key)

        cluster._find = find_none  # type: ignore[method-assign]  # the one thing that is not so
        cluster._scope_epoch = -1
        yield
        cluster._find = find  # type: ignore[method-assign]
        cluster._scope_epoch = -1

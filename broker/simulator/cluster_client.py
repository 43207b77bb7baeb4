"""A client of a cluster: it knows all brokers, and goes to another one when its own does not answer."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.protocol.messages import Ask

from .client import Client, ClientWatcher
from .cluster_history import ClusterHistory
from .cluster_world import ClusterWorld
from .workload import STREAMS, Traits, Workload

__all__ = ["ClusterClient"]

_COMES_BACK_PROBABILITY = 0.5
_AGAIN_SECONDS = 0.5
_SCHEMA_PROBABILITY = 0.02

_COUNTED = {"symbol": {"type": "string"}, "live": {"type": "bool"}, "body.order.qty": {"type": "float"}}
"""Declared for streams whose subscriptions are counted, beside the attributes with bounds."""


class ClusterClient(Client):
    """See the head of this file."""

    def __init__(
        self,
        name: str,
        world: ClusterWorld,
        history: ClusterHistory,
        watchers: Iterable[ClientWatcher],
        workload: Workload,
        traits: Traits,
        placement: str = "anchored",
    ) -> None:
        super().__init__(name, None, world.clients, history, watchers, workload, traits)
        self._placement = placement
        self._undeclared = list(STREAMS) if placement == "counting" else []
        self._cluster = world
        self._history: ClusterHistory = history

    def act(self) -> None:
        """As any client; now and then it declares the attributes of a stream, so that ranges rest on arcs, and with
        the placement counting before it does anything else."""
        if self.open and self._undeclared:
            self.declare(self._undeclared.pop())
        elif self.open and self._world.random.random() < _SCHEMA_PROBABILITY:
            self.declare()
        else:
            super().act()

    def declare(self, stream: str = "") -> None:
        """Write a schema, of any stream or of this one, with one of several domains."""
        random = self._world.random
        stream = stream or random.choice(STREAMS)
        low, high = random.choice(((-1, 10), (0, 9), (8, 9)))
        attributes: dict[str, dict[str, object]] = {
            "price": {"type": "float", "min": low, "max": high, "precision": random.choice((0.01, 0.5))},
            "volume": {"type": "int", "min": -2, "max": 20},
        }
        schema: dict[str, object] = {"attributes": attributes}
        if self._placement == "counting":
            schema = {"attributes": attributes | _COUNTED, "placement": self._placement}
        self._history.schemas[stream] = None
        self._ask(Ask(self._next_request(), "schema.put", {"stream": stream, "schema": schema}))

    def dial(self) -> None:
        """Connect to the broker it was connected to, or to any other one that runs."""
        if self.connection is not None or self.away:
            return
        random, living = self._cluster.random, [one for one in self._cluster.living() if not one.leaving]
        hosts = [server.host for server in living]
        if not hosts:
            self._cluster.after(_AGAIN_SECONDS, self.dial)
            return
        if self._host not in hosts or random.random() >= _COMES_BACK_PROBABILITY:
            self._host = random.choice(hosts)
        super().dial()

"""The workloads as plain data: subscriptions, events, and how many deliveries are right.

A workload knows no server. `wants` says, connection by connection, what its subscribers ask for; `events` is the ring
that the generator sends over and over. Two counts follow for each event: `useful`, how many subscribers asked for it,
and `flood`, how many connections a server without conditions has to send it to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from ..limits import CROWD_PUBLISHERS, RING_EVENTS

__all__ = ["WORKLOADS", "Occurrence", "Want", "Workload", "build"]

_SEED = 7400
_SYMBOLS = [f"S{number:03d}" for number in range(200)]
_PRICE_MAX = 100.0
_BAND = 20.0


@dataclass(frozen=True, slots=True)
class Want:
    """One subscription: a topic, and for content subscribers a symbol and a price band, both ends included."""

    topic: str
    symbol: str = ""
    low: float = 0.0
    high: float = 0.0

    @property
    def condition(self) -> str:
        """The WHERE clause; empty when every event of the topic is wanted."""
        if not self.symbol:
            return ""
        return f"symbol = '{self.symbol}' AND price BETWEEN {self.low} AND {self.high}"

    def takes(self, event: Occurrence) -> bool:
        """Whether this subscriber asked for that event."""
        if event.topic != self.topic:
            return False
        return not self.symbol or (event.symbol == self.symbol and self.low <= event.price <= self.high)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event of the ring; symbol and price are empty where nobody asks about content."""

    topic: str
    symbol: str = ""
    price: float = 0.0


@dataclass(frozen=True, slots=True)
class Workload:
    """What is measured in one column of the report."""

    key: str
    title: str
    unit: str
    wants: tuple[tuple[Want, ...], ...]
    events: tuple[Occurrence, ...]
    publishers: int = 1
    """Connections that publish in turn; several write one event each, as devices do that cannot batch."""

    @property
    def content(self) -> bool:
        """Whether subscribers ask about content, which peers can only flood."""
        return bool(self.wants[0][0].symbol)

    def useful(self) -> list[int]:
        """For each event, the subscribers that asked for it."""
        interested: defaultdict[tuple[str, str], list[Want]] = defaultdict(list)
        for connection in self.wants:
            for want in connection:
                interested[want.topic, want.symbol].append(want)
        return [sum(want.takes(event) for want in interested[event.topic, event.symbol]) for event in self.events]

    def flood(self) -> list[int]:
        """For each event, the connections that hear its topic."""
        hearing = Counter(topic for connection in self.wants for topic in {want.topic for want in connection})
        return [hearing[event.topic] for event in self.events]


def build(key: str) -> Workload:
    """The workload of that letter; raises KeyError for any other."""
    return WORKLOADS[key]()


def _one_to_one() -> Workload:
    topic = "bench/one"
    return Workload("a", "one to one", "msg/s", ((Want(topic),),), (Occurrence(topic),) * RING_EVENTS)


def _fan_out() -> Workload:
    topic = "bench/all"
    return Workload(
        "b", "fan-out to 50 connections", "deliveries/s", ((Want(topic),),) * 50, (Occurrence(topic),) * RING_EVENTS
    )


def _topics() -> Workload:
    topics = [f"bench/t{number:04d}" for number in range(10_000)]
    wants = tuple(tuple(map(Want, topics[first::20])) for first in range(20))
    order = topics * (RING_EVENTS // len(topics))
    Random(_SEED).shuffle(order)
    return Workload(
        "c", "10,000 topics over 20 connections", "msg/s", wants, tuple(Occurrence(topic) for topic in order)
    )


def _content(key: str, title: str, per_connection: int) -> Workload:
    """1,000 subscribers, 5 a symbol, each a fifth of the prices: 1/200 * 1/5 of the events is 0.1 %."""
    random = Random(_SEED)
    wants = []
    for number in range(1000):
        low = round(random.uniform(0.0, _PRICE_MAX - _BAND), 2)
        wants.append(Want("quotes", _SYMBOLS[number % len(_SYMBOLS)], low, round(low + _BAND, 2)))
    events = tuple(
        Occurrence("quotes", random.choice(_SYMBOLS), round(random.uniform(0.0, _PRICE_MAX), 2))
        for _ in range(RING_EVENTS)
    )
    grouped = tuple(tuple(wants[first : first + per_connection]) for first in range(0, 1000, per_connection))
    return Workload(key, title, "useful/s", grouped, events)


def _crowd(key: str, title: str, workload: Workload) -> Workload:
    """The same, from many publishers with one event a write."""
    return replace(
        workload,
        key=key,
        title=f"{CROWD_PUBLISHERS} publishers, one event a write, {title}",
        publishers=CROWD_PUBLISHERS,
    )


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "a": _one_to_one,
    "b": _fan_out,
    "c": _topics,
    "e": lambda: _content("e", "1,000 content subscribers, 50 a connection", 50),
    "e1k": lambda: _content("e1k", "1,000 content subscribers, one connection each", 1),
    "pa": lambda: _crowd("pa", "one topic", _one_to_one()),
    "pc": lambda: _crowd("pc", "10,000 topics over 20 connections", _topics()),
    "pe": lambda: _crowd("pe", "1,000 content subscribers", _content("e", "", 50)),
}
"""Letter -> its workload. The letter d is latency, which is measured in `latency` with the events of a."""

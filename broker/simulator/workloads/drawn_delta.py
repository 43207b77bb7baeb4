"""The workload of DELTA: prices that walk, each topic the walk of one publisher's session, and who wants to know.

Prices are multiples of a half, so that whatever precision a schema declares says the same of a move. Now and then there
is none, or none that is a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from headgate.protocol import Batch, make_batch
from headgate.protocol.data import Scalar

from .drawn import Traits, Workload

__all__ = ["DeltaWorkload"]

_SYMBOLS = ("OTE", "IBM")
_STATIC = ("", "", "live", "symbol = 'OTE'", "price < 4", "symbol IN ('OTE', 'IBM')", "price BETWEEN 0 AND 4.5")
_DELTAS = ("> 2", ">= 1", "> 0.5", "> 4", "> 2 HEARTBEAT 1", "> 40")
_PATTERNS = ("quotes", "quotes", "quotes/*/OTE", "quotes/client-0", "quotes/client-1")
_STEPS = (0.0, 0.0, 0.5, -0.5, 1, -1, 2.5, -2.5, 6)
_NO_NUMBERS: tuple[Scalar, ...] = (None, float("nan"), "8.5", True)


class DeltaWorkload(Workload):
    """Draws subscriptions with DELTA, and batches of walks; the name of a batch begins with that of a session."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self._prices: dict[str, float] = {}

    def batch_name(self, client: str, session: int, batch: int) -> str:
        """Each session of a client publishes to topics of its own: between sessions there is no order."""
        return f"{client}.{session}:{batch}"

    def subscription(self, bad_probability: float) -> tuple[str, str, bool, bool]:
        """Draw a subscription: (pattern, condition, exact, whether the broker must refuse it)."""
        random = self.random
        parts = [random.choice(_STATIC), f"DELTA(price) {random.choice(_DELTAS)}"]
        return random.choice(_PATTERNS), " AND ".join(part for part in parts if part), False, False

    def batch(self, name: str, traits: Traits, interest: dict[str, list[str] | None]) -> Batch:
        """Draw a batch of events named `name:0`, `name:1`, ... of the topics of this session."""
        random = self.random
        count = random.randint(1, traits.batch_events_max)
        client, _, session = name.partition(":")[0].partition(".")
        symbols = [random.choice(_SYMBOLS) for _ in range(count)]
        topics = [f"quotes/{client}/{symbol}/{session}" for symbol in symbols]
        columns: dict[str, Sequence[Scalar]] = {
            "price": [self._price(topic) for topic in topics],
            "symbol": symbols,
            "live": [random.random() < 0.7 for _ in range(count)],
        }
        bodies = [f"{name}:{row} ".encode() + b"x" * random.randint(0, traits.body_bytes_max) for row in range(count)]
        return make_batch(topics, columns, bodies, interest.get("quotes") if random.random() < 0.7 else None)

    def _price(self, topic: str) -> Scalar:
        random = self.random
        if random.random() < 0.1:
            return random.choice(_NO_NUMBERS)
        price = self._prices.get(topic, 0.0) + random.choice(_STEPS)
        self._prices[topic] = price if abs(price) < 20 else 0.0
        return self._prices[topic]

"""Events on their way between brokers, for tests that only count them."""

from __future__ import annotations

from headgate.protocol.data import Portion, make_batch
from headgate.protocol.messages import Deliver, Forward

__all__ = ["deliver", "forward"]


def forward(stream: str = "quotes", events: int = 1, base: int = 0, body: bytes = b"") -> Forward:
    """A FORWARD of so many events, all for one dimension."""
    batch = make_batch([f"{stream}/a"], {}, [body] * events)
    dimensions = [[["topic", stream, 1, None, None, None], list(range(events))]]
    return Forward.make(dimensions, 1, batch, "ann-1", base, range(events), 7)


def deliver(events: int = 1, base: int = 0) -> Deliver:
    """A DELIVER of so many events, all for subscription 7."""
    lengths, records = b"\x04\x00\x00\x00" * events, b"\x92\x80\xc4\x00" * events
    return Deliver([7, events], Portion("ann-1", base, 5, b"", "quotes/a", lengths, records, events))

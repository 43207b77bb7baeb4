"""What brokers say to each other beside what they say to clients: a greeting, letters, control, forwarded events.

LETTER and CONTROL are envelopes. This package carries their bodies and knows nothing of what they mean: `kind` is a
number of the sender's vocabulary, `body` a list of lists, maps, integers, strings and bins within the limits of the
codec. Their meaning, and whether they have any, is the core's to find out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .batch import Batch, join_u32, split_u32

__all__ = ["Control", "Forward", "Letter", "Peer"]


@dataclass(slots=True)
class Peer:
    """First word on a link between brokers, said by both: the dialler first, and the acceptor answers with its own.

    `address` is where other brokers dial, `client_address` where clients do. `cluster` is the name of its cluster,
    `founder` whether it was told to join nobody and knows of nobody; `fingerprint` holds the settings that all brokers
    of a cluster share. Counts come behind it: the first CREDIT of each side says how many events came in from
    the other one in this life of both; the dialler's is at the same time its word that this link is the one to use.
    """

    version: int
    name: str
    life: int
    address: str
    client_address: str
    cluster: str
    founder: bool
    fingerprint: dict[str, Any]


@dataclass(slots=True)
class Letter:
    """Ring control. A place on the ring is [identifier, incarnation, padding, address]; nil: whoever is there."""

    sender: Sequence[Any]
    recipient: Sequence[Any] | None
    kind: int
    body: Sequence[Any]


@dataclass(slots=True)
class Control:
    """Everything else between brokers that is small."""

    kind: int
    body: Sequence[Any]


@dataclass(slots=True)
class Forward:
    """Rows of a batch for the broker that matches them.

    `shelves` is a list of [shelf, rows]: the shelf a list of scalars, the rows places in this batch, ascending. The
    batch itself may be rows of a larger one, which began at `base` in its broker's sequence: `offsets` has the place
    of each event after `base`, as in a portion. `hops` counts the brokers that passed it on.
    """

    shelves: list[Any]
    hops: int
    batch: Batch
    origin: str
    base: int
    offsets: bytes
    time: int

    @classmethod
    def make(
        cls, shelves: list[Any], hops: int, batch: Batch, origin: str, base: int, places: Sequence[int], time: int
    ) -> Forward:
        """With the place of each event after `base` (ascending, as many as the batch has)."""
        first = places[0]
        if places[-1] - first == len(places) - 1:
            return cls(shelves, hops, batch, origin, base + first, b"", time)
        return cls(shelves, hops, batch, origin, base, join_u32(places), time)

    def places(self) -> Sequence[int]:
        """The place of each event after `base`."""
        return split_u32(self.offsets) if self.offsets else range(self.batch.count)

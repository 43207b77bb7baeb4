"""The rolling digest of a partition's events: what tells a retried task that its rows are others than before.

Spark promises a retried task the same set of rows after a shuffle, not the same order. A number alone would take the
first thousand of the new order for the first thousand of the old one, and lose some and repeat others in silence. So
every batch carries the digest of everything that its producer sent up to its end, the broker keeps the last one with
the number that it belongs to, and a retry computes its own up to that number. Equal: the same events in the same order.

The digest depends on the events and not on where batches end: topics, lengths and records are hashed as three streams,
and the digest is that of the three.
"""

from __future__ import annotations

from hashlib import blake2b

from .frames import Frame

__all__ = ["DIGEST_BYTES", "RollingDigest"]

DIGEST_BYTES = 32
"""128 bits against collisions: nobody attacks here, and 2^64 partitions are enough."""


class RollingDigest:
    """Of all the frames so far. `seed` is what all events have in common and no frame repeats: the topic."""

    def __init__(self, seed: str) -> None:
        self._seed = seed.encode()
        self._topics = blake2b(digest_size=DIGEST_BYTES)
        self._lengths = blake2b(digest_size=DIGEST_BYTES)
        self._records = blake2b(digest_size=DIGEST_BYTES)

    def add(self, frame: Frame) -> bytes:
        """The digest behind this frame."""
        if not self._seed:
            lines = frame.topics + "\n"
            self._topics.update((lines if "\n" in frame.topics else lines * frame.count).encode())
        self._lengths.update(frame.lengths())
        self._records.update(frame.data())
        return self.value()

    def value(self) -> bytes:
        """The digest of everything so far."""
        whole = blake2b(self._seed, digest_size=DIGEST_BYTES)
        for part in (self._topics, self._lengths, self._records):
            whole.update(part.digest())
        return whole.digest()

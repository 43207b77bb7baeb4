"""A producer of the blocking client: batches under a name and an epoch, each stored once however often it is sent."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from ..client import producing
from ..data import Batch
from ..errors import HeadgateError

if TYPE_CHECKING:
    from .client import BlockingClient

__all__ = ["Producer"]


class Producer:
    """Made by `BlockingClient.producer`. Up to `inflight` batches are under way; `flush` waits for all of them.

    What it published before the connection, or the broker, was lost is sent again to the next one, and is known there
    by its number. The first error ends it: `publish` and `flush` raise that from then on. Fenced: a newer epoch of
    this name is at work. OutOfSequence: the cluster does not have what came before. UnknownOutcome: no broker answers
    any more.
    """

    def __init__(self, client: BlockingClient, state: producing.Producer, inflight: int) -> None:
        self._client = client
        self._state = state
        self._inflight = inflight
        self.next = state.next
        self.digest = state.digest

    @property
    def name(self) -> str:
        """Whose events these are."""
        return self._state.name

    @property
    def epoch(self) -> int:
        """Which life of it."""
        return self._state.epoch

    @property
    def failure(self) -> HeadgateError | None:
        """What ended it."""
        return self._state.failure

    @property
    def waiting(self) -> int:
        """Batches that have no answer yet."""
        return self._state.waiting

    def publish(self, batch: Batch, digest: bytes = b"", ids: bytes = b"") -> None:
        """Publish a batch to be stored; waits only for room. It begins at `next`, which grows by its events.

        `digest` is given back by the next opening (at most 64 bytes), `ids` is a column with a string an event.
        """
        self._client.produce(self._state, batch, digest, ids, self._inflight)
        self.next += batch.count
        self.digest = digest

    def flush(self) -> None:
        """Wait until everything is stored; raises what ended it."""
        self._client.wait(lambda: not self._state.waiting)
        if self._state.failure is not None:
            raise self._state.failure

    def close(self) -> None:
        """Flush, and forget it."""
        try:
            self.flush()
        finally:
            self._client.end_producer(self._state)

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except HeadgateError:
            # What ended the block says more than what it left behind.
            if error is None:
                raise

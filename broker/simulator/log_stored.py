"""P1: when PUBACK of a batch in mode stored goes out, as many synced disks have it as were promised.

So they have when a producer is told how far it has come: it takes that for an acknowledgement.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.inputs import Input, Received
from headgate.protocol.data import Batch, decode_record
from headgate.protocol.messages import Answer, Error, Mode, Puback, Publish, Scope

from .log_checkers import LogChecker
from .world import Host

__all__ = ["OnEnoughDisks"]

_RECENT = 50
"""Events before the next one that are looked for; older ones were, the time before."""


class OnEnoughDisks(LogChecker):
    """See the head of this file. Batches are known by session and sequence; a refused one has its answer already.

    One that was refused on this connection is none that PUBACK speaks of, although its publisher sends it once more,
    because it had not heard that yet when it began: it hears the refusal before the PUBACK. Over a new connection a
    publisher sends all that it waits for, in order: what comes before the first of these it has given up.
    """

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]  # those of LogChecker
        self._open: dict[tuple[bytes, int], list[str]] = {}
        self._refused: dict[tuple[bytes, int], int] = {}
        """On which link that was said last."""
        self._links: dict[bytes, int] = {}
        """Over which each session published last."""
        self.checked = 0

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Remember what comes in, look at what goes out."""
        by_link = host.node.subscribers.by_link
        if isinstance(happened, Received) and happened.link in by_link:
            key = by_link[happened.link].key
            for message in happened.messages:
                if isinstance(message, Publish) and message.mode == Mode.STORED:
                    self._published(key, happened.link, message)
        for effect in effects:
            if isinstance(effect, Send) and effect.link in by_link:
                self._said(host, effect.link, by_link[effect.link].key, effect.message)

    def _published(self, key: bytes, link: int, message: Publish) -> None:
        if self._links.get(key) != link:
            self._links[key] = link
            for one in [one for one in self._open if one[0] == key and one[1] < message.sequence]:
                del self._open[one]
        if self._refused.get((key, message.sequence)) != link:
            self._open.setdefault((key, message.sequence), _names(message.batch))

    def _said(self, host: Host, link: int, key: bytes, message: object) -> None:
        if isinstance(message, Error) and message.scope == Scope.PUBLISH:
            self._open.pop((key, message.reference), None)
            self._refused[key, message.reference] = link
        elif isinstance(message, Puback):
            answered = [one for one in self._open if one[0] == key and one[1] <= message.sequence]
            if answered:
                self.disks.look()
            for one in answered:
                self._check(host, self._open.pop(one))
        elif isinstance(message, Answer) and "digest" in message.value:
            self.disks.look()
            following = message.value["next"]
            name = host.node.subscribers.by_key[key].name
            self._check(host, [f"{name}:{number}" for number in range(max(0, following - _RECENT), following)])

    def _check(self, host: Host, names: list[str]) -> None:
        promised = 1 + host.node.copies.needed
        for name in names:
            self.checked += 1
            had = len(self.disks.had.get(name, {}))
            if had < promised:
                broker = host.node.config.name
                self.fail(f"{broker} acknowledged {name}, and {had} of {promised} disks have it")


def _names(batch: Batch) -> list[str]:
    return [decode_record(piece)[1].decode() for piece in batch.pieces()]

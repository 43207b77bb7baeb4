"""Claims: whether events of producers are in logs that this disk has, asked by a broker that alone has them in its own.

    CLAIM    [request, owner, epochs, stream, since, [producer, start, end] ...]
             are these events of a broker's log in any other log? None is older than `since` (microseconds).
             `epochs`: of which that broker knows logs of its own; they are not meant, or none is when none is named
    CLAIMED  [request, is_all, [[producer, number] ...], [producer, start, end, time, doubted] ...]
             these are, in rows of this time; `doubted`: it is being found out whether that row of ours stays. Before
             them, producers that stay open here: whoever opened them knew of all events before that number.
             `is_all`: what there is more comes in another CLAIMED, for what is not told counts as not there

Who is asked closes the producers: whoever wants to go on here has to open his again, and whoever opens one asks every
broker that there is a link to, so also the one that asks now. From then on the producer cannot go on behind its back.

Logs of the one who asks that he does not know himself: his disk is an older one (a backup that was put back), and he
may have taken these rows into a later epoch in a life that it has forgotten.

Who is told less than there is keeps a row that another log has. So an answer is never cut short, and `log_spans.py`
makes as few spans of it as may be.

The answer comes from the disk, row by row from `since` on, because what was said in earlier lives counts as well. This
is asked once after a start or a partition, about what was under way at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import CREDIT_MAX, TEXT_LENGTH_MAX
from headgate.protocol.log_rows import LogKind, LogName, Row, decode_row
from headgate.protocol.messages import Control

from .cluster import Cluster
from .inputs import RowsRead
from .limits import CLAIM_ANSWER_SPANS_MAX, CLAIM_SPANS_MAX, CLAIMS_KEPT_MAX, CLOCKS_APART_SECONDS, COPY_CHUNK_BYTES
from .log import HeldLog, Log
from .log_spans import GatheredSpans, Span
from .peers import PeerInfo
from .producers import Producers

__all__ = ["CLAIM", "CLAIMED", "Claims", "Owner", "Wanted"]

CLAIM, CLAIMED = 26, 27
"""Kinds of Control, as above."""


class Owner(NamedTuple):
    """Whose rows are asked about, and of which epochs it knows logs of its own; when none is named, of all."""

    name: str
    epochs: tuple[int, ...] = ()

    def knows(self, name: LogName) -> bool:
        """Whether that is a log of its own in which the rows are looked for in vain."""
        return name.broker == self.name and (
            not self.epochs or name.epoch in self.epochs or name.epoch < self.epochs[0]
        )


Told = Callable[[list[Span], float], None]

Wanted = Mapping[str, tuple[int, int]]
"""Producer -> the first of its events that are asked about, and where they end."""


@dataclass(slots=True)
class _Asked:
    """A question, and what was heard so far."""

    identifier: int
    then: Told
    spans: list[Span] = field(default_factory=list)


class Claims:
    """See the head of this file."""

    def __init__(self, name: str, log: Log, cluster: Cluster, producers: Producers) -> None:
        self._name = name
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._request = 0
        self._asked: dict[int, _Asked] = {}
        self._heard: dict[tuple[str, str, int, str], Span] = {}  # what others told, for whoever asks
        cluster.take_controls({CLAIM: self._claim, CLAIMED: self._claimed})

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(self, info: PeerInfo, owner: Owner, stream: str, since: int, wanted: Wanted, then: Told, now: float) -> int:
        """Ask another broker; no answer on this link is nothing."""
        self._request += 1
        self._asked[self._request] = _Asked(info.identifier, then)
        words = [[producer, *span] for producer, span in wanted.items()]
        body = [self._request, owner.name, list(owner.epochs), stream, since, *words]
        self._cluster.peers.tell(info.address, Control(CLAIM, body), now)
        return self._request

    def give_up(self, requests: Iterable[int], now: float) -> None:
        """They are not waited for any more."""
        for request in [request for request in requests if request in self._asked]:
            asked = self._asked.pop(request)
            asked.then(asked.spans, now)

    def link_down(self, info: PeerInfo, now: float) -> None:
        """It will not answer."""
        self.give_up([one for one, asked in self._asked.items() if asked.identifier == info.identifier], now)

    def _claimed(self, info: PeerInfo, body: list[Any], now: float) -> None:
        request, is_all, open_at, spans = _read_claimed(info.name, body)
        asked = self._asked.get(request)
        if asked is None or asked.identifier != info.identifier:
            return
        for producer, number in open_at.items():
            self._producers.promises.amend(producer, info.identifier, number)
        asked.spans += spans
        if len(asked.spans) > CLAIM_ANSWER_SPANS_MAX:
            raise ProtocolViolation(f"CLAIMED: what there is, is at most {CLAIM_ANSWER_SPANS_MAX} spans in all")
        if is_all:
            self.give_up([request], now)

    # --- answering ---------------------------------------------------------------------------------------------------

    def remember(self, stream: str, spans: Iterable[Span]) -> None:
        """Another broker has these, and whoever asks next may not reach it."""
        for span in spans:
            self._heard[stream, span.producer, span.start, span.broker] = span
            if len(self._heard) > CLAIMS_KEPT_MAX:
                del self._heard[next(iter(self._heard))]

    def _claim(self, info: PeerInfo, body: list[Any], now: float) -> None:
        request, owner, stream, since, wanted = _read_claim(body)
        open_at: dict[str, int] = {}
        for producer, (_, end) in wanted.items():
            number = self._producers.close(producer, end, owner.name, now)
            if number is not None:
                open_at[producer] = number

        def tell(spans: list[Span], now: float) -> None:
            open_ones = [list(one) for one in open_at.items()]
            for at in range(0, max(1, len(spans)), CLAIM_SPANS_MAX):
                some = spans[at : at + CLAIM_SPANS_MAX]
                words = [[one.producer, one.start, one.end, one.time, one.doubted] for one in some]
                body = [request, at + CLAIM_SPANS_MAX >= len(spans), [] if at else open_ones, *words]
                self._cluster.peers.tell(info.address, Control(CLAIMED, body), now)

        def tell_all(spans: list[Span], now: float) -> None:
            heard = [span for key, span in self._heard.items() if key[0] == stream and span.broker != owner.name]
            tell(spans + [span for span in heard if span.producer in wanted], now)

        if owner.name != info.name and open_at.keys() == wanted.keys():
            tell([], now)  # what everybody knew when they were opened is nowhere else
        else:
            self.look(stream, since, wanted, owner, tell_all, now)

    def look(
        self,
        stream: str,
        since: int,
        wanted: Wanted,
        owner: Owner,
        then: Told,
        now: float,
    ) -> None:
        """Tell what of these this disk has in logs of that stream, those that `owner` knows as its own aside."""
        found = GatheredSpans()
        since = max(0, since - int(CLOCKS_APART_SECONDS * 1e6))

        def landed(reason: str, now: float) -> None:
            logs = [held for name, held in self._log.logs.items() if _may_have(held, stream, owner)]
            self._look_into(logs, since, wanted, found, then, now)

        self._log.when_landed(landed, now)

    def _look_into(
        self,
        logs: Sequence[HeldLog],
        since: int,
        wanted: Wanted,
        found: GatheredSpans,
        then: Told,
        now: float,
    ) -> None:
        """One log after the other."""
        if not logs:
            then(found.all, now)
            return
        held, end = logs[0], logs[0].next

        def begins(position: Any, now: float) -> None:
            read(held.first if position is None else max(position, held.first))

        def read(position: int) -> None:
            self._log.read_rows(held.name, position, COPY_CHUNK_BYTES, came)

        def came(rows: RowsRead, now: float) -> None:
            for data in rows.rows:
                _take(found, held, decode_row(data), wanted)
            if rows.next < end and (rows.rows or rows.damage):
                read(rows.next)
            else:
                self._look_into(logs[1:], since, wanted, found, then, now)

        self._log.find_time(held.name, since, begins)


def _may_have(held: HeldLog, stream: str, owner: Owner) -> bool:
    name = held.name
    return name.kind == LogKind.EVENTS and name.stream == stream and not owner.knows(name) and held.first < held.next


def _take(found: GatheredSpans, held: HeldLog, row: Row, wanted: Wanted) -> None:
    if row.producer not in wanted:
        return
    start, end = wanted[row.producer]
    if row.number < end and row.number + row.count > start:
        found.take(held.name, row, held.doubted and row.first >= held.safe)


def _read_claim(body: list[Any]) -> tuple[int, Owner, str, int, dict[str, tuple[int, int]]]:
    """Request, owner, stream, since, and what is wanted of each producer. Raises ProtocolViolation."""
    types = (int, str, list, str, int)
    if tuple(map(type, body[:5])) != types or not all(0 <= body[place] <= CREDIT_MAX for place in (0, 4)):
        raise ProtocolViolation("CLAIM is [request, owner, [epoch ...], stream, since, [producer, start, end] ...]")
    epochs = body[2]
    if not all(type(epoch) is int and 0 <= epoch <= CREDIT_MAX for epoch in epochs) or epochs != sorted(epochs):
        raise ProtocolViolation("CLAIM: epochs are numbers from 0 to 2^53, the oldest one first")
    for one in body[5:]:
        if type(one) is not list or tuple(map(type, one)) != (str, int, int) or not _is_span(*one):
            raise ProtocolViolation("CLAIM: events of a producer are [producer, start, end]")
    wanted = {producer: (start, end) for producer, start, end in body[5:]}
    return body[0], Owner(body[1], tuple(epochs)), body[3], body[4], wanted


def _read_claimed(broker: str, body: list[Any]) -> tuple[int, bool, dict[str, int], list[Span]]:
    """The request, whether that is all, who stays open, and what there is. Raises ProtocolViolation."""
    if tuple(map(type, body[:3])) != (int, bool, list):
        text = "CLAIMED is [request, is_all, [who stays open ...], [producer, start, end, time, doubted] ...]"
        raise ProtocolViolation(text)
    for one in body[2]:
        if type(one) is not list or tuple(map(type, one)) != (str, int) or not 0 <= one[1] <= CREDIT_MAX:
            raise ProtocolViolation("CLAIMED: who stays open, is [producer, number]")
    for one in body[3:]:
        if type(one) is not list or tuple(map(type, one)) != (str, int, int, int, bool) or not _is_span(*one[:3]):
            raise ProtocolViolation("CLAIMED: what there is, is [producer, start, end, time, doubted]")
    spans = [Span(one[0], one[1], one[2], one[3], one[4], broker) for one in body[3:]]
    return body[0], body[1], dict(body[2]), spans


def _is_span(producer: str, start: int, end: int) -> bool:
    return 0 < len(producer) <= TEXT_LENGTH_MAX and 0 <= start < end <= CREDIT_MAX

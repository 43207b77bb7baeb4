"""Claims: whether events of producers are in logs that this disk has, asked by a broker that alone has them in its own.

    CLAIM    [request, owner, epochs, stream, since, [producer, start, end] ...]
             are these events of a broker's log in any other log? None is older than `since` (microseconds).
             `epochs`: of which that broker knows logs of its own; they are not meant, or none is when none is named
    CLAIMED  [request, [[producer, number] ...], [producer, start, end, time, doubted] ...]
             these are, in rows of this time; `doubted`: it is being found out whether that row of ours stays. Before
             them, producers that stay open here: whoever opened them knew of all events before that number

Who is asked closes the producers: whoever wants to go on here has to open his again, and whoever opens one asks every
broker that there is a link to, so also the one that asks now. From then on the producer cannot go on behind its back.

Logs of the one who asks that he does not know himself: his disk is an older one (a backup that was put back), and he
may have taken these rows into a later epoch in a life that it has forgotten.

The answer comes from the disk, row by row from `since` on, because what was said in earlier lives counts as well. This
is asked once after a start or a partition, about what was under way at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from protocol.errors import ProtocolViolation
from protocol.limits import CREDIT_MAX, TEXT_LENGTH_MAX
from protocol.log_rows import LogKind, LogName, Row, decode_row
from protocol.messages import Control

from .cluster import Cluster
from .inputs import RowsRead
from .limits import CLAIM_SPANS_MAX, CLOCKS_APART_SECONDS, COPY_CHUNK_BYTES
from .log import HeldLog, Log
from .peers import PeerInfo
from .producers import Producers

__all__ = ["CLAIM", "CLAIMED", "Claims", "Owner", "Span", "Wanted"]

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


@dataclass(slots=True)
class Span:
    """Events `start` to `end - 1` of a producer are in rows of one log of that broker, the first one of this time."""

    producer: str
    start: int
    end: int
    time: int
    doubted: bool
    broker: str
    digest: bytes = b""
    here: bool = False


Told = Callable[[list[Span], float], None]

Wanted = Mapping[str, tuple[int, int]]
"""Producer -> the first of its events that are asked about, and where they end."""


class Claims:
    """See the head of this file."""

    def __init__(self, name: str, log: Log, cluster: Cluster, producers: Producers) -> None:
        self._name = name
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._request = 0
        self._asked: dict[int, tuple[int, Told]] = {}
        self._heard: dict[tuple[str, str, int, str], Span] = {}  # what others told, for whoever asks
        cluster.table_of_controls |= {CLAIM: self._claim, CLAIMED: self._claimed}

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(self, info: PeerInfo, owner: Owner, stream: str, since: int, wanted: Wanted, then: Told, now: float) -> int:
        """Ask another broker; no answer on this link is nothing."""
        self._request += 1
        self._asked[self._request] = info.identifier, then
        words = [[producer, *span] for producer, span in wanted.items()]
        body = [self._request, owner.name, list(owner.epochs), stream, since, *words]
        self._cluster.peers.tell(info.address, Control(CLAIM, body), now)
        return self._request

    def give_up(self, requests: Iterable[int], now: float) -> None:
        """They are not waited for any more."""
        for request in [request for request in requests if request in self._asked]:
            self._asked.pop(request)[1]([], now)

    def link_down(self, info: PeerInfo, now: float) -> None:
        """It will not answer."""
        self.give_up([request for request, (broker, _) in self._asked.items() if broker == info.identifier], now)

    def _claimed(self, info: PeerInfo, body: list[Any], now: float) -> None:
        request, open_at, spans = _read_claimed(info.name, body)
        if request in self._asked and self._asked[request][0] == info.identifier:
            for producer, number in open_at.items():
                self._producers.promises.amend(producer, info.identifier, number)
            self._asked.pop(request)[1](spans, now)

    # --- answering ---------------------------------------------------------------------------------------------------

    def remember(self, stream: str, spans: Iterable[Span]) -> None:
        """Another broker has these, and whoever asks next may not reach it."""
        for span in spans:
            self._heard[stream, span.producer, span.start, span.broker] = span
            if len(self._heard) > CLAIM_SPANS_MAX:
                del self._heard[next(iter(self._heard))]

    def _claim(self, info: PeerInfo, body: list[Any], now: float) -> None:
        request, owner, stream, since, wanted = _read_claim(body)
        open_at: dict[str, int] = {}
        for producer, (_, end) in wanted.items():
            number = self._producers.close(producer, end, owner.name, now)
            if number is not None:
                open_at[producer] = number

        def tell(spans: list[Span], now: float) -> None:
            words = [[one.producer, one.start, one.end, one.time, one.doubted] for one in spans[:CLAIM_SPANS_MAX]]
            self._cluster.peers.tell(
                info.address, Control(CLAIMED, [request, [list(one) for one in open_at.items()], *words]), now
            )

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
        found: list[Span] = []
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
        found: list[Span],
        then: Told,
        now: float,
    ) -> None:
        """One log after the other."""
        if not logs:
            then(found, now)
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


def _take(found: list[Span], held: HeldLog, row: Row, wanted: Wanted) -> None:
    if row.producer not in wanted:
        return
    start, end = wanted[row.producer]
    if row.number >= end or row.number + row.count <= start:
        return
    doubted = held.doubted and row.first >= held.safe
    last = found[-1] if found else None
    broker, digest = held.name.broker, row.digest
    goes_on = last is not None and (last.producer, last.end, last.broker) == (row.producer, row.number, broker)
    if last is not None and goes_on and not (doubted or last.doubted):
        last.end, last.digest = row.number + row.count, digest
        return
    found.append(Span(row.producer, row.number, row.number + row.count, row.time, doubted, broker, digest))


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


def _read_claimed(broker: str, body: list[Any]) -> tuple[int, dict[str, int], list[Span]]:
    """The request that is answered, who stays open, and what there is. Raises ProtocolViolation."""
    if tuple(map(type, body[:2])) != (int, list):
        raise ProtocolViolation("CLAIMED is [request, [who stays open ...], [producer, start, end, time, doubted] ...]")
    for one in body[1]:
        if type(one) is not list or tuple(map(type, one)) != (str, int) or not 0 <= one[1] <= CREDIT_MAX:
            raise ProtocolViolation("CLAIMED: who stays open, is [producer, number]")
    for one in body[2:]:
        if type(one) is not list or tuple(map(type, one)) != (str, int, int, int, bool) or not _is_span(*one[:3]):
            raise ProtocolViolation("CLAIMED: what there is, is [producer, start, end, time, doubted]")
    spans = [Span(one[0], one[1], one[2], one[3], one[4], broker) for one in body[2:]]
    return body[0], dict(body[1]), spans


def _is_span(producer: str, start: int, end: int) -> bool:
    return 0 < len(producer) <= TEXT_LENGTH_MAX and 0 <= start < end <= CREDIT_MAX

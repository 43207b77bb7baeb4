"""What is known of the producers of a job, asked of the whole cluster; and how a purge has it forgotten.

A job that publishes in parts, as a write by Spark does, has a producer for each: `quotes/nightly/0`, `quotes/nightly/1`
and so on. A name up to its last slash is the job, and the first word of that the stream that it writes to. Before a
part publishes anything it wants to know how far the others have come, which is one question here:

    ListProducers, to every linked broker  ->  ListedProducers, what each knows  ->  by name, the furthest of them

Rows are on k disks, and so is what they say of their producer. So the answer has every producer with rows that were
acknowledged as soon as fewer than k brokers are missing from it; otherwise there is none, as in opening one.

What is known of a producer outlives its rows: retention takes those, and a job that is run again is still recognised.
Only who empties a stream for good (`headgate schema rm --purge`) has its producers forgotten as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.errors import ErrorCode, Refused

from ..cluster import Cluster
from ..deferred import Deferred
from ..limits import PRODUCER_NAME_LENGTH_MAX, PRODUCERS_LISTED_MAX, STORE_SECONDS_MAX
from ..links import PeerInfo
from ..timers import NEVER, Timers
from .log import Log
from .messages import ForgetProducers, ListedProducers, ListProducers, ProducerKnown
from .producers import KnownProducer, Producers, shortage

__all__ = ["LISTINGS", "ProducerLists", "Which"]

LISTINGS = "listings"
"""Key of the timer: a client that asks for the producers of a job has waited long enough."""


@dataclass(frozen=True, slots=True)
class Which:
    """The producers of a job behind a name, whose digest begins so, and not so."""

    job: str
    after: str
    begins: bytes
    unless: bytes

    def wants(self, producer: KnownProducer, digest: bytes) -> bool:
        """Whether this one is meant."""
        if producer.name <= self.after or not digest.startswith(self.begins):
            return False
        return not (self.unless and digest.startswith(self.unless))


@dataclass(slots=True)
class _Asking:
    """A question under way: the brokers we still wait for, and what was heard. `end` is the last name that all have
    told of.
    """

    deferred: Deferred
    deadline: float
    asked: dict[int, None]
    answered: int = 0
    heard: int = 0
    end: str = ""
    found: dict[str, ProducerKnown] = field(default_factory=dict)


class ProducerLists:
    """Gathers what all brokers know of the producers of a job."""

    def __init__(self, log: Log, cluster: Cluster, producers: Producers, copies: int, timers: Timers) -> None:
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._copies = copies
        self._asking: dict[int, _Asking] = {}
        self._request = 0
        self._timers = timers
        cluster.take_controls(
            {ListProducers: self._list, ListedProducers: self._listed, ForgetProducers: self._forget_too}
        )

    # --- listing -----------------------------------------------------------------------------------------------------

    def ask(self, job: Any, after: Any, begins: Any, unless: Any, now: float) -> Deferred:
        """A map of `producers`, by name; `next`, the name to ask on behind, or None; and how many this broker knows.

        Raises Refused.
        """
        which = _which([job, after, begins, unless])
        if which is None:
            text = "producers: `job` is what the names of its producers begin with, up to their last slash"
            raise Refused(ErrorCode.BAD_REQUEST, f"{text}; `after` a name; `begins` and `unless` bytes of digests")
        self._log.check_room(0)
        self._request += 1
        request, linked = self._request, self._cluster.linked()
        asked = dict.fromkeys((self._cluster.me, *(info.identifier for info in linked)))
        asking = self._asking[request] = _Asking(Deferred(), now + STORE_SECONDS_MAX, asked)
        self._timers.by(LISTINGS, asking.deadline)
        for info in linked:
            self._cluster.tell(info, ListProducers(request, job, after, begins, unless), now)
        self._heard(request, self._cluster.me, self._producers.is_sure, *self._here(which), now)
        return asking.deferred

    def _here(self, which: Which) -> tuple[bool, list[ProducerKnown]]:
        """Whether there are more behind these, and these."""
        told: list[ProducerKnown] = []
        for producer in sorted(self._producers.of_job(which.job), key=lambda one: one.name):
            upcoming, digest = max((producer.next, producer.digest), producer.rows_here)
            if which.wants(producer, digest):
                if len(told) == PRODUCERS_LISTED_MAX:
                    return True, told
                told.append(ProducerKnown(producer.name, producer.epoch, upcoming, digest))
        return False, told

    def _list(self, info: PeerInfo, asked: ListProducers, now: float) -> None:
        more, told = self._here(Which(asked.job, asked.after, asked.begins, asked.unless))
        self._cluster.tell(info, ListedProducers(asked.request, self._producers.is_sure, more, tuple(told)), now)

    def _listed(self, info: PeerInfo, told: ListedProducers, now: float) -> None:
        self._heard(told.request, info.identifier, told.is_sure, told.has_more, told.producers, now)

    def _heard(
        self, request: int, broker: int, sure: bool, more: bool, told: Sequence[ProducerKnown], now: float
    ) -> None:
        asking = self._asking.get(request)
        if asking is None or broker not in asking.asked:
            return
        asking.answered += 1
        asking.heard += sure
        if more:
            asking.end = min(asking.end or told[-1][0], told[-1][0])
        for name, epoch, upcoming, digest in told:
            known = asking.found.get(name)
            if known is not None:
                epoch = max(epoch, known[1])
                upcoming, digest = max((upcoming, digest), (known[2], known[3]))
            asking.found[name] = ProducerKnown(name, epoch, upcoming, digest)
        self._not_waiting_for(request, broker, now)

    def _not_waiting_for(self, request: int, broker: int, now: float) -> None:
        asking = self._asking[request]
        asking.asked.pop(broker, None)
        if asking.asked:
            return
        self._end(request)
        if not self._producers.is_enough(asking.heard, asking.answered, now):
            text = f"too few brokers can say what this job published ({shortage(self._cluster, self._log)})"
            asking.deferred.say(
                Refused(ErrorCode.UNAVAILABLE, f"{text}: start what is missing, or try again in a moment")
            )
            return
        found = [asking.found[name] for name in sorted(asking.found) if not asking.end or name <= asking.end]
        rows = [
            {"name": name, "epoch": epoch, "next": upcoming, "digest": digest}
            for name, epoch, upcoming, digest in found[:PRODUCERS_LISTED_MAX]
        ]
        is_all = not asking.end and len(found) == len(rows)
        answer = {"producers": rows, "next": None if is_all else rows[-1]["name"]}
        asking.deferred.say({**answer, "known": len(self._producers), "limit": self._producers.limit})

    def _end(self, request: int) -> None:
        del self._asking[request]
        self._timers.at(LISTINGS, min([asking.deadline for asking in self._asking.values()], default=NEVER))

    def link_down(self, info: PeerInfo, now: float) -> None:
        """It will not answer."""
        for request in [one for one, asking in self._asking.items() if info.identifier in asking.asked]:
            self._not_waiting_for(request, info.identifier, now)

    def give_up_late(self, now: float) -> None:
        """Who waited too long is told so."""
        for request in [one for one, asking in self._asking.items() if asking.deadline <= now]:
            asking = self._asking[request]
            self._end(request)
            why = shortage(self._cluster, self._log, asking.asked)
            text = f"brokers do not answer what they know of this job ({why}): try again in a moment"
            asking.deferred.say(Refused(ErrorCode.UNAVAILABLE, text))

    # --- forgetting --------------------------------------------------------------------------------------------------

    def forget(self, stream: Any, now: float) -> dict[str, Any]:
        """Every broker within reach forgets what wrote to that stream; how much that was here. Raises Refused."""
        if not _is_name(stream):
            raise Refused(ErrorCode.BAD_REQUEST, "producers.forget: give a `stream`")
        for info in self._cluster.linked():
            self._cluster.tell(info, ForgetProducers(stream), now)
        return {"stream": stream, "forgotten": self._producers.forget(stream, now)}

    def _forget_too(self, info: PeerInfo, forget: ForgetProducers, now: float) -> None:
        self._producers.forget(forget.stream, now)


def _which(parts: list[Any]) -> Which | None:
    """What is asked for; None when it is nothing that could be."""
    if tuple(map(type, parts)) != (str, str, bytes, bytes) or not _is_name(parts[0]):
        return None
    return Which(*parts) if max(map(len, parts[1:])) <= PRODUCER_NAME_LENGTH_MAX else None


def _is_name(name: Any) -> bool:
    return type(name) is str and 0 < len(name) <= PRODUCER_NAME_LENGTH_MAX

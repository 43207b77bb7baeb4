"""Inquiries: a question of a client that another broker answers, so that one connection sees the whole cluster.

The broker that is asked answers as it would a client of its own, in pages of
the same size, and asks no other. Only the verbs in INQUIRED go to another broker: those that change nothing, and those
about a durable subscription, which go to its coordinator.

An inquiry ends with its answer or with the link. After INQUIRY_SECONDS_MAX the client is told that there was no answer;
the inquiry stays in the count until the answer or the end of the link, so that a broker that hangs is not asked on and
on: what is under way to one broker is bounded on both sides by `inquiries_per_broker`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.protocol.errors import ErrorCode, Refused

from ..cluster import Cluster
from ..deferred import Deferred
from ..keyspace import hash_identifier
from ..limits import INQUIRY_LENGTH_MAX, INQUIRY_SECONDS_MAX
from ..links import PeerInfo
from ..timers import NEVER, Timers
from .messages import Answered, Inquire

__all__ = ["COORDINATED", "INQUIRED", "INQUIRIES", "Inquiries"]

INQUIRIES = "inquiries"
"""Key of the timer: a client whose question went to another broker has waited long enough."""

COORDINATED = frozenset(
    ("durable", "durable_set", "durable_seek", "durable_rm", "dead", "dead_replay"),
)
"""Verbs about one durable subscription, by its name: its coordinator answers."""

INQUIRED = frozenset(("status", "ring", "streams", "subs", "slowest", "logs", "durables", "cubes")) | COORDINATED
"""Verbs that one broker may ask another."""


@dataclass(slots=True)
class _Inquiry:
    """A question that went to a broker; `deferred` is None once the client was told that there is no answer."""

    info: PeerInfo
    deferred: Deferred | None
    until: float


class Inquiries:
    """Keeps what one broker asks another, until it is answered."""

    def __init__(self, cluster: Cluster, timers: Timers) -> None:
        self._cluster = cluster
        self._limits = cluster.config.limits
        cluster.take_controls({Answered: self._answered})
        self._timers = timers
        self._open: dict[int, _Inquiry] = {}  # in the order of asking, and so of their deadlines
        self._answering: dict[int, int] = {}  # link -> inquiries that came on it and wait here
        self._numbers = 0

    def ask(self, broker: Any, verb: str, arguments: dict[str, Any], now: float) -> Deferred:
        """Ask another broker; what it answers. Raises Refused when it cannot be asked."""
        info = self._cluster.peers.by_identifier.get(hash_identifier(broker)) if type(broker) is str else None
        if info is None or info.name != broker:
            text = f"no broker named {broker!r} is known at {self._cluster.config.name}: `headgate ring` shows them all"
            raise Refused(ErrorCode.NOT_FOUND, text)
        if info.link is None:
            raise Refused(ErrorCode.UNAVAILABLE, f"{broker} is down: {self._cluster.config.name} has no link to it")
        if sum(one.info is info for one in self._open.values()) >= self._limits.inquiries_per_broker:
            text = (
                f"{broker} has {self._limits.inquiries_per_broker} questions to answer already: try again in a moment"
            )
            raise Refused(ErrorCode.LIMIT, text)
        deferred = Deferred()
        self._numbers += 1
        self._open[self._numbers] = _Inquiry(info, deferred, now + INQUIRY_SECONDS_MAX)
        self._set_timer()
        self._cluster.tell(info, Inquire(self._numbers, verb, arguments), now)
        return deferred

    def link_down(self, info: PeerInfo) -> None:
        """A broker cannot be reached any more, so it will not answer what it was asked."""
        for number, one in list(self._open.items()):
            if one.info is info:
                del self._open[number]
                self._say(one, _unavailable(info, "the link to it broke"))

    def give_up_late(self, now: float) -> None:
        """A client that waited for long is told that there is no answer."""
        for one in self._open.values():
            if one.deferred is not None and one.until <= now:
                self._say(one, _unavailable(one.info, f"no answer within {INQUIRY_SECONDS_MAX:g} seconds"))
        self._set_timer()

    def _set_timer(self) -> None:
        waited = (one.until for one in self._open.values() if one.deferred is not None)
        self._timers.at(INQUIRIES, min(waited, default=NEVER))

    def validate(self) -> None:
        """Only brokers with a link are waited for."""
        assert all(one.info.link is not None for one in self._open.values())
        assert all(self._answering.values())

    def _say(self, one: _Inquiry, answer: Any) -> None:
        deferred, one.deferred = one.deferred, None
        self._set_timer()
        if deferred is not None:
            deferred.say(answer)

    # --- what other brokers say --------------------------------------------------------------------------------------

    def _answered(self, info: PeerInfo, answer: Answered, now: float) -> None:
        one = self._open.get(answer.number)
        if one is None or one.info is not info:
            return  # it was asked on an earlier link
        del self._open[answer.number]
        self._say(one, Refused(answer.code, str(answer.value)) if answer.code else answer.value)

    def check(self, info: PeerInfo, verb: str) -> None:
        """Raises Refused unless another broker may ask this now."""
        if verb not in INQUIRED:
            raise Refused(ErrorCode.BAD_REQUEST, f"{verb} is not asked of another broker; connect to that broker")
        if info.link is None or self._answering.get(info.link, 0) >= self._limits.inquiries_per_broker:
            raise Refused(ErrorCode.LIMIT, f"{self._limits.inquiries_per_broker} questions wait already: try again")

    def answer(self, info: PeerInfo, number: int, value: Any, now: float) -> None:
        """Tell the broker that asked what the answer is, or why there is none (Refused), as soon as that is known."""
        link = info.link
        if link is None:
            return
        if not isinstance(value, Deferred):
            self._tell(info, number, value, now)
            return
        self._answering[link] = self._answering.get(link, 0) + 1

        def told(answer: Any) -> None:
            self._answering[link] -= 1
            if not self._answering[link]:
                del self._answering[link]
            if info.link == link:
                self._tell(info, number, answer, now)

        value.tell = told

    def _tell(self, info: PeerInfo, number: int, answer: Any, now: float) -> None:
        if not isinstance(answer, Refused) and len(repr(answer).encode()) > INQUIRY_LENGTH_MAX:
            text = "the answer is too long to be carried from broker to broker: ask that broker itself"
            answer = Refused(ErrorCode.LIMIT, text)
        refused = isinstance(answer, Refused)
        told = Answered(number, int(answer.code), answer.text) if refused else Answered(number, 0, answer)
        self._cluster.tell(info, told, now)


def _unavailable(info: PeerInfo, reason: str) -> Refused:
    return Refused(ErrorCode.UNAVAILABLE, f"{info.name} did not answer: {reason}")

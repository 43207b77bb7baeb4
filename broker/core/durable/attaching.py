"""Attaching: the home of a client brings it to the coordinator of a durable subscription, wherever that is by now.

Brokers agree on who coordinates a subscription a moment after their links did, and a coordinator that has just taken
over lets nobody in before its generation is on k disks. So a client that is told `UNAVAILABLE` is brought there again,
until ATTACH_SECONDS are over. A client that was in, and whose coordinator is gone, is told so with ENDED, and
subscribes again by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.matching.structure import parse_twig
from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.limits import CONDITION_LENGTH_MAX
from headgate.protocol.messages import Error, Scope, Suback, Subscribe, Unsuback, Unsubscribe

from ..cluster import Cluster
from ..delivery import ClientSession
from ..effects import Effect, Send
from ..limits import ERROR_TEXT_LENGTH_MAX
from ..timers import NEVER, Timers
from .coordinator import OWNER, RECORD_OPTIONS
from .handing import Handing
from .keeping import key_of
from .limits import ATTACH_PAUSE_SECONDS, ATTACH_SECONDS
from .messages import Asks, Attach, Attached, Compare, Detached, Missed, Settled
from .messages import HandOut as HandOutMessage
from .relay import Relay
from .state import check_options

__all__ = ["ATTACHING", "Attaching"]

ATTACHING = "durable-attaching"
"""Key of the timer: a client is brought to its coordinator again."""

_OWN_OPTIONS = ("durable", "exact", "from", "takeover", "window", "limit", "ordered")


@dataclass(slots=True, eq=False)
class _Pending:
    """A SUBSCRIBE that has no answer."""

    session: ClientSession
    message: Subscribe
    until: float
    again_at: float = NEVER
    coordinator: int = 0
    number: int = 0
    said: str = "no broker coordinates it yet"


class Attaching:
    """Brings clients of this broker to the coordinators of their durable subscriptions."""

    def __init__(self, effects: list[Effect], cluster: Cluster, relay: Relay, handing: Handing, timers: Timers) -> None:
        self._effects = effects
        self._cluster = cluster
        self._relay = relay
        self._handing = handing
        self._timers = timers
        self._pending: dict[int, _Pending] = {}
        relay.take(
            {
                Asks: self._asks,
                Attached: self._attached,
                Detached: lambda teller, message, now: handing.detached(message, now),
                HandOutMessage: lambda teller, message, now: handing.hand_out(message, now),
                Settled: lambda teller, message, now: handing.settled(message, now),
                Compare: lambda teller, message, now: handing.compare(message),
                Missed: lambda teller, message, now: handing.missed(message, now),
            }
        )

    def subscribe(self, session: ClientSession, message: Subscribe, now: float) -> None:
        """A client wants to take part. Raises Refused."""
        _check(message)
        if session.rights is not None:
            session.rights.check_durable(message.options["durable"])
        if message.subscription in session.durables:
            text = f"subscription {message.subscription} exists: unsubscribe it first"
            raise Refused(ErrorCode.DUPLICATE, text)
        most = self._cluster.config.limits.subscriptions_per_session
        if len(session.durables) >= most:
            text = f"a session has at most {most} durable subscriptions: open another one"
            raise Refused(ErrorCode.LIMIT, text)
        self._try(_Pending(session, message, now + ATTACH_SECONDS), now)

    def _try(self, pending: _Pending, now: float) -> None:
        message, name = pending.message, pending.message.options["durable"]
        pending.coordinator = self._cluster.owner_of(key_of(name))
        pending.number = self._handing.begin(pending.session, message.subscription, pending.coordinator, name)
        self._pending[pending.number] = pending
        reached = self._relay.is_here(pending.coordinator)
        pending.again_at = pending.until if reached else now + ATTACH_PAUSE_SECONDS
        options = {key: value for key, value in message.options.items() if key not in ("durable", "ordered")}
        if pending.session.rights is not None:
            options[OWNER] = pending.session.user  # no option of clients, as `_check` saw
        client = pending.session.name or "unnamed"
        self._relay.tell(
            pending.coordinator, Attach(pending.number, name, client, message.pattern, message.condition, options)
        )
        self._timers.by(ATTACHING, pending.again_at)

    def _asks(self, teller: int, message: Asks, now: float) -> None:
        """SUBACK says it, which comes again before anything for which it is something else."""
        self._handing.look_for(message.number, [parse_twig(twig).check() for twig in message.twigs])

    def _attached(self, teller: int, message: Attached, now: float) -> None:
        pending = self._pending.get(message.number)
        if pending is None or teller != pending.coordinator:
            return
        if not message.code:
            del self._pending[message.number]
            self._say(
                pending,
                Suback(pending.message.request, pending.message.subscription, self._handing.told(message.number)),
            )
        elif message.code == ErrorCode.UNAVAILABLE and now < pending.until:
            pending.said = message.text
            pending.again_at = now + ATTACH_PAUSE_SECONDS
            self._timers.by(ATTACHING, pending.again_at)
        else:
            self._refuse(pending, Refused(message.code, message.text))

    def go_on(self, now: float) -> None:
        """Bring those there again whose time it is, and give up those that waited too long."""
        for pending in list(self._pending.values()):
            if pending.again_at <= now:
                if pending.until <= now:
                    text = f"durable subscription {pending.message.options['durable']!r}: {pending.said}"
                    self._refuse(pending, Refused(ErrorCode.UNAVAILABLE, f"{text}; try again in a moment"))
                else:
                    self._again(pending, now)
        self._timers.at(ATTACHING, min((pending.again_at for pending in self._pending.values()), default=NEVER))

    def _again(self, pending: _Pending, now: float) -> None:
        del self._pending[pending.number]
        self._handing.end_number(pending.number)
        self._try(pending, now)

    def link_down(self, identifier: int, now: float) -> None:
        """A coordinator cannot be reached, and so lets go of everybody."""
        for pending in self._pending.values():
            if pending.coordinator == identifier:
                pending.again_at = now + ATTACH_PAUSE_SECONDS
                self._timers.by(ATTACHING, pending.again_at)
        for number, coordinator in self._handing.coordinators():
            if number not in self._pending and coordinator == identifier:
                text = "the broker that coordinates this durable subscription cannot be reached"
                self._handing.detached(Detached(number, ErrorCode.UNAVAILABLE, text), now)

    def govern(self, session: ClientSession, now: float) -> None:
        """Its rights may be others: what has a name that it may not have any more ends."""
        for number, name in self._handing.names_of(session):
            try:
                if session.rights is not None:
                    session.rights.check_durable(name)
            except Refused as refused:
                self._handing.end_with(number, refused)

    def unsubscribe(self, session: ClientSession, message: Unsubscribe, now: float) -> bool:
        """A client takes part no more; False when it never did."""
        found = message.subscription in session.durables
        for pending in list(self._pending.values()):
            if pending.session is session and pending.message.subscription == message.subscription:
                del self._pending[pending.number]
                found = True
        if found:
            self._handing.end(session, message.subscription)
            if session.link is not None:
                self._effects.append(Send(session.link, Unsuback(message.request, message.subscription)))
        return found

    def gone(self, session: ClientSession) -> None:
        """Its connection ended."""
        for pending in list(self._pending.values()):
            if pending.session is session:
                del self._pending[pending.number]
        self._handing.end(session, None)

    def _refuse(self, pending: _Pending, refused: Refused) -> None:
        self._pending.pop(pending.number, None)
        self._handing.end_number(pending.number)
        text = refused.text[:ERROR_TEXT_LENGTH_MAX]
        self._say(pending, Error(refused.code, Scope.REQUEST, pending.message.request, text))

    def _say(self, pending: _Pending, message: Any) -> None:
        if pending.session.link is not None:
            self._effects.append(Send(pending.session.link, message))

    def validate(self) -> None:
        """Every SUBSCRIBE without an answer has a timer."""
        for number, pending in self._pending.items():
            assert pending.number == number and pending.session.link is not None
            assert self._timers.when(ATTACHING) <= pending.again_at


def _check(message: Subscribe) -> None:
    """Raises Refused when its options are none."""
    options = message.options
    if message.subscription == 0:
        raise Refused(ErrorCode.BAD_REQUEST, "subscriptions are numbered from 1")
    if len(message.condition) > CONDITION_LENGTH_MAX:
        raise Refused(ErrorCode.BAD_CONDITION, "the condition is too long")
    for name in ("exact", "ordered"):
        if type(options.get(name, False)) is not bool:
            raise Refused(ErrorCode.BAD_REQUEST, f"option {name} is true or false")
    for name in options:
        if name not in _OWN_OPTIONS and name not in RECORD_OPTIONS:
            known = ", ".join((*_OWN_OPTIONS, *RECORD_OPTIONS))
            raise Refused(ErrorCode.BAD_REQUEST, f"unknown option {name!r}; a durable subscription has {known}")
    check_options(options)

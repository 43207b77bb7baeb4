"""ASK `amend`: a client changes what one of its subscriptions asks for, while events go on.

    next version      placed beside the present one, as SUBSCRIBE does, but for what is put for that and serves both;
                      the client gets what it asked for before
    in force          the point: from here on the client gets what it asks for now; ANSWER stands at the point,
                      behind all that was decided before and still waits in the outbox
    AMEND_SECONDS     later the former version is withdrawn

What becomes of each event meanwhile is decided in `delivery/amending.py`. Asked again with the same words, as after a
lost connection, the answer is the same. When the cluster does not take the next version, all stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headgate.matching import Tree, parse_condition
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.messages import Subscribe

from ..deferred import Deferred
from ..delivery import Amendment, Dissemination, Streams, Subscribers, Subscription, Version
from ..limits import AMEND_SECONDS, AMEND_VERSIONS_MAX, AMENDED_EVENTS_MAX
from ..placement import Registry
from ..safeguards import Safeguard
from ..timers import NEVER, Timers
from .audit import AuditLog
from .checks import checks_of

__all__ = ["AMENDING", "Amend", "Amending"]

AMENDING = "amending"
"""The timer: former versions are withdrawn."""


@dataclass(frozen=True, slots=True)
class Amend:
    """What a client wants."""

    number: int
    pattern: str
    condition: str
    exact: bool
    ordered: bool

    @classmethod
    def of(cls, arguments: dict[str, Any]) -> Amend:
        """Read the arguments of the question. Raises Refused."""
        number, pattern, condition = (arguments.get(name) for name in ("subscription", "pattern", "where"))
        exact, ordered = arguments.get("exact", False), arguments.get("ordered", False)
        unknown = sorted(arguments.keys() - {"subscription", "pattern", "where", "exact", "ordered"})
        if unknown:
            raise Refused(ErrorCode.BAD_REQUEST, f"amend: unknown argument {unknown[0]!r}")
        texts = type(pattern) is str and type(condition) is str
        if type(number) is int and texts and type(exact) is type(ordered) is bool:
            return cls(number, str(pattern), str(condition), exact, ordered)
        text = (
            "amend: give `subscription`, a number, and `pattern` and `where`, texts; `exact`, `ordered`: true or false"
        )
        raise Refused(ErrorCode.BAD_REQUEST, text)

    def subscribe(self) -> Subscribe:
        """The same as if it were asked for anew."""
        return Subscribe(0, self.number, self.pattern, self.condition, {"exact": self.exact})


@dataclass(slots=True, eq=False)
class _Under:
    """The amendment of one subscription: which versions it has, and what is under way."""

    amendment: Amendment
    said: Amend | None = None
    """What it asks for since the last point."""
    told: dict[str, int] = field(default_factory=dict)
    """How many places of the cluster were told of that, were kept, and are to be removed."""
    next: int = 0
    """The version that is being placed; 0: none is."""
    wish: Amend | None = None
    waiting: list[Deferred] = field(default_factory=list)


class Amending:
    """Leads subscriptions of this broker's clients from one version to the next."""

    def __init__(
        self,
        streams: Streams,
        subscribers: Subscribers,
        dissemination: Dissemination,
        registry: Registry,
        audit: AuditLog,
        timers: Timers,
        safeguards: frozenset[Safeguard],
    ) -> None:
        self._streams = streams
        self._subscribers = subscribers
        self._dissemination = dissemination
        self._registry = registry
        self._audit = audit
        self._timers = timers
        self._safeguards = safeguards
        self._under: dict[int, _Under] = {}
        """By identity of each version."""
        self.amended = 0

    def amend(
        self,
        subscription: Subscription,
        wish: Amend,
        versions: tuple[Version, Version],
        condition: Tree | None,
        now: float,
    ) -> Deferred:
        """The subscription, which is in force, is to become the second version, whose condition this is.

        Raises Refused.
        """
        deferred = Deferred()
        present, following = versions
        asked = subscription.pattern, subscription.condition
        under = self._under.get(subscription.identity)
        if under is None and (following.pattern, following.subscription.condition) == asked:
            self._say_at_point(
                subscription, self._registry.difference(subscription.identity, subscription.identity), [deferred]
            )
            return deferred
        if under is not None and under.next:
            if under.wish != wish:
                raise Refused(ErrorCode.DUPLICATE, f"subscription {wish.number} is being amended: wait for the answer")
            under.waiting.append(deferred)
            return deferred
        if under is not None and under.said == wish:
            self._say_at_point(subscription, under.told, [deferred])
            return deferred
        if under is not None and len(under.amendment.versions) >= AMEND_VERSIONS_MAX:
            text = f"subscription {wish.number} was amended too often in {AMEND_SECONDS:g} s: try again in a moment"
            raise Refused(ErrorCode.UNAVAILABLE, text)
        if under is None:
            is_decided_once = Safeguard.AMENDED_DECIDED_ONCE in self._safeguards
            under = _Under(Amendment(subscription.identity, {}, is_decided_once))
            self._enter(under, present)
        under.next, under.wish, under.waiting = following.subscription.identity, wish, [deferred]
        self._enter(under, following)
        words = condition, wish.condition, wish.exact, wish.ordered
        self._registry.place(following.subscription, *words, now, under.amendment.present)
        return deferred

    def placed(self, version: Subscription, done: bool, now: float) -> bool:
        """A version is in force, or the cluster did not take it. Whether it was one."""
        under = self._under.get(version.identity)
        if under is None or under.next != version.identity:
            return False
        waiting, under.waiting, under.next = under.waiting, [], 0
        if not done:
            self._leave(under, version.identity, now)
            self._settle(under)
            text = "the cluster could not take this change, because brokers do not answer: try again in a moment"
            for deferred in waiting:
                deferred.say(Refused(ErrorCode.UNAVAILABLE, text))
            return True
        self._dissemination.settle()
        amendment, session = under.amendment, version.session
        former = amendment.versions[amendment.present]
        former.ends_at = now + (AMEND_SECONDS if Safeguard.AMENDED_FORMER_RESTS in self._safeguards else 0.0)
        self._timers.by(AMENDING, former.ends_at)
        amendment.present = version.identity
        version.delivered, version.dropped = former.subscription.delivered, former.subscription.dropped
        session.subscriptions[version.number] = version
        self._audit.unsubscribed(former.subscription)
        self._audit.subscribed(version)
        under.said = under.wish
        under.told = self._registry.difference(former.subscription.identity, version.identity)
        self.amended += 1
        self._say_at_point(version, under.told, waiting)
        return True

    def forget(self, subscription: Subscription, now: float) -> None:
        """Its client ends it: the other versions go as well, and whoever waits hears that."""
        under = self._under.get(subscription.identity)
        if under is None:
            return
        waiting, under.waiting, under.next = under.waiting, [], 0
        for identity in list(under.amendment.versions):
            if identity == subscription.identity:
                self._drop(under, identity)
            else:
                self._leave(under, identity, now)
        for deferred in waiting:
            deferred.say(Refused(ErrorCode.NOT_FOUND, f"subscription {subscription.number} was ended"))

    def go_on(self, now: float) -> None:
        """Former versions whose time is over are withdrawn."""
        next_at = NEVER
        for under in dict.fromkeys(self._under.values()):
            for identity, version in list(under.amendment.versions.items()):
                if version.ends_at <= now:
                    self._leave(under, identity, now)
                else:
                    next_at = min(next_at, version.ends_at)
            self._settle(under)
        self._timers.at(AMENDING, next_at)

    def validate(self) -> None:
        """Asserts that versions are found by identity, and that each subscription has one that is present."""
        assert self._under.keys() == self._subscribers.amendments.keys()
        for identity, under in self._under.items():
            versions = under.amendment.versions
            assert identity in versions and under.amendment.present in versions and len(versions) > 1
            assert self._subscribers.amendments[identity] is under.amendment
            assert versions[identity].subscription is self._subscribers.by_identity[identity]
            assert under.next == 0 or under.next in versions
            assert len(under.amendment.due) <= AMENDED_EVENTS_MAX

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _enter(self, under: _Under, version: Version) -> None:
        subscription = version.subscription
        under.amendment.versions[subscription.identity] = version
        self._under[subscription.identity] = under
        self._subscribers.by_identity[subscription.identity] = subscription
        self._subscribers.amendments[subscription.identity] = under.amendment
        self._forget_plans(subscription)

    def _drop(self, under: _Under, identity: int) -> Subscription:
        subscription = under.amendment.versions.pop(identity).subscription
        under.amendment.is_over(identity)
        del self._under[identity], self._subscribers.amendments[identity]
        self._forget_plans(subscription)
        return subscription

    def _leave(self, under: _Under, identity: int, now: float) -> None:
        subscription = self._drop(under, identity)
        del self._subscribers.by_identity[identity]
        self._registry.withdraw([subscription], now)

    def _settle(self, under: _Under) -> None:
        """With one version left nothing has to be decided any more."""
        if len(under.amendment.versions) == 1:
            self._drop(under, under.amendment.present)

    def _forget_plans(self, subscription: Subscription) -> None:
        self._dissemination.forget_plans()
        stream = self._streams.by_name.get(subscription.stream)
        if stream is not None:
            stream.subscriptions_changed()

    def _say_at_point(self, subscription: Subscription, told: dict[str, int], waiting: list[Deferred]) -> None:
        """Behind all that was decided before, with what it asks of documents from here on."""
        condition = subscription.condition
        checks = checks_of(parse_condition(condition, CANONICAL_BYTES_MAX)) if condition else []
        answer = {**told, "checks": checks} if checks else told
        for deferred in waiting:
            mark = Deferred()
            mark.tell = partial(self._say, deferred, answer, subscription)
            if Safeguard.AMENDED_ANSWER_BEHIND in self._safeguards:
                self._subscribers.mark(subscription.session, subscription.number, mark)
            else:
                mark.say(None)

    @staticmethod
    def _say(deferred: Deferred, answer: dict[str, Any], subscription: Subscription, known: Any) -> None:
        session, number = subscription.session, subscription.number
        checks = answer.get("checks", [])
        if number in session.subscriptions and (checks or number in session.checks):
            session.checks[number] = checks
        deferred.say(answer)

"""What a client says, and what follows from it: one method a message, found through one table.

A batch that was refused counts as answered: ERROR names it, then the cumulative PUBACK passes it. A request that was
refused leaves everything as it was. A client that breaks the protocol loses its connection, never its session.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from headgate.matching import (
    ConditionError,
    MatchingError,
    Pattern,
    Tree,
    deltas,
    extensions,
    parse_condition,
    parse_pattern,
    to_text,
)
from headgate.matching.limits import ATTRIBUTE_NAME_BYTES_MAX, CONDITION_BYTES_MAX
from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.limits import CREDIT_MAX, PUBLISH_WINDOW_DEFAULT
from headgate.protocol.messages import (
    VERSION,
    Ack,
    Answer,
    Credit,
    Ended,
    Error,
    Goodbye,
    Hello,
    Hold,
    Message,
    Publish,
    ReadLog,
    Scope,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)

from ..clock import Clock
from ..config import NodeConfig
from ..deferred import Deferred
from ..delivery import ClientSession, Dissemination, Streams, Subscribers, Subscription, Version
from ..durable import Durables
from ..effects import Close, Effect, Note, Send
from ..limits import (
    ASKS_PER_SESSION_MAX,
    ERROR_TEXT_LENGTH_MAX,
    TOKENS_LOOK_SECONDS,
)
from ..log import LogReading
from ..placement import Registry
from ..rights import Policy, Rights
from ..safeguards import Safeguard
from ..timers import Timers
from .access import Access, check_dead_letter
from .amending import Amend, Amending
from .audit import AuditLog
from .checks import checks_of
from .paces import Paces
from .publishers import Publishers

__all__ = ["TOKENS", "Clients"]

TOKENS = "tokens"
"""Key of the timer: a token of some session may have ended."""

_SESSION_KEY_BYTES = 16
_OPTIONS = ("credit", "durable", "exact", "from", "ordered", "slow")
_UNASKED = -1
"""The request of a subscription that is placed anew because its client's rights changed: nobody waits for an answer."""


class Clients:
    """The broker's side of every conversation with a client. What is in `table` may raise ProtocolViolation."""

    def __init__(
        self,
        config: NodeConfig,
        random: Random,
        effects: list[Effect],
        streams: Streams,
        subscribers: Subscribers,
        dissemination: Dissemination,
        registry: Registry,
        publishers: Publishers,
        reading: LogReading,
        audit: AuditLog,
        durables: Durables,
        timers: Timers,
        clock: Clock,
        paces: Paces,
    ) -> None:
        self._paces = paces
        self._config = config
        self._limits = config.limits
        self._random = random
        self._effects = effects
        self._streams = streams
        self._subscribers = subscribers
        self._dissemination = dissemination
        self._registry = registry
        self._publishers = publishers
        self._audit = audit
        self._durables = durables
        self.amending = Amending(streams, subscribers, dissemination, registry, audit, timers, config.safeguards)
        self._timers = timers
        self._clock = clock
        self._first_end = math.inf  # no token of a session ends before that
        self.draining = False
        self.access = Access()
        self.table: dict[type, Callable[[ClientSession, Any, float], None]] = {
            Publish: publishers.publish,
            Credit: self._credit,
            Hold: self._hold,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            ReadLog: reading.read,
            Goodbye: self._goodbye,
            Error: self._client_error,
            Ack: durables.acknowledge,
        }

    def hello(self, link: int, address: str, hello: Hello, now: float) -> ClientSession | None:
        """Open a session or go on with one; None when the client was turned away."""
        subscribers = self._subscribers
        goes_on = bool(hello.session) and Safeguard.GRACE in self._config.safeguards
        session = subscribers.by_key.get(hello.session) if goes_on else None
        resumed = session is not None
        if self.draining:
            self._reject(link, ErrorCode.SHUTTING_DOWN, "the broker is shutting down")
            return None
        identity = self.access.enter(link)
        if identity is None:
            self._reject(
                link, ErrorCode.UNAUTHORISED, "this broker does not know you: your user or what it showed is gone"
            )
            return None
        guest, rights = identity
        user = guest.user
        if session is not None and (session.user, session.roles) != (user, guest.roles):
            # Of another user, or under other roles: its key alone gives no right to it, nor to what it subscribed to.
            session, resumed = None, False
        if (session is None or session.link is None) and self._is_full(user, rights):
            text = f"{user} has the {rights.limit('connections') if rights else 0} connections that its role allows"
            self._reject(link, ErrorCode.TOO_MANY, text)
            return None
        if session is None:
            if len(subscribers.by_key) >= self._limits.sessions and subscribers.grace:
                self.end(
                    next(iter(subscribers.grace.values())), "expired", now
                )  # who is here goes before who may come back
            if len(subscribers.by_key) >= self._limits.sessions:
                self._reject(
                    link, ErrorCode.TOO_MANY, f"this broker holds its {self._limits.sessions} sessions already"
                )
                return None
            key = self._random.randbytes(_SESSION_KEY_BYTES)
            session = ClientSession(key, hello.name, None, hello.credit, hello.credit)
            subscribers.by_key[key] = session
        elif hello.received > session.sent:
            self._reject(link, ErrorCode.PROTOCOL, "HELLO: `received` is more than was ever sent")
            return None
        elif session.link is not None:
            self._replace(session, session.link, now)
        subscribers.attach(session, link)
        session.address = address
        session.user, session.credential, session.rights = user, guest.credential, rights
        session.roles, session.ends = guest.roles, guest.ends
        if guest.ends < self._first_end:
            self._first_end = guest.ends
            self._timers.by(TOKENS, now + TOKENS_LOOK_SECONDS)
        session.allowed_bytes = session.room_bytes = hello.credit_bytes
        self._effects.append(Note("session resumed" if resumed else "session opened", {"client": session.name}, True))
        self._effects.append(
            Send(
                link,
                Welcome(
                    VERSION,
                    self._config.name,
                    session.key,
                    resumed,
                    self._publishers.resumed(session),
                    PUBLISH_WINDOW_DEFAULT,
                    hello.heartbeat_seconds,
                ),
            )
        )
        if resumed:
            self._durables.gone(session, now)
            subscribers.lost_in_flight(session, hello.received)
            session.allowed = hello.received + hello.credit
            for number, checks in session.checks.items():  # what said so may have been lost with the connection
                self._say(session, Suback(0, number, checks))
            subscribers.release_all(session)
            subscribers.pump(session)
            self._publishers.tell_interest(session, session.publishes)
        if rights is not None and rights.is_paced:
            self._paces.look(session, now)
        return session

    def _is_full(self, user: str, rights: Rights | None) -> bool:
        """Whether a user has as many connections as its roles allow."""
        most = 0 if rights is None else rights.limit("connections")
        if not most:
            return False
        return sum(one.user == user and one.link is not None for one in self._subscribers.by_key.values()) >= most

    def govern(self, policy: Policy, now: float) -> None:
        """This policy holds from now on: what it does not allow any more ends, with a reason."""
        self.access.policy = policy
        self._paces.begin_anew()
        for session in list(self._subscribers.by_key.values()):
            if not policy.holds(session.user, session.credential):
                is_gone = session.roles is None and session.user not in policy.users
                gone = "is no user of this cluster any more" if is_gone else ""
                self._expel(
                    session, f"{session.user} {gone or 'has shown a password or token that is no longer good'}", now
                )
                continue
            rights = policy.rights_of(session.user, session.roles)
            assert rights is not None, "the policy holds its user"
            if rights.is_as(session.rights):
                continue
            session.rights = rights
            for subscription in list(session.subscriptions.values()):
                self._renew(session, subscription, now)
            self._durables.govern(session, now)
        self._durables.coordinator.govern(policy, now)

    def end_expired_tokens(self, now: float) -> None:
        """Who has shown a token that has ended is nobody any more."""
        time = self._clock.us(now) / 1e6
        if time >= self._first_end:
            for session in list(self._subscribers.by_key.values()):
                if session.ends <= time:
                    self._expel(session, f"the token of {session.user} has expired: connect with a new one", now)
            self._first_end = min((one.ends for one in self._subscribers.by_key.values()), default=math.inf)
        if self._first_end < math.inf:
            self._timers.at(TOKENS, now + TOKENS_LOOK_SECONDS)

    def _expel(self, session: ClientSession, text: str, now: float) -> None:
        """It is nobody any more."""
        self._effects.append(Note("session ended", {"client": session.name, "reason": text}))
        if session.link is not None:
            self._effects.append(Send(session.link, Error(ErrorCode.UNAUTHORISED, Scope.CONNECTION, 0, text)))
            self._effects.append(Close(session.link))
        self.end(session, "expired", now)

    def _renew(self, session: ClientSession, subscription: Subscription, now: float) -> None:
        """Its rights may be others: what it asked for is narrowed anew, or ends.

        What was decided before and waits is thrown away with the former subscription, for it may hold too much.
        """
        asked, number = subscription.asked, subscription.number
        assert asked is not None and session.rights is not None
        pattern = parse_pattern(asked.pattern, exact=asked.options.get("exact", False))
        condition = parse_condition(asked.condition) if asked.condition.strip() else None
        refused = None
        try:
            narrowed = session.rights.narrow(pattern, condition)
            is_amended = subscription.identity in self._subscribers.amendments
            if (narrowed.pattern, narrowed.text) == (subscription.pattern, subscription.condition) and not is_amended:
                return
        except Refused as refusal:
            refused = refusal
        placing = session.placing.get(number)
        del session.subscriptions[number]
        self._withdraw(session, subscription, now)
        if refused is None:
            self._subscribe(session, replace(asked, request=_UNASKED) if placing is None else placing, now)
            self._subscribers.interrupted(session, number, "your rights have changed")
        elif placing is None or placing.request == _UNASKED:
            self._say(session, Ended(number, refused.code, refused.text))
        else:
            self._refuse(session, refused.code, Scope.REQUEST, placing.request, refused.text)

    def _replace(self, session: ClientSession, link: int, now: float) -> None:
        """The client came back before its old connection was known to be dead."""
        text = "this session goes on over another connection"
        self._effects.append(Send(link, Error(ErrorCode.REPLACED, Scope.CONNECTION, 0, text)))
        self._effects.append(Close(link))
        self._subscribers.detach(session, now)
        self._durables.gone(session, now)

    def _reject(self, link: int, code: ErrorCode, text: str) -> None:
        self._effects.append(Send(link, Error(code, Scope.CONNECTION, 0, text)))
        self._effects.append(Close(link))

    def _credit(self, session: ClientSession, message: Credit, now: float) -> None:
        if not session.received <= message.received <= session.sent or message.allowed > CREDIT_MAX:
            text = f"CREDIT: received {message.received} is not between {session.received} and {session.sent}"
            raise ProtocolViolation(text)
        session.received = message.received
        session.allowed = max(session.allowed, message.allowed)
        session.room_bytes += max(0, message.allowed_bytes - session.allowed_bytes)
        session.allowed_bytes = max(session.allowed_bytes, message.allowed_bytes)
        if self._subscribers.watch is not None:
            self._subscribers.watch.acknowledged(session, message)
        if session.announced:
            self._subscribers.heard(session)
        if session.waits or session.gaps:
            self._subscribers.pump(session)

    def _hold(self, session: ClientSession, message: Hold, now: float) -> None:
        if message.subscription not in session.subscriptions:
            return  # its end crossed this on the way, or it was refused
        if message.held:
            self._subscribers.hold(session, message.subscription)
        else:
            self._subscribers.release(session, message.subscription)

    def _subscribe(self, session: ClientSession, message: Subscribe, now: float) -> None:
        if message.options.get("durable", "") != "":
            self._subscribe_durably(session, message, now)
            return
        pending = session.placing.get(message.subscription)
        if pending is not None and _same_wish(pending, message):  # asked again over a new connection
            session.placing[message.subscription] = message
            return
        try:
            subscription, condition = self._understand(session, message)
        except MatchingError as error:
            code = ErrorCode.BAD_CONDITION if isinstance(error, ConditionError) else ErrorCode.BAD_PATTERN
            self._refuse(session, code, Scope.REQUEST, message.request, str(error))
            return
        except Refused as error:
            if message.request == _UNASKED:
                self._say(session, Ended(message.subscription, error.code, error.text))
            else:
                self._refuse(session, error.code, Scope.REQUEST, message.request, error.text)
            return
        session.subscriptions[message.subscription] = subscription
        kind, of = _slow_of(message.options)
        if kind == "conflate":
            session.conflating[message.subscription] = of
        elif kind == "widen":
            session.conflating[message.subscription] = ""
            session.widening[message.subscription] = float(of)
        session.placing[message.subscription] = message
        self._subscribers.by_identity[subscription.identity] = subscription
        exact, ordered = (message.options.get(name, False) is True for name in ("exact", "ordered"))
        # What others read has a bound: of what is printed that is checked where rights were added to it.
        text = message.condition if session.rights is None else subscription.condition
        exact = subscription.pattern.exact if session.rights is not None else exact
        self._registry.place(subscription, condition, text, exact, ordered, now)

    def _subscribe_durably(self, session: ClientSession, message: Subscribe, now: float) -> None:
        try:
            if message.subscription in session.subscriptions:
                text = f"subscription {message.subscription} exists: unsubscribe it first"
                raise Refused(ErrorCode.DUPLICATE, text)
            if session.rights is not None:
                self._check_owner(session)
                check_dead_letter(session.rights, message.options)
            self._durables.subscribe(session, message, now)
        except Refused as error:
            self._refuse(session, error.code, Scope.REQUEST, message.request, error.text)

    def placed(self, subscription: Subscription, done: bool, now: float) -> None:
        """It is in force, or the cluster could not be brought to take it."""
        is_version = subscription.identity in self._subscribers.amendments
        if is_version and self.amending.placed(subscription, done, now):
            return
        session, number = subscription.session, subscription.number
        asked = session.placing.pop(number, None)
        if asked is None or session.subscriptions.get(number) is not subscription:
            return
        if done:
            checks = checks_of(parse_condition(asked.condition)) if "xpath" in asked.condition.lower() else []
            session.checks.pop(number, None)
            if checks:
                session.checks[number] = checks
            if asked.request != _UNASKED:
                self._say(session, Suback(asked.request, number, checks))
            self._audit.subscribed(subscription)
            self._amend_late(session, number, now)
            return
        del session.subscriptions[number]
        del self._subscribers.by_identity[subscription.identity]
        self._subscribers.withdraw(session, number)
        self._registry.withdraw([subscription], now)
        text = "the cluster could not take this subscription, because brokers do not answer: try again in a moment"
        if asked.request == _UNASKED:
            self._say(session, Ended(number, ErrorCode.UNAVAILABLE, text))
        else:
            self._refuse(session, ErrorCode.UNAVAILABLE, Scope.REQUEST, asked.request, text)
        self._amend_late(session, number, now)

    def _understand(self, session: ClientSession, message: Subscribe) -> tuple[Subscription, Tree | None]:
        """Check a SUBSCRIBE. Raises MatchingError or Refused, having changed nothing."""
        if message.subscription in session.subscriptions or message.subscription in session.durables:
            raise Refused(ErrorCode.DUPLICATE, f"subscription {message.subscription} exists: unsubscribe it first")
        if message.subscription == 0:
            raise Refused(ErrorCode.BAD_REQUEST, "subscriptions are numbered from 1")
        if len(session.subscriptions) >= self._limits.subscriptions_per_session:
            text = f"a session has at most {self._limits.subscriptions_per_session} subscriptions: open another one"
            raise Refused(ErrorCode.LIMIT, text)
        if len(self._subscribers.by_identity) >= self._limits.subscriptions:
            raise Refused(ErrorCode.LIMIT, f"this broker holds its {self._limits.subscriptions} subscriptions already")
        most = 0 if session.rights is None else session.rights.limit("subscriptions")
        if most and sum(len(one.subscriptions) for one in self._sessions_of(session.user)) >= most:
            raise Refused(ErrorCode.LIMIT, f"{session.user} has the {most} subscriptions that its role allows")
        pattern, condition = self._allowed(session, *self._wish(message))
        identity = next(self._subscribers.identities)
        text = to_text(condition) if condition is not None else ""
        subscription = Subscription(identity, message.subscription, session, pattern.stream, pattern, text)
        subscription.asked = message
        return subscription, condition

    def _check_owner(self, session: ClientSession) -> None:
        """Raises Refused unless its rights are known where none of its clients is: a token's roles end with it."""
        assert self.access.policy is not None
        if session.roles is not None and session.user not in self.access.policy.users:
            text = f"a durable subscription outlives a token: its owner {session.user} has to be in the file of users"
            raise Refused(ErrorCode.FORBIDDEN, f"{text}, with the roles that it has while nobody is connected")

    def _sessions_of(self, user: str) -> list[ClientSession]:
        return [one for one in self._subscribers.by_key.values() if one.user == user]

    @staticmethod
    def _allowed(session: ClientSession, pattern: Pattern, condition: Tree | None) -> tuple[Pattern, Tree | None]:
        """What of that its rights allow. Raises Refused."""
        if session.rights is None:
            return pattern, condition
        narrowed = session.rights.narrow(pattern, condition)
        return narrowed.pattern, narrowed.condition

    def _wish(self, message: Subscribe) -> tuple[Pattern, Tree | None]:
        _check_options(message.options)
        if (
            len(message.condition) > CONDITION_BYTES_MAX
            and self._registry.long_bytes >= self._limits.long_conditions_bytes
        ):
            text = f"long IN lists fill the {self._limits.long_conditions_bytes} bytes that this broker has for them"
            raise Refused(ErrorCode.LIMIT, f"{text}: subscribe at another one, or without the list")
        pattern = parse_pattern(message.pattern, exact=message.options.get("exact", False))
        condition = parse_condition(message.condition) if message.condition.strip() else None
        if condition is not None and deltas(condition) and len(extensions(condition)) > len(deltas(condition)):
            text = "DELTA beside XPATH: the subscriber decides that one, and DELTA would compare with what it left"
            text += ": the client asks `explain` for `moves` and `rest`, subscribes to the rest, and compares by itself"
            raise Refused(ErrorCode.UNSUPPORTED, text)
        kind, of = _slow_of(message.options)
        if kind == "widen" and (condition is None or not deltas(condition)):
            raise Refused(ErrorCode.BAD_REQUEST, "slow widen is about the band of DELTA, and the condition has none")
        if kind == "conflate" and of and condition is not None and deltas(condition):
            text = "DELTA compares topic by topic: with it, slow is conflate or widen, and not conflate by an attribute"
            raise Refused(ErrorCode.UNSUPPORTED, text)
        if self._streams.find(pattern.stream) is None:
            raise Refused(ErrorCode.LIMIT, "this broker has as many streams as it can hold")
        return pattern, condition

    def amend(self, session: ClientSession, arguments: dict[str, Any], now: float) -> Deferred:
        """ASK `amend`: a subscription asks for something else from now on. Raises Refused."""
        wish = Amend.of(arguments)
        if wish.number in session.durables:
            text = f"subscription {wish.number} is durable: change it with `headgate durable set`"
            raise Refused(ErrorCode.UNSUPPORTED, text)
        present = session.subscriptions.get(wish.number)
        if present is None:
            raise Refused(ErrorCode.NOT_FOUND, f"there is no subscription {wish.number} in this session")
        if wish.number in session.placing:
            deferred = Deferred()
            session.amends.append((dict(arguments), deferred))
            return deferred
        try:
            pattern, condition = self._allowed(session, *self._wish(wish.subscribe()))
            former = parse_condition(present.condition) if present.condition else None
        except MatchingError as error:
            code = ErrorCode.BAD_CONDITION if isinstance(error, ConditionError) else ErrorCode.BAD_PATTERN
            raise Refused(code, str(error)) from error
        if any(one is not None and deltas(one) for one in (former, condition)):
            raise Refused(ErrorCode.UNSUPPORTED, "DELTA is not amended: unsubscribe, and subscribe anew")
        identity = next(self._subscribers.identities)
        text = to_text(condition) if condition is not None else ""
        following = Subscription(identity, wish.number, session, pattern.stream, pattern, text)
        following.asked = replace(wish.subscribe(), options={"exact": wish.exact, "ordered": wish.ordered})
        if session.rights is not None:
            wish = replace(wish, condition=text, exact=pattern.exact)
        return self.amending.amend(
            present, wish, (Version.of(present, former), Version.of(following, condition)), condition, now
        )

    def _amend_late(self, session: ClientSession, number: int, now: float) -> None:
        """What was to be amended before it was in force."""
        waiting, session.amends = session.amends, []
        for arguments, deferred in waiting:
            if arguments["subscription"] != number:
                session.amends.append((arguments, deferred))
                continue
            try:
                self.amend(session, arguments, now).tell = deferred.say
            except Refused as refused:
                deferred.say(refused)

    def _unsubscribe(self, session: ClientSession, message: Unsubscribe, now: float) -> None:
        subscription = session.subscriptions.pop(message.subscription, None)
        session.checks.pop(message.subscription, None)
        if subscription is None and message.subscription in session.durables:
            self._durables.unsubscribe(session, message, now)
            return
        if subscription is None:
            text = f"there is no subscription {message.subscription} in this session"
            self._refuse(session, ErrorCode.NOT_FOUND, Scope.REQUEST, message.request, text)
            return
        self._withdraw(session, subscription, now)
        self._say(session, Unsuback(message.request, message.subscription))

    def _withdraw(self, session: ClientSession, subscription: Subscription, now: float) -> None:
        """Nothing of it is sent any more, not even what waits."""
        self.amending.forget(subscription, now)
        if session.placing.pop(subscription.number, None) is None:
            self._audit.unsubscribed(subscription)
        self._subscribers.withdraw(session, subscription.number)
        self._registry.withdraw([subscription], now)
        del self._subscribers.by_identity[subscription.identity]

    def check_asking(self, session: ClientSession) -> None:
        """Raises Refused when it waits for as many answers as it may."""
        if session.asking >= ASKS_PER_SESSION_MAX:
            text = f"a session waits for at most {ASKS_PER_SESSION_MAX} answers at a time: wait for one of them"
            raise Refused(ErrorCode.LIMIT, text)

    def answer(self, session: ClientSession, request: int, answer: Any) -> None:
        """Say what the answer to its question is, or why there is none (Refused), as soon as that is known."""
        if isinstance(answer, Deferred):
            session.asking += 1

            def tell(known: Any) -> None:
                session.asking -= 1
                self.answer(session, request, known)

            answer.tell = tell
        elif isinstance(answer, Refused):
            self._refuse(session, answer.code, Scope.REQUEST, request, answer.text)
        else:
            self._say(session, Answer(request, answer))

    def _goodbye(self, session: ClientSession, message: Goodbye, now: float) -> None:
        link = session.link
        self.end(session, "expired", now)
        if link is not None:
            self._effects.append(Close(link))

    def _client_error(self, session: ClientSession, message: Error, now: float) -> None:
        self._effects.append(Note("client reported an error", {"client": session.name, "text": message.text}))

    def end(self, session: ClientSession, reason: str, now: float) -> None:
        """Forget a session and everything that it stood for."""
        self._durables.gone(session, now)
        self._publishers.end(session)
        # Who says goodbye was there until now; whose session ends without a word had gone before.
        ending = "client left" if session.link is not None and reason == "expired" else "session ended"
        for subscription in session.subscriptions.values():
            self.amending.forget(subscription, now)
        subscriptions = self._subscribers.forget(session, reason)
        for subscription in subscriptions:
            if subscription.number not in session.placing:
                self._audit.unsubscribed(subscription, ending)
        self._registry.withdraw(subscriptions, now)
        self._dissemination.forget_plans()

    def violated(self, session: ClientSession, violation: ProtocolViolation, now: float) -> None:
        """It said what the protocol does not allow: it loses its connection."""
        if session.link is not None:
            self._effects.append(Send(session.link, Error(violation.code, Scope.CONNECTION, 0, violation.text)))
            self._effects.append(Close(session.link))
            self._effects.append(Note("connection ended", {"client": session.name, "reason": violation.text}))
            self._subscribers.detach(session, now)
            self._durables.gone(session, now)

    def _refuse(self, session: ClientSession, code: int, scope: Scope, reference: int, text: str) -> None:
        self._say(session, Error(code, scope, reference, text[:ERROR_TEXT_LENGTH_MAX]))

    def _say(self, session: ClientSession, message: Message) -> None:
        if session.link is not None:
            self._effects.append(Send(session.link, message))


def _slow_of(options: dict[str, Any]) -> tuple[str, str]:
    """What gives way when the client is slow, and by what or how far, as in widen:0.5. Raises Refused."""
    kind, colon, of = str(options.get("slow", "drop")).partition(":")
    if kind in ("drop", "conflate") and not colon:
        return kind, ""
    if kind == "conflate" and 0 < len(of.encode()) <= ATTRIBUTE_NAME_BYTES_MAX:
        return kind, of
    if kind == "widen" and _is_positive(of):
        return kind, of
    text = "option slow is drop, conflate, conflate: with the name of an attribute, or widen: with the widest band, as "
    raise Refused(ErrorCode.BAD_REQUEST, text + "in conflate:symbol and widen:0.5")


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _same_wish(one: Subscribe, other: Subscribe) -> bool:
    return (one.pattern, one.condition, one.options) == (other.pattern, other.condition, other.options)


def _check_options(options: dict[str, Any]) -> None:
    """Raises Refused on an option that is unknown, malformed, or not served yet."""
    for name, value in options.items():
        if name not in _OPTIONS:
            raise Refused(ErrorCode.BAD_REQUEST, f"unknown option {name!r}; there are {', '.join(_OPTIONS)}")
        if name in ("exact", "ordered") and type(value) is not bool:
            raise Refused(ErrorCode.BAD_REQUEST, f"option {name} is true or false")
    _slow_of(options)
    if options.get("from", "now") != "now":
        text = "a subscription begins now: leave `from` out, and read the past of a stored stream with READ_LOG"
        raise Refused(ErrorCode.UNSUPPORTED, text)

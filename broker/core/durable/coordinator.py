"""The coordinator of durable subscriptions: who takes part in each, what waits, and when it is settled for good.

A subscription goes through these phases here:

    found      its key is ours and its state was collected (`keeping.py`)
    taken      the next generation is on k disks: its mailbox is made, its feeds begin, clients are let in
    let go     a newer generation is known, or its key is another broker's: its clients are sent there

Whatever a client may rely on is written first. Positions are handed out only below a mark that k disks have
(`Mailbox.reserve`), so that the next coordinator knows which of them may have been seen; an acknowledgement is
confirmed when the cursor behind it is on k disks. One write of a subscription is under way at a time, and all that was
settled meanwhile goes into the next one.

Feeds tell facts about logs (`feeding.py`), from whoever holds them; the mailbox takes what it does not know yet. When
links change the feeds are asked for anew, from where each log is known to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from headgate.matching import (
    MatchingError,
    TopicError,
    deltas,
    extensions,
    parse_condition,
    parse_pattern,
    to_text,
)
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.protocol.data import join_u32, split_u32
from headgate.protocol.errors import ErrorCode, LocalError, Refused

from ..clock import Clock
from ..cluster import Cluster
from ..deferred import Deferred
from ..delivery import Streams
from ..effects import Effect, Note
from ..limits import CLOCKS_APART_SECONDS
from ..log import Log
from ..rights import Policy
from ..safeguards import Safeguard
from ..timers import NEVER, Timers
from .amending import Amendment, Look, formers_of
from .asking import Asking
from .keeping import Keeping
from .limits import (
    AMEND_SECONDS,
    CONDITION_LENGTH_MAX,
    DURABLES_MAX,
    NAME_LENGTH_MAX,
    SECTIONS_MAX,
    SURVEY_SECONDS,
    TAKEN_AT_LEAST,
    TAKEN_AT_ONCE,
    TAKING_SECONDS,
)
from .mailbox import Mailbox
from .messages import (
    SPANS_MAX,
    AskEnds,
    Asks,
    Attach,
    Attached,
    Compare,
    Detach,
    Detached,
    EndFeed,
    Fed,
    Feed,
    FeedPlace,
    FeedSection,
    HandOut,
    Missed,
    Place,
    Settle,
    Settled,
    ToldEnds,
)
from .relay import Relay
from .runs import Run, count_of, join_runs, split_runs
from .state import (
    DeadLetter,
    DurableState,
    Former,
    Section,
    check_options,
    check_settings,
    parse_place,
    parse_positions,
    positions_text,
)
from .tally import Load, Tally
from .watch import DurableWatch

__all__ = ["COORDINATING", "ENDS", "OWNER", "TAKING", "Coordinator"]

COORDINATING = "durable-coordinating"
"""Key of the timer: a mailbox wants to be woken, or an amendment took too long; a queue of its own, by name."""

RECORD_OPTIONS = ("sharing", "ack_wait", "max_deliver", "backoff", "max_unacked", "dead_letter")
"""Options of SUBSCRIBE that are kept with a subscription."""

_ONE_AT_A_TIME = ("exclusive", "failover")
"""How a subscription is shared by clients of which one gets everything, as long as it is there."""

OWNER = "user"
"""The option of an Attach, and the argument of a question, in which a home says whose it is; no client can give it."""

TAKING = "durable-taking"
"""Key of the timer: there were too many subscriptions to take over, or to feed anew, for one input."""

ENDS = "durable-ends"
"""Key of the timer: brokers that were asked where logs end are waited for no longer."""


_Before = TypeVar("_Before", Section, Former)

_TOO_FEW = "too few brokers say where their logs end: try again in a moment"


class _Client(NamedTuple):
    """A client that takes part: its home, and the number that its home gave it."""

    home: int
    number: int


@dataclass(slots=True, eq=False)
class _Survey:
    """Brokers are asked where the logs of a stream end. `then` is told that, and whether so many have answered that
    no k disks are without one of them.
    """

    asked: dict[int, None]
    until: float
    then: Callable[[dict[Place, int], bool, float], None]
    heard: int = 0
    own: dict[Place, int] = field(default_factory=dict)
    copies: dict[Place, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Held:
    """A durable subscription that this broker coordinates, or is about to."""

    name: str
    mailbox: Mailbox | None = None
    feed: int = 0
    clients: dict[_Client, str] = field(default_factory=dict)
    """And what each is called."""
    waiting: dict[_Client, Attach] = field(default_factory=dict)
    """Clients that came before it was taken, or wait until it is written."""
    confirm: list[tuple[_Client, Settled]] = field(default_factory=list)
    """Told when the write that is under way is on k disks."""
    confirm_next: list[tuple[_Client, Settled]] = field(default_factory=list)
    then: list[Callable[[bool, float], None]] = field(default_factory=list)
    then_next: list[Callable[[bool, float], None]] = field(default_factory=list)
    again: bool = False
    missed: int = 0
    """Events that retention took while there was no client to tell."""
    amendment: Amendment | None = None
    fed_by: dict[int, None] = field(default_factory=dict)
    asking: Asking | None = None
    """What it asks of documents; None: nothing."""
    asked: dict[_Client, tuple[str, ...]] = field(default_factory=dict)
    """What clients were told to look for; nothing, where they are not in it."""

    def asks(self, state: DurableState) -> None:
        """It is to ask for what this state does."""
        asking = Asking(state)
        self.asking = asking if asking.is_any else None


class Coordinator:
    """Coordinates the durable subscriptions whose keys are this broker's."""

    def __init__(
        self,
        effects: list[Effect],
        log: Log,
        cluster: Cluster,
        keeping: Keeping,
        relay: Relay,
        streams: Streams,
        clock: Clock,
        timers: Timers,
        work: dict[str, None],
    ) -> None:
        self._work = work
        self._effects = effects
        self._log = log
        self._cluster = cluster
        self._keeping = keeping
        self._relay = relay
        self._streams = streams
        self._clock = clock
        self._timers = timers
        self._queue = timers.below(COORDINATING)
        self._safeguards = cluster.safeguards
        self.held: dict[str, _Held] = {}
        self._client_of: dict[_Client, str] = {}
        self._by_feed: dict[int, str] = {}
        self._looks: dict[int, tuple[_Held, Look]] = {}
        self._surveys: dict[int, _Survey] = {}
        self._numbers = 0
        self._linked: dict[int, int | None] = {}
        self._touched: dict[str, None] = {}
        self._moved: dict[str, tuple[int, ...] | None] = {}
        """Those that are fed by other brokers from now on: by these as well, or, with None, by all anew."""
        self.given_up: list[tuple[DurableState, list[DeadLetter]]] = []
        """Dead letters of subscriptions; the caller takes them out."""
        self.stale = self.handed_out = self.settled = self.dead = self.missed = self.takeovers = 0
        self.tally = Tally(self.load_of)
        self.watch: DurableWatch | None = None
        self._policy: Policy | None = None
        relay.take(
            {
                Attach: self._attach,
                Detach: self._detach,
                Settle: self._settle,
                Fed: self._fed,
                AskEnds: self._ask_ends,
                ToldEnds: self._told_ends,
            }
        )

    def _touch(self, name: str) -> None:
        """Something happened to it: it is gone on with before this input is over."""
        self._touched[name] = None
        self._work["touched"] = None
        self.tally.changed(name)

    # --- taking over and letting go ----------------------------------------------------------------------------------

    def go_on(self, now: float) -> None:
        """What came of the last input: subscriptions to take over or to let go of, events to hand out."""
        if self._keeping.found or self._moved:
            self._take_some(now)
        while self._touched:
            touched, self._touched = self._touched, {}
            for name in touched:
                held = self.held.get(name)
                if held is not None and held.mailbox is not None:
                    self._go_on_with(held, held.mailbox, now)

    def _take_some(self, now: float) -> None:
        """Look at as many as other inputs can wait for."""
        keeping = self._keeping
        # Each that is taken over is written first, and fed when that is confirmed: those count as well.
        steps = max(TAKEN_AT_LEAST, TAKEN_AT_ONCE - keeping.under_way)
        while steps and keeping.found and keeping.is_ready:
            del keeping.found[name := next(iter(keeping.found))]
            self._look_at(name, now)
            steps -= 1
        while steps and self._moved:
            held = self.held.get(name := next(iter(self._moved)))
            came = self._moved.pop(name)
            if held is not None and held.mailbox is not None:
                if came is None or not held.feed:
                    self._feed(held, held.mailbox, now)
                elif came:
                    self._ask_to_feed(held, held.mailbox, came)
                self._top_up(held)
            steps -= 1
        if self._moved or (keeping.found and keeping.is_ready):
            # Sooner when the writes that are under way are confirmed.
            self._timers.by(TAKING, now + (TAKING_SECONDS if keeping.under_way >= TAKEN_AT_ONCE else 0.0))

    def take_more(self, now: float) -> None:
        """Go on with the many that there were to look at."""
        self._timers.at(TAKING, NEVER)
        self._work["more"] = None

    def _look_at(self, name: str, now: float) -> None:
        """Its state is new here, or newer."""
        held = self.held.get(name)
        if not self._keeping.is_ours(name):
            return
        if held is not None and held.mailbox is not None:
            if self._keeping.generation_of(name) > held.mailbox.state.generation:
                self._look_again(held, now)
            return
        state = self._keeping.state_of(name)
        if state is not None and not state.removed and not self._keeping.is_writing(name):  # who writes looks again
            self._take(self._held(name), now)

    def _held(self, name: str) -> _Held:
        held = self.held.get(name)
        if held is None:
            held = self.held[name] = _Held(name)
        return held

    def moved(self, now: float) -> None:
        """Links or neighbours changed: what is another broker's now goes there; who is gone takes no part.

        Who is here now is asked to feed. When a broker is gone, all are asked anew: the others have its logs.
        """
        linked = {info.identifier: info.link for info in self._cluster.linked()}
        gone = self._linked.keys() - linked.keys()
        came = [one for one, link in linked.items() if link != self._linked.get(one)]
        self._linked = linked
        for held in list(self.held.values()):
            if not self._keeping.is_ours(held.name):
                self._let_go(held, "another broker coordinates it now", now)
                self._keeping.find(held.name)
                continue
            if held.mailbox is not None:
                before = self._moved.get(held.name, ())
                anew = gone or before is None
                self._moved[held.name] = None if anew else tuple(dict.fromkeys((*(before or ()), *came)))
                self._work["moved"] = None
        for name in self._keeping.names():
            if name not in self.held:
                self._keeping.find(name)

    def link_down(self, identifier: int, now: float) -> None:
        """A broker cannot be reached: its clients take no part, and it will not say where logs end."""
        for client in [client for client in self._client_of if client.home == identifier]:
            self._detach_client(self.held[self._client_of[client]], client, now)
        for number in [number for number, survey in self._surveys.items() if identifier in survey.asked]:
            self._not_asked(number, identifier, now)

    def _top_up(self, held: _Held) -> None:
        """Too few of the brokers that keep its state can be reached: it is written again, at others."""
        keepers = self._keeping.keepers.get(held.name, {})
        if sum(self._relay.is_here(one) for one in keepers) < self._log.needed:
            held.again = True
            self._touch(held.name)

    def _take(self, held: _Held, now: float) -> None:
        """Write the next generation; when k disks have it, this broker is the coordinator."""
        state = self._keeping.state_of(held.name)
        assert state is not None
        self._fence(held, replace(state, generation=state.generation + 1), True, now)

    def _fence(self, held: _Held, state: DurableState, is_taken: bool, now: float) -> None:
        """Have the next generation kept where nobody can do without it, and begin then."""

        came = tuple(held.waiting)

        def written(done: bool, now: float) -> None:
            if not done or self.held.get(held.name) is not held:
                self._look_again(held, now)
                return
            self.takeovers += is_taken
            self._begin(held, came, now)

        self._keeping.write(state, written, now, fence=True)

    def _begin(self, held: _Held, came: Sequence[_Client], now: float) -> None:
        """It is fenced: nobody else can confirm anything, and all that was confirmed before is known here.

        `came`: clients that waited when the fence was asked for. Of later ones it says nothing.
        """
        state = self._keeping.state_of(held.name)
        assert state is not None
        if state.removed:
            self._let_go(held, f"durable subscription {held.name!r} was removed", now, ErrorCode.NOT_FOUND)
            return
        held.mailbox = Mailbox(replace(state, base=state.generation), now, clock=self._clock)
        held.asks(state)
        self._tell_watch(held, "subscribe")
        self._feed(held, held.mailbox, now)
        self._touch(held.name)
        for client, message in list(held.waiting.items()):
            if client in came:
                self._let_in(held, client, now)
            else:
                self._let_in_when_written(held, client, message)

    def _look_again(self, held: _Held, now: float) -> None:
        """A newer coordinator was at work: collect its state, when the neighbours agree with us."""
        self._let_go(held, "another broker coordinates it now", now)
        self._keeping.anew(now)
        self._keeping.find(held.name)

    def _let_go(self, held: _Held, why: str, now: float, code: ErrorCode = ErrorCode.UNAVAILABLE) -> None:
        self.held.pop(held.name, None)
        self.tally.changed(held.name)
        self._queue.at(held.name, NEVER)
        self._keeping.give_up(held.name)
        if held.feed:
            self._end_feed(held)
        for client in held.clients:
            self._client_of.pop(client, None)
            self._relay.tell(client.home, Detached(client.number, code, why))
        for client in held.waiting:
            self._client_of.pop(client, None)
            self._relay.tell(client.home, Attached(client.number, code, why))
        if held.amendment is not None:
            self._end_amendment(held, Refused(ErrorCode.UNAVAILABLE, why))
        for then in [*held.then, *held.then_next]:
            then(False, now)

    # --- clients -----------------------------------------------------------------------------------------------------

    def _attach(self, home: int, message: Attach, now: float) -> None:
        client, name = _Client(home, message.number), message.name
        try:
            check_options({**message.options, "durable": name})
        except Refused as refused:
            self._relay.tell(home, Attached(message.number, refused.code, refused.text))
            return
        held = self.held.get(name)
        if held is not None and held.mailbox is not None:
            self._let_in_when_written(held, client, message)
            return
        if not self._keeping.is_ours(name) or not self._keeping.is_ready:
            code, text = ErrorCode.UNAVAILABLE, "the brokers have not settled yet who coordinates this subscription"
            if not self._log.available:
                code = ErrorCode.UNSUPPORTED
                text = "durable subscriptions need brokers that keep a log on disk: give this one a --data folder"
            self._relay.tell(home, Attached(message.number, code, text))
            return
        if held is not None:
            held.waiting[client] = message
            self._client_of[client] = name
            return
        if self._keeping.is_writing(name):
            text = "this durable subscription is being removed"
            self._relay.tell(home, Attached(message.number, ErrorCode.UNAVAILABLE, text))
            return
        state = self._keeping.state_of(name)
        if state is not None and not state.removed:
            held = self._held(name)
            held.waiting[client] = message
            self._client_of[client] = name
            self._take(held, now)
            return
        try:
            self._create(client, message, state, now)
        except Refused as refused:
            self._relay.tell(home, Attached(message.number, refused.code, refused.text))

    def _create(self, client: _Client, message: Attach, former: DurableState | None, now: float) -> None:
        """Nobody has that name: it begins now. Raises Refused."""
        if not message.pattern:
            text = f"there is no durable subscription {message.name!r}: say a pattern to begin one"
            raise Refused(ErrorCode.NOT_FOUND, text)
        if len(self.held) >= DURABLES_MAX:
            raise Refused(ErrorCode.LIMIT, f"this broker coordinates its {DURABLES_MAX} durable subscriptions already")
        state = self._wished(message, now)
        if former is not None:
            state = replace(state, version=former.version + 1, rewinds=former.rewinds + 1)
            state = replace(state, generation=former.generation, base=former.base)
        state = replace(state, generation=state.generation + 1)
        held = self._held(message.name)
        held.waiting[client] = message
        self._client_of[client] = message.name

        def begin(starts: dict[Place, int], is_whole: bool, now: float) -> None:
            if self.held.get(held.name) is not held or held.mailbox is not None or self._keeping.is_writing(held.name):
                return  # another coordinator had begun it, and it is taken over
            if start.isdigit():
                try:
                    starts = parse_place(start, starts)
                except Refused as refused:
                    self._let_go(held, refused.text, now, ErrorCode(refused.code))
                    return
            self._fence(held, replace(state, starts={**starts, **state.starts}), False, now)

        start = message.options.get("from", "now")
        # What retention had taken before is not owed; what it takes from then on is told as lost.
        self._survey(state.stream, begin, now, begins=start == "start")

    def _wished(self, message: Attach, now: float) -> DurableState:
        """The state that a client asks for. Raises Refused."""
        exact = message.options.get("exact", False) is True
        pattern, condition = parse_wish(message.pattern, message.condition, exact)
        check_moves(condition, check_settings(message.options).get("sharing", DurableState("").sharing))
        stream = pattern.partition("/")[0]
        if not self._streams.settings_of(stream).stored:
            text = (
                f"stream {stream!r} is kept in memory, and a durable subscription reads logs: make it a stored one with"
            )
            text += f""" `headgate schema put {stream} '{{"durability": "stored"}}'`"""
            raise Refused(ErrorCode.UNSUPPORTED, text)
        start = message.options.get("from", "now")
        starts = {} if start in ("start", "now") or start.isdigit() else parse_positions(start)
        created = 0 if start == "start" else max(1, self._clock.us(now))
        return DurableState(
            message.name,
            stream=stream,
            pattern=pattern,
            exact=exact,
            condition=condition,
            created=created,
            starts=starts,
            owner=_owner_in(message.options),
            **check_settings(message.options),
        )

    def _let_in_when_written(self, held: _Held, client: _Client, message: Attach) -> None:
        """It may have been cut off, and another coordinate: whom it lets in relies on it, so it has to write first."""

        def written(done: bool, now: float) -> None:
            if done:
                self._let_in(held, client, now)

        held.waiting[client] = message
        self._client_of[client] = held.name
        held.then_next.append(written)
        self._touch(held.name)

    def _let_in(self, held: _Held, client: _Client, now: float) -> None:
        """No other broker coordinates it: this client takes part, unless it went while it waited for that."""
        message, mailbox = held.waiting.pop(client, None), held.mailbox
        if message is None:
            return
        assert mailbox is not None
        try:
            self._check_owner(held, mailbox, _owner_in(message.options), now)
            self._check_same(held, mailbox.state, message)
            takeover = message.options.get("takeover", False) is True
            # What its home does not send does not count for the client, so it may need more than it asked for.
            limit = 0 if has_moves(mailbox.state.condition) else int(message.options.get("limit", 0))
            window = min(int(message.options.get("window", mailbox.state.max_unacked)), mailbox.state.max_unacked)
            replaced = mailbox.attach(client, max(1, window), now, takeover, message.client, limit)
        except Refused as refused:
            self._client_of.pop(client, None)
            self._relay.tell(client.home, Attached(client.number, refused.code, refused.text))
            return
        for other in replaced:
            assert isinstance(other, _Client)
            held.clients.pop(other, None)
            held.asked.pop(other, None)
            self._client_of.pop(other, None)
            text = f"client {message.client!r} took over durable subscription {held.name!r}"
            self._relay.tell(other.home, Detached(other.number, ErrorCode.FENCED, text))
        held.clients[client] = message.client
        self._client_of[client] = held.name
        self._tell_to_look(held, client, held.asking.now if held.asking is not None else ())
        if has_moves(mailbox.state.condition):
            self._tell_to_compare(client, mailbox.state)
        self._relay.tell(client.home, Attached(client.number, 0, ""))
        if held.missed:
            self._relay.tell(client.home, Missed(client.number, held.missed, "retention took them"))
            held.missed = 0
        self._touch(held.name)

    def _tell_to_look(self, held: _Held, client: _Client, twigs: tuple[str, ...]) -> None:
        """What a client is handed out from now on has these, if its documents are what it is to be."""
        if held.asked.get(client, ()) != twigs:
            held.asked[client] = twigs
            self._relay.tell(client.home, Asks(client.number, twigs))

    def _tell_to_compare(self, client: _Client, state: DurableState) -> None:
        self._relay.tell(client.home, Compare(client.number, state.stream, state.condition))

    def _compare_anew(self, held: _Held, former: str, state: DurableState) -> None:
        """Its condition is another one: clients begin without references."""
        if has_moves(former) or has_moves(state.condition):
            for client in held.clients:
                self._tell_to_compare(client, state)

    # --- whose it is -------------------------------------------------------------------------------------------------

    def govern(self, policy: Policy, now: float) -> None:
        """Rights may be others: what owners may not read any more is not fed, and its clients are let go of."""
        former, self._policy = self._policy, policy
        for held in self.held.values():
            mailbox = held.mailbox
            if mailbox is None:
                continue
            rights = policy.rights_of(mailbox.state.owner)
            if rights is not None and former is not None and rights.is_as(former.rights_of(mailbox.state.owner)):
                continue
            try:
                before: Any = _allowed(mailbox.state, former)
            except Refused:
                before = None
            try:
                if _allowed(mailbox.state, policy) != before:
                    self._tell_watch(held, "subscribe")
                    self._feed(held, mailbox, now)
                    self._touch(held.name)
            except Refused as refused:
                self._end_feed(held)
                for client in list(held.clients):
                    self._relay.tell(client.home, Detached(client.number, refused.code, refused.text))
                    self._detach_client(held, client, now)

    def check_owner(self, arguments: dict[str, Any], now: float) -> None:
        """Raises Refused when a user asks about a durable subscription of another user."""
        user = _owner_in(arguments)
        if user:
            held, mailbox = self._running(arguments.get("name"))
            self._check_owner(held, mailbox, user, now)

    def _check_owner(self, held: _Held, mailbox: Mailbox, user: str, now: float) -> None:
        state = mailbox.state
        if self._policy is None or user == state.owner:
            if self._policy is not None:
                _allowed(state, self._policy)
            return
        if state.owner or not user:
            raise Refused(
                ErrorCode.FORBIDDEN, f"durable subscription {held.name!r} is another user's: take another name"
            )
        # It is from before anybody was named: the first who may have the name has it.
        mine = replace(state, owner=user, version=state.version + 1)
        _allowed(mine, self._policy)
        mailbox.state, mailbox.dirty = mine, True
        self._feed(held, mailbox, now)
        self._touch(held.name)

    def _check_same(self, held: _Held, state: DurableState, message: Attach) -> None:
        """Raises Refused when a client asks for something else under a name that there is."""
        if message.pattern:
            exact = message.options.get("exact", False) is True
            pattern, condition = parse_wish(message.pattern, message.condition, exact)
            if (pattern, condition, exact) != (state.pattern, state.condition, state.exact):
                where = f" WHERE {state.condition}" if state.condition else ""
                text = f"durable subscription {held.name!r} is {state.pattern!r}{where}: change its condition with "
                text += "`headgate durable set`, remove it with `headgate durable rm`, or take another name"
                raise Refused(ErrorCode.DUPLICATE, text)
        for option, value in check_settings(message.options).items():
            if value != getattr(state, option):
                text = f"durable subscription {held.name!r} has {option} {getattr(state, option)!r}, not {value!r}: "
                raise Refused(ErrorCode.DUPLICATE, text + "change it with `headgate durable set`")

    def _detach(self, home: int, message: Detach, now: float) -> None:
        client = _Client(home, message.number)
        held = self.held.get(self._client_of.get(client, ""))
        if held is not None:
            self._detach_client(held, client, now)

    def _detach_client(self, held: _Held, client: _Client, now: float) -> None:
        self._client_of.pop(client, None)
        held.waiting.pop(client, None)
        held.asked.pop(client, None)
        if held.clients.pop(client, None) is not None and held.mailbox is not None:
            held.mailbox.detach(client, now)
            self._touch(held.name)

    def _settle(self, home: int, message: Settle, now: float) -> None:
        client = _Client(home, message.number)
        held = self.held.get(self._client_of.get(client, ""))
        if held is None or held.mailbox is None:
            return
        delay = None if message.milliseconds is None else message.milliseconds / 1000
        before = held.mailbox.settled
        stale = held.mailbox.settle(client, message.verb, list(message.spans), delay, message.text, now)
        if Safeguard.CURRENT_ACKS not in self._safeguards:
            stale = []
        self.stale += len(stale) // 2
        if len(stale) > SPANS_MAX:  # nothing is confirmed that was not done
            stale[SPANS_MAX - 1 :] = stale[-1:]
        self.settled += held.mailbox.settled - before
        if message.request:
            held.confirm_next.append((client, Settled(message.number, message.request, tuple(stale))))
        self._touch(held.name)

    # --- handing out and writing -------------------------------------------------------------------------------------

    def _go_on_with(self, held: _Held, mailbox: Mailbox, now: float) -> None:
        if held.amendment is None:
            for out in mailbox.hand_out(now):
                assert isinstance(out.client, _Client)
                before = 0
                parts = (((), out.runs),) if held.asking is None else held.asking.parts(out.place, out.runs)
                for asks, runs in parts:
                    self._tell_to_look(held, out.client, asks)
                    count = count_of(runs)
                    message = HandOut(
                        out.client.number,
                        out.first + before,
                        join_u32(out.counts[before : before + count]) if out.counts else b"",
                        mailbox.state.stream,
                        out.place,
                        join_runs(runs),
                        int(mailbox.state.ack_wait * 1000),
                    )
                    before += count
                    self._relay.tell(out.client.home, message)
                self.handed_out += before
        missed = mailbox.take_missed()
        if missed:
            self._lost(held, missed, "retention took events that were to be handed out again")
        letters = mailbox.take_dead()
        if letters:
            self.dead += len(letters)
            self.given_up.append((mailbox.state, letters))
        if held.feed and not mailbox.wants_feed:
            self._end_feed(held)
        elif not held.feed and mailbox.wants_feed:
            self._feed(held, mailbox, now)
        reserve = mailbox.reserve()
        if reserve or mailbox.dirty or held.again or held.confirm_next or held.then_next:
            self._write(held, mailbox, now)
        self._set_timer(held)

    def _write(self, held: _Held, mailbox: Mailbox, now: float) -> None:
        if self._keeping.is_writing(held.name):
            held.again = True
            return
        held.again = False
        snapshot = mailbox.snapshot()
        held.confirm, held.confirm_next = held.confirm_next, []
        held.then, held.then_next = held.then_next, []

        def written(done: bool, now: float) -> None:
            if not done or self.held.get(held.name) is not held:
                self._look_again(held, now)
                return
            mailbox.written(snapshot)
            confirm, held.confirm = held.confirm, []
            for client, message in confirm:
                self._relay.tell(client.home, message)
            then, held.then = held.then, []
            for one in then:
                one(True, now)
            self._touch(held.name)

        try:
            self._keeping.write(snapshot, written, now)
        except LocalError as error:  # nothing is confirmed before what is owed is less
            self._effects.append(Note("state too large", {"name": held.name, "reason": str(error)}, alarming=True))
            mailbox.dirty = True
            held.confirm, held.confirm_next = [], held.confirm
            held.then, held.then_next = [], held.then
            for client in list(held.waiting):
                self._let_in(held, client, now)  # or no client could make it less

    def _set_timer(self, held: _Held) -> None:
        deadline = NEVER if held.mailbox is None else held.mailbox.next_deadline()
        if held.amendment is not None:
            deadline = min(deadline, held.amendment.until)
        self._queue.at(held.name, deadline)

    def wake(self, now: float) -> None:
        """The time of some subscriptions has come."""
        for name in self._queue.due(now):
            held = self.held.get(str(name))
            if held is None or held.mailbox is None:
                continue
            held.mailbox.wake(now)
            if held.amendment is not None and held.amendment.until <= now:
                text = "brokers that have logs of this stream did not answer: try again in a moment"
                self._end_amendment(held, Refused(ErrorCode.UNAVAILABLE, text))
            self._touch(held.name)

    # --- feeds -------------------------------------------------------------------------------------------------------

    def _feed(self, held: _Held, mailbox: Mailbox, now: float) -> None:
        """Ask every broker for what matches, from where each log is known to."""
        if held.feed:
            self._end_feed(held)
        if not mailbox.wants_feed:
            return
        try:
            _allowed(mailbox.state, self._policy)
        except Refused:
            return  # until its owner may read it again
        self._numbers += 1
        held.feed = self._numbers
        self._by_feed[held.feed] = held.name
        self._ask_to_feed(held, mailbox, self._everybody())

    def _everybody(self) -> list[int]:
        """This broker and those that there is a link to."""
        return [self._cluster.me, *(info.identifier for info in self._cluster.linked())]

    def _ask_to_feed(self, held: _Held, mailbox: Mailbox, brokers: Iterable[int]) -> None:
        state = mailbox.state
        message = self._feed_of(held.feed, state, {**state.starts, **mailbox.places()})
        for identifier in brokers:
            held.fed_by[identifier] = None
            self._relay.tell(identifier, message)

    def _feed_of(self, number: int, state: DurableState, places: dict[Place, int]) -> Feed:
        """What a feed of that state asks for, from these places on."""
        present = tuple(sorted((self._cluster.config.name, *(info.name for info in self._cluster.linked()))))
        key = state.sharing.partition(":")[2]
        since = max(0, state.created - int(CLOCKS_APART_SECONDS * 1e6)) if state.created else 0
        return Feed(
            number,
            state.stream,
            *_allowed(state, self._policy),
            tuple(FeedSection(one.condition, _places(one.ends)) for one in state.sections),
            key,
            since,
            _places(places),
            present,
        )

    def _end_feed(self, held: _Held) -> None:
        self._by_feed.pop(held.feed, None)
        for one in held.fed_by:
            self._relay.tell(one, EndFeed(held.feed))
        held.feed, held.fed_by = 0, {}

    def _fed(self, teller: int, message: Fed, now: float) -> None:
        runs = split_runs(message.runs)
        if message.number in self._looks:
            self._looked(message, runs, now)
            return
        held = self.held.get(self._by_feed.get(message.number, ""))
        if held is None or held.mailbox is None:
            self._relay.tell(teller, EndFeed(message.number))
            return
        keys = split_u32(message.keys) if message.keys else ()
        lost = held.mailbox.fed(
            message.place, message.first, message.start, message.upto, runs, keys, message.time, now
        )
        if lost:
            log = f"{message.place.broker}@{message.place.epoch}"
            self._lost(held, lost, f"retention took events of log {log} before position {message.first}")
        self._touch(held.name)

    def _lost(self, held: _Held, lost: int, reason: str) -> None:
        facts = {"name": held.name, "events": lost, "reason": reason}
        self._effects.append(Note("durable subscription lost events", facts, alarming=True))
        self.missed += lost
        self._tell_watch(held, "gap", f"{lost} lost: retention took them")
        for client in held.clients:
            self._relay.tell(client.home, Missed(client.number, lost, reason))
        if not held.clients:
            held.missed += lost

    def tell_watch(self, stream: str, action: str, reason: str = "") -> None:
        """The stream is audited from now on, or no more: tell of all its subscriptions here."""
        for held in self.held.values():
            if held.mailbox is not None and held.mailbox.state.stream == stream:
                self._tell_watch(held, action, reason)

    def _tell_watch(self, held: _Held, action: str, reason: str = "") -> None:
        if self.watch is None or held.mailbox is None:
            return
        state = held.mailbox.state
        try:
            pattern, exact, condition = _allowed(state, self._policy)
        except Refused:
            pass  # what its owner may not read any more is as it was
        else:
            state = replace(state, pattern=pattern, exact=exact, condition=condition)
        self.watch.wanted(state, action, reason)

    # --- where logs end ----------------------------------------------------------------------------------------------

    def _survey(
        self, stream: str, then: Callable[[dict[Place, int], bool, float], None], now: float, begins: bool = False
    ) -> None:
        """Where the logs of a stream end, or begin, as far as brokers can be reached."""
        self._numbers += 1
        asked = dict.fromkeys(self._everybody())
        self._surveys[self._numbers] = _Survey(asked, now + SURVEY_SECONDS, then)
        self._timers.by(ENDS, now + SURVEY_SECONDS)
        for identifier in list(asked):
            self._relay.tell(identifier, AskEnds(self._numbers, stream, begins))

    def _ask_ends(self, teller: int, message: AskEnds, now: float) -> None:
        # Not the high watermark: who starts again knows it late, and copies hear of it late. Nor what is here alone: a
        # broker that was the only one has acknowledged what nobody else has copied yet.
        logs = self._log.by_stream.get(message.stream, ())
        ends = ((held.name, held.first if message.begins else held.known) for held in logs)
        places = tuple(FeedPlace(name.broker, name.epoch, end) for name, end in ends)
        self._relay.tell(teller, ToldEnds(message.number, self._cluster.config.name, places))

    def _told_ends(self, teller: int, message: ToldEnds, now: float) -> None:
        survey = self._surveys.get(message.number)
        if survey is None or teller not in survey.asked:
            return
        for broker, epoch, end in message.places:
            place = Place(broker, epoch)
            if broker == message.broker:
                survey.own[place] = end
            else:
                survey.copies[place] = max(end, survey.copies.get(place, 0))
        survey.heard += 1
        self._not_asked(message.number, teller, now)

    def _not_asked(self, number: int, identifier: int, now: float) -> None:
        survey = self._surveys[number]
        survey.asked.pop(identifier, None)
        if not survey.asked:
            del self._surveys[number]
            survey.then({**survey.copies, **survey.own}, self._keeping.is_enough(survey.heard, now), now)

    def give_up_surveys(self, now: float) -> None:
        """Who has not answered is not waited for."""
        for number, survey in list(self._surveys.items()):
            if survey.until <= now:
                for one in list(survey.asked):
                    self._not_asked(number, one, now)
        self._timers.at(ENDS, min((survey.until for survey in self._surveys.values()), default=NEVER))

    # --- changing it while it runs -----------------------------------------------------------------------------------

    def change(self, wish: dict[str, Any], now: float) -> Deferred:
        """`durable set`: another condition, or other settings of delivery. Raises Refused."""
        held, mailbox = self._running(wish.get("name"))
        start = wish.get("from", "ack")
        if start not in ("ack", "now"):
            raise Refused(ErrorCode.BAD_REQUEST, "durable set: `from` is ack or now")
        settings = {key: value for key, value in wish.items() if key not in ("at", "name", "where", "from", OWNER)}
        unknown = [key for key in settings if key not in RECORD_OPTIONS]
        if unknown:
            text = f"durable set: unknown setting {unknown[0]!r}; there are where, from, {', '.join(RECORD_OPTIONS)}"
            raise Refused(ErrorCode.BAD_REQUEST, text)
        changes = check_settings(settings)
        if settings.get("sharing", mailbox.state.sharing) != mailbox.state.sharing:
            raise Refused(ErrorCode.UNSUPPORTED, "the sharing of a durable subscription stays as it is")
        condition = mailbox.state.condition
        if "where" in wish:
            if type(wish["where"]) is not str:
                raise Refused(ErrorCode.BAD_REQUEST, "durable set: `where` is a condition")
            _, condition = parse_wish(mailbox.state.pattern, wish["where"], mailbox.state.exact)
            for one in (condition, mailbox.state.condition):  # both are looked for in the logs
                _allowed(replace(mailbox.state, condition=one), self._policy)
            check_moves(condition, mailbox.state.sharing)
            changes["condition"] = condition

        def changed() -> DurableState:
            return replace(mailbox.state, version=mailbox.state.version + 1, **changes)

        deferred = Deferred()
        if condition == mailbox.state.condition:
            mailbox.state, mailbox.dirty = changed(), True
            self._when_written(held, deferred, now)
            return deferred
        if start == "now":

            def ends(found: dict[Place, int], is_whole: bool, now: float) -> None:
                if not self._runs_still(held, mailbox, deferred):
                    return
                if not is_whole:
                    deferred.say(Refused(ErrorCode.UNAVAILABLE, _TOO_FEW))
                    return
                past = {**mailbox.places(), **found}  # a log that nobody has ends where it was fed to
                sections = (*_still(mailbox.state, mailbox), Section(mailbox.state.condition, past))
                size = sum(len(one.condition) for one in sections)
                if len(sections) > SECTIONS_MAX or size > 2 * CONDITION_LENGTH_MAX:
                    text = f"{SECTIONS_MAX} changes of the condition are still waited for: take `from ack`, or wait"
                    deferred.say(Refused(ErrorCode.LIMIT, text))
                    return
                held_back = sections if Safeguard.AMEND_AT_POINT in self._safeguards else ()
                former = formers_of(mailbox.snapshot())
                mailbox.dirty = True  # that one is not written
                now_state = replace(changed(), sections=held_back, former=former)
                if not Asking(now_state).fits:
                    text = "this condition and former ones that are still waited for ask too much of documents: "
                    deferred.say(Refused(ErrorCode.LIMIT, text + "take `from ack`, or wait"))
                    return
                self._put_in_force(held, mailbox, now_state, {}, None, now)
                self._when_written(held, deferred, now)

            self._survey(mailbox.state.stream, ends, now)
            return deferred
        self._amend(held, mailbox, replace(changed(), sections=()), deferred, now)
        return deferred

    def _runs_still(self, held: _Held, mailbox: Mailbox, deferred: Deferred) -> bool:
        """Whether it is coordinated here as before, and not being changed; else that is the answer."""
        try:
            if self._running(held.name)[1] is mailbox:
                return True
            deferred.say(Refused(ErrorCode.UNAVAILABLE, "another broker coordinates it now: try again"))
        except Refused as refused:
            deferred.say(refused)
        return False

    def _amend(self, held: _Held, mailbox: Mailbox, changed: DurableState, deferred: Deferred, now: float) -> None:
        """Find what the new condition adds of what was passed already, from what is acknowledged on."""
        snapshot = mailbox.snapshot()
        mailbox.dirty = True  # this one is not written
        starts = {place: cursor.owed[0][0] for place, cursor in snapshot.cursors.items() if cursor.owed}
        ends = {place: snapshot.cursors[place].upto for place in starts}
        owed = {place: list(snapshot.cursors[place].owed) for place in starts}
        changed = replace(changed, former=formers_of(snapshot))
        looks = [self._look(changed, ends, starts)]
        for one in changed.former:
            before = {
                place: min(one.ends[place], ends[place]) for place in starts if one.ends.get(place, 0) > starts[place]
            }
            if not before:
                continue
            asked = replace(snapshot, condition=one.condition, sections=one.sections)
            try:
                looks.append(self._look(asked, before, starts))
            except Refused:
                continue  # too long with what rights say by now: what it handed out may come again, flagged
        new, *former = [look for look, _ in looks]
        held.amendment = Amendment(changed, owed, new, former, now + AMEND_SECONDS, deferred)
        if not starts:
            self._amended(held, now)
            return
        self._set_timer(held)
        for look, message in looks:
            self._looks[look.number] = held, look
            for identifier in self._everybody():
                self._relay.tell(identifier, message)

    def _look(self, state: DurableState, ends: dict[Place, int], starts: Mapping[Place, int]) -> tuple[Look, Feed]:
        """Which positions from these starts up to these ends match a state, and the question. Raises Refused."""
        self._numbers += 1
        covered = {place: starts[place] for place in ends}
        message = self._feed_of(self._numbers, replace(state, created=1 << 52), dict(covered))
        return Look(self._numbers, ends, covered), message

    def _looked(self, message: Fed, runs: list[Run], now: float) -> None:
        held, look = self._looks[message.number]
        look.hear(message, runs)
        if held.amendment is not None and all(one.is_done for one in held.amendment.looks):
            self._amended(held, now)

    def _amended(self, held: _Held, now: float) -> None:
        amendment, mailbox = held.amendment, held.mailbox
        assert amendment is not None and mailbox is not None
        added, keys = amendment.added(mailbox.snapshot().cursors)
        self._end_looks(held)
        self._put_in_force(held, mailbox, amendment.state, added, keys, now)
        self._when_written(held, amendment.deferred, now)

    def _put_in_force(
        self,
        held: _Held,
        mailbox: Mailbox,
        state: DurableState,
        added: Mapping[Place, Sequence[Run]],
        keys: Mapping[Place, Sequence[int]] | None,
        now: float,
    ) -> None:
        """From now on it is this."""
        former = mailbox.state.condition
        mailbox.amended(state, added, keys)
        held.asks(mailbox.state)
        self._compare_anew(held, former, mailbox.state)
        self._tell_watch(held, "subscribe")
        self._feed(held, mailbox, now)

    def _end_looks(self, held: _Held) -> None:
        amendment, held.amendment = held.amendment, None
        if amendment is not None:
            for look in amendment.looks:
                self._looks.pop(look.number, None)
                for identifier in self._everybody():
                    self._relay.tell(identifier, EndFeed(look.number))

    def _end_amendment(self, held: _Held, refused: Refused) -> None:
        amendment = held.amendment
        self._end_looks(held)
        if amendment is not None:
            amendment.deferred.say(refused)

    def _when_written(self, held: _Held, deferred: Deferred, now: float) -> None:
        def written(done: bool, now: float) -> None:
            text = "another broker coordinates it now, and it is not known whether this was kept: look, and try again"
            row = None if held.mailbox is None else self.row_of(held, now)
            deferred.say(row if done else Refused(ErrorCode.UNAVAILABLE, text))

        held.then_next.append(written)
        self._touch(held.name)

    def seek(self, wish: dict[str, Any], now: float) -> Deferred:
        """`durable seek`: go on from another place, whatever was acknowledged. Raises Refused.

        From there on the condition of now holds, whatever held there before it was changed.
        """
        held, mailbox = self._running(wish.get("name"))
        to = wish.get("to")
        if type(to) is not str:
            raise Refused(ErrorCode.BAD_REQUEST, "durable seek: `to` is start, now or positions")
        deferred = Deferred()

        def go(cursors: dict[Place, int] | None, is_whole: bool, now: float) -> None:
            if not self._runs_still(held, mailbox, deferred):
                return
            if not is_whole:
                deferred.say(Refused(ErrorCode.UNAVAILABLE, _TOO_FEW))
                return
            version = mailbox.state.version + 1
            if cursors is None:
                mailbox.state = replace(mailbox.state, created=0, starts={})
                cursors = dict.fromkeys(mailbox.places(), 0)
            sections, former = _beside(mailbox.state.sections, cursors), _beside(mailbox.state.former, cursors)
            mailbox.state = replace(mailbox.state, version=version, sections=sections, former=former)
            held.asks(mailbox.state)
            mailbox.seek(cursors)
            self._tell_watch(held, "unsubscribe", "it went on from another place")
            self._tell_watch(held, "subscribe")
            self._feed(held, mailbox, now)
            self._when_written(held, deferred, now)

        if to == "start":
            go(None, True, now)
        elif to == "now":
            self._survey(mailbox.state.stream, go, now)
        else:
            places = parse_place(to, mailbox.places())
            go(places, True, now)
        return deferred

    def remove(self, wished: Any, now: float) -> Deferred:
        """`durable rm`: it is over, for all. Raises Refused."""
        held, mailbox = self._running(wished)
        name = held.name
        if self._keeping.is_writing(name):
            self._keeping.give_up(name)
        before = mailbox.snapshot()
        self._tell_watch(held, "unsubscribe")
        state = replace(
            DurableState(name, stream=before.stream, pattern=before.pattern),
            version=before.version + 1,
            generation=before.generation,
            coordinator=before.coordinator,
            base=before.base,
            rewinds=before.rewinds + 1,
            removed=True,
        )
        deferred = Deferred()
        self._let_go(held, f"durable subscription {name!r} was removed", now, ErrorCode.NOT_FOUND)

        def written(done: bool, now: float) -> None:
            text = "another broker coordinates it now, and it is not known whether it is removed: look, and try again"
            deferred.say({"removed": name} if done else Refused(ErrorCode.UNAVAILABLE, text))
            if not done:
                self._keeping.anew(now)
                self._keeping.find(name)

        self._keeping.write(state, written, now)
        return deferred

    def replay_dead(self, wish: dict[str, Any], now: float) -> Deferred:
        """`dead replay`: dead letters wait again, those at these `places` of logs or all. Raises Refused."""
        held, mailbox = self._running(wish.get("name"))
        deferred = Deferred()
        chosen: dict[tuple[Place, int], None] | None = None
        if not wish.get("all"):
            places = [item for one in _listed(wish.get("places")) for item in parse_positions(str(one)).items()]
            chosen = dict.fromkeys(places)
        count = mailbox.replay_dead(lambda one: chosen is None or (one.place, one.position) in chosen)

        def written(done: bool, now: float) -> None:
            refused = Refused(ErrorCode.UNAVAILABLE, "another broker coordinates it now: look, and try again")
            deferred.say({"replayed": count} if done else refused)

        held.then_next.append(written)
        self._touch(held.name)
        return deferred

    def _running(self, name: Any) -> tuple[_Held, Mailbox]:
        if type(name) is not str:
            raise Refused(ErrorCode.BAD_REQUEST, "say the `name` of a durable subscription")
        held = self.held.get(name)
        if held is not None and held.mailbox is not None:
            if held.amendment is not None:
                raise Refused(ErrorCode.UNAVAILABLE, f"{name!r} is being changed: try again in a moment")
            return held, held.mailbox
        state = self._keeping.state_of(name)
        if self._keeping.is_ready and (state is None or state.removed):
            text = f"there is no durable subscription {name!r}: `headgate durable list` shows them all"
            raise Refused(ErrorCode.NOT_FOUND, text)
        text = f"durable subscription {name!r} is on its way to another coordinator: try again in a moment"
        raise Refused(ErrorCode.UNAVAILABLE, text)

    # --- looking -----------------------------------------------------------------------------------------------------

    def rows(self, after: str, now: float, user: str = "") -> Iterable[dict[str, Any]]:
        """Those that are coordinated here, by name, from behind that name on; of one user, or all."""
        for name in sorted(name for name in self.held if name > after):
            held = self.held[name]
            if held.mailbox is not None and user in ("", held.mailbox.state.owner):
                yield self.row_of(held, now)

    def load_of(self, name: str) -> Load | None:
        """How much waits for it, if it is coordinated here."""
        held = self.held.get(name)
        if held is None or held.mailbox is None:
            return None
        mailbox = held.mailbox
        return Load(mailbox.waiting, mailbox.unacked, mailbox.redelivered, len(held.clients))

    def oldest_seconds(self, name: str, now: float) -> float:
        """How long the oldest event waits of one that is coordinated here."""
        mailbox = self.held[name].mailbox
        return 0.0 if mailbox is None else mailbox.oldest_seconds(self._clock.us(now))

    def busiest(self, most: int) -> list[str]:
        """Names of so many that are coordinated here, first those for which most waits."""
        found = dict.fromkeys(self.tally.busiest(most))
        for name in self.held:
            if len(found) >= most:
                break
            found[name] = None
        return list(found)

    def row(self, name: Any, now: float) -> dict[str, Any]:
        """One of them, with who keeps its state, and how far each log is fed. Raises Refused."""
        held, mailbox = self._running(name)
        keepers = [self._cluster.peers.by_identifier.get(one) for one in self._keeping.keepers.get(held.name, {})]
        settled = mailbox.position()
        return {
            **self.row_of(held, now),
            "keepers": [self._cluster.config.name, *(info.name for info in keepers if info is not None)],
            "logs": [
                {"log": f"{place.broker}@{place.epoch}", "settled": settled.get(place, fed), "fed": fed}
                for place, fed in sorted(mailbox.places().items())
            ],
            "sections": [
                {"condition": one.condition, "before": positions_text(one.ends)}
                for one in _still(mailbox.state, mailbox)
            ],
        }

    def dead_of(self, name: Any) -> list[dict[str, Any]]:
        """Its dead letters. Raises Refused."""
        _, mailbox = self._running(name)
        return [
            {
                "place": f"{one.place.broker}@{one.place.epoch}:{one.position}",
                "stream": mailbox.state.stream,
                "delivered": one.delivered,
                "reason": one.reason,
                "time": one.time,
            }
            for one in mailbox.state.dead
        ]

    def row_of(self, held: _Held, now: float) -> dict[str, Any]:
        """What people see of it."""
        mailbox = held.mailbox
        assert mailbox is not None
        state = mailbox.state
        return {
            "name": held.name,
            "stream": state.stream,
            "pattern": state.pattern,
            "exact": state.exact,
            "condition": state.condition,
            "sharing": state.sharing,
            "clients": sorted(held.clients.values()),
            "waiting": mailbox.waiting,
            "unacked": mailbox.unacked,
            "redelivered": mailbox.redelivered,
            "oldest_seconds": mailbox.oldest_seconds(self._clock.us(now)),
            "position": positions_text(mailbox.position()),
            "dead": len(state.dead),
            "ack_wait": state.ack_wait,
            "max_deliver": state.max_deliver,
            "backoff": list(state.backoff),
            "max_unacked": state.max_unacked,
            "dead_letter": state.dead_letter,
            **({"owner": state.owner} if state.owner else {}),
            "version": state.version,
            "generation": state.generation,
            "coordinator": self._cluster.config.name,
        }

    def validate(self) -> None:
        """Mailboxes are sound, and clients and feeds lead to them."""
        for name, held in self.held.items():
            assert held.name == name
            if held.mailbox is not None:
                held.mailbox.validate()
                asking = Asking(held.mailbox.state)
                assert asking == held.asking if asking.is_any else held.asking is None
            assert not held.feed or self._by_feed[held.feed] == name
            for client in [*held.clients, *held.waiting]:
                assert self._client_of[client] == name
        for client, name in self._client_of.items():
            assert client in self.held[name].clients or client in self.held[name].waiting
        assert not self._touched
        self.tally.validate(self.held)


def _owner_in(options: dict[str, Any]) -> str:
    owner = options.get(OWNER, "")
    return owner if type(owner) is str and len(owner) <= NAME_LENGTH_MAX else ""


def _allowed(state: DurableState, policy: Policy | None) -> tuple[str, bool, str]:
    """Pattern, exact and condition of what its owner may have of it. Raises Refused when that is nothing."""
    if policy is None:
        return state.pattern, state.exact, state.condition
    rights = policy.rights_of(state.owner)
    if rights is None:
        text = f"durable subscription {state.name!r} has no owner any more: whoever may have the name subscribes anew"
        raise Refused(ErrorCode.FORBIDDEN, text)
    rights.check_durable(state.name)
    condition = parse_condition(state.condition) if state.condition else None
    narrowed = rights.narrow(parse_pattern(state.pattern, exact=state.exact), condition)
    return str(narrowed.pattern), narrowed.pattern.exact, narrowed.text


def _places(places: dict[Place, int]) -> tuple[FeedPlace, ...]:
    return tuple(FeedPlace(place.broker, place.epoch, position) for place, position in sorted(places.items()))


def _still(state: DurableState, mailbox: Mailbox) -> tuple[Section, ...]:
    """Its sections that positions still have to pass."""
    position = mailbox.position()
    return tuple(one for one in state.sections if any(position.get(place, 0) < end for place, end in one.ends.items()))


def _beside(sections: Iterable[_Before], places: Iterable[Place]) -> tuple[_Before, ...]:
    """What is left of sections, or former conditions, where it is gone on from other places: there the condition of
    now applies alone.
    """
    gone = dict.fromkeys(places)
    left = (one._replace(ends={place: end for place, end in one.ends.items() if place not in gone}) for one in sections)
    return tuple(one for one in left if one.ends)


def _listed(places: Any) -> list[Any]:
    if type(places) is not list or not places:
        raise Refused(ErrorCode.BAD_REQUEST, "dead_replay: say `all`, or `places` such as ann@1763492000:120 in a list")
    return places


def parse_wish(pattern: str, condition: str, exact: bool) -> tuple[str, str]:
    """A pattern and a condition in their one form. Raises Refused."""
    if len(condition) > CONDITION_LENGTH_MAX:
        text = f"the condition of a durable subscription has at most {CONDITION_LENGTH_MAX} characters"
        raise Refused(ErrorCode.BAD_CONDITION, text)
    try:
        parsed = parse_pattern(pattern, exact=exact)
        tree = parse_condition(condition) if condition.strip() else None
    except TopicError as error:
        raise Refused(ErrorCode.BAD_PATTERN, str(error)) from error
    except MatchingError as error:
        raise Refused(ErrorCode.BAD_CONDITION, str(error)) from error
    if tree is not None and deltas(tree) and len(extensions(tree)) > len(deltas(tree)):
        text = "DELTA beside XPATH: the subscriber decides that one, and DELTA would compare with what it left"
        raise Refused(ErrorCode.UNSUPPORTED, f"{text}: use two subscriptions")
    return str(parsed), to_text(tree) if tree is not None else ""


def has_moves(condition: str) -> bool:
    """Whether a condition, as it is kept, has DELTA."""
    return bool(condition) and bool(deltas(parse_condition(condition, CANONICAL_BYTES_MAX)))


def check_moves(condition: str, sharing: str) -> None:
    """Raises Refused where DELTA has nothing to compare with: what one client was sent, another one does not have."""
    if sharing not in _ONE_AT_A_TIME and has_moves(condition):
        text = (
            f"DELTA compares with what the client was sent last, and with sharing {sharing} others were sent the rest: "
        )
        raise Refused(ErrorCode.UNSUPPORTED, text + "take sharing exclusive or failover, or leave DELTA out")

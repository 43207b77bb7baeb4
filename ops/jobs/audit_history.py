"""The history of subscriptions: the log of subscriptions as spans of time in which each was in force.

Times are microseconds, each by the clock of the broker that wrote it. A subscription has spans, and a span has two
rings:

      possible_from    near_from  sure_from            sure_to  near_to      possible_to
    - - - |- - - - - - - -|- - - - - - -|======================|- - - - -|- - - - - - |- - - - >
     wrong     may come         near        owed: lost if missing   near    may come      wrong

The inner ring is what the subscriber was certainly owed. *Near* is the time in which the cluster learnt of the change,
or the brokers' clocks may differ: there an event may be delivered or not, and what is missing is counted as boundary.
Farther out an event may still come, because it had to wait somewhere, and nobody misses it. Beyond the outer ring a
delivery is wrong even if the condition holds. A subscription that was *asked* for, and of which the log does not say
that it ever was in force, has an outer ring alone.

**How a span ends** says how wide its end is. Whoever unsubscribed is owed everything until then. When a session ended,
its connection had been gone for some seconds. And when a broker died, nobody wrote the moment down: it was after the
last row that this life of the broker left in any log (its *evidence*), so nothing later is owed by it.

**A durable subscription** outlives brokers and clients, and its lines name it and no broker. What matches its condition
is owed from the moment on from which that is its condition, until it is acknowledged; what matches a former condition
may come, and so may what was published before, for a subscription can be set back to the start of its logs.

**A death disturbs others**: what was on its way through that broker, or waited for its answer, may be missing with
anybody, and they were told so by a GAP. `disturbances` are the times around deaths. A GAP that names no events but a
subscription is its own `Gap`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.matching.errors import MatchingError
from headgate.matching.topics import Pattern, parse_pattern
from headgate.matching.tree import Delta, Tree, XPath, extensions

from .audit_limits import ANSWER_SECONDS, BOUNDARY_SECONDS, CRASH_SECONDS, GAP_SECONDS, OUTSIDE_SECONDS, SESSION_SECONDS
from .audit_text import condition_tree

__all__ = [
    "Bounds",
    "Change",
    "Disturbance",
    "Gap",
    "History",
    "Span",
    "Wanted",
    "origin_of",
    "read_history",
    "twigs_of",
]

FOREVER: Final = 2**62
"""Later than any clock says, and far enough from the end of 64 bits to be added to."""

DURABLE: Final = "durable"
"""Stands for the life of a broker in the ids of durable subscriptions."""

RESTARTED: Final = "broker restarted"
SESSION_ENDED: Final = "session ended"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much the edges of spans are blurred, in microseconds."""

    boundary: int = int(BOUNDARY_SECONDS * 1e6)
    outside: int = int(OUTSIDE_SECONDS * 1e6)
    session: int = int(SESSION_SECONDS * 1e6)
    crash: int = int(CRASH_SECONDS * 1e6)
    gap: int = int(GAP_SECONDS * 1e6)
    answer: int = int(ANSWER_SECONDS * 1e6)


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the log of subscriptions. `action` is "asked", "subscribe", "unsubscribe", "gap", "damaged" or
    "restarted".
    """

    subscription: str
    action: str
    effective_at: int
    subscriber: str = ""
    pattern: str = ""
    exact: bool = False
    condition: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a subscription was in force; the picture is above."""

    possible_from: int
    near_from: int
    sure_from: int
    sure_to: int
    near_to: int
    possible_to: int


@dataclass(frozen=True, slots=True)
class Gap:
    """The subscriber was told that so many events are missing (0: nobody knows how many), published in that time."""

    since: int
    until: int
    count: int


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A broker died or was restarted: any subscriber may miss what was published in that time."""

    origin: str
    since: int
    until: int


@dataclass(slots=True)
class Wanted:
    """A subscription with all its spans and gaps. `trouble` says why it cannot be audited."""

    subscription: str
    subscriber: str = ""
    pattern: Pattern | None = None
    condition: str = ""
    tree: Tree | None = None
    spans: list[Span] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    trouble: str = ""
    blind_until: int = -FOREVER
    """The log of its deliveries may lack lines about what was published until then."""
    answers_until: int = FOREVER
    """What was published later may have been acknowledged when its broker could not log that any more."""
    former: list[Wanted] = field(default_factory=list)
    """What a durable subscription asked for before; of that nothing is owed, and all may come."""

    @property
    def lasting(self) -> bool:
        """It is a durable one: owed until it is acknowledged, and what comes again is flagged."""
        return origin_of(self.subscription) == DURABLE

    def versions(self) -> list[Wanted]:
        """All that it ever asked for."""
        return [self, *self.former]

    @property
    def partial(self) -> bool:
        """It has DELTA: what it was owed depends on more than one event."""
        return self.tree is not None and any(isinstance(one, Delta) for one in extensions(self.tree))

    @property
    def twigs(self) -> tuple[str, ...]:
        """What XPATH asks of documents, as canonical texts."""
        parts = extensions(self.tree) if self.tree is not None else ()
        return tuple(one.twig for one in parts if isinstance(one, XPath))


@dataclass(slots=True)
class History:
    """All subscriptions of a stream, the deaths of brokers that explain what is missing, and what is damaged."""

    wanted: list[Wanted]
    disturbances: list[Disturbance]
    damage: list[tuple[int, str]] = field(default_factory=list)
    """Until when lines of a broker's audit may be missing, and what it said of it."""
    restarts: list[int] = field(default_factory=list)
    """When brokers began another life: what they had heard and not written before that is missing."""


def twigs_of(changes: Iterable[Change]) -> frozenset[str]:
    """What the XPATHs of all these conditions ask of documents. What nobody understands is trouble later."""
    found: set[str] = set()
    for condition in {change.condition for change in changes if "xpath" in change.condition.lower()}:
        try:
            found.update(Wanted("", tree=condition_tree(condition)).twigs)
        except MatchingError:
            continue
    return frozenset(found)


def origin_of(subscription: str) -> str:
    """The life of the broker that has a subscription: everything before its last dash."""
    return subscription.rpartition("-")[0]


def _broker_of(subscription: str) -> str:
    """The broker that has a subscription, in whichever of its lives."""
    return subscription.partition("-")[0]


def read_history(
    changes: Iterable[Change],
    evidence: Mapping[str, int],
    bounds: Bounds | None = None,
    gone: Collection[str] = (),
) -> History:
    """The history of one stream.

    `evidence` is, of each life of a broker, the time of its last row in the other logs. `gone` are brokers (the part of
    an origin before the dash) that nobody can reach.
    """
    bounds = bounds or Bounds()
    by_subscription: dict[str, list[Change]] = {}
    alive = dict(evidence)
    damage: dict[str, int] = {}
    told: list[tuple[int, str]] = []
    restarts: list[int] = []
    for change in sorted(changes, key=lambda one: one.effective_at):
        if change.action == "damaged":
            damage[_broker_of(change.subscription)] = change.effective_at
            told.append((change.effective_at, change.reason))
            continue
        if change.action == "restarted":
            restarts.append(change.effective_at)
            continue
        by_subscription.setdefault(change.subscription, []).append(change)
        if change.reason != RESTARTED:  # that row was written by the life after
            origin = origin_of(change.subscription)
            alive[origin] = max(change.effective_at, alive.get(origin, 0))
    deaths = {origin: alive[origin] for origin in sorted(_lives_over(alive, gone))}
    for story in by_subscription.values():
        for origin in [origin_of(change.subscription) for change in story if change.reason == RESTARTED]:
            deaths.setdefault(origin, alive.get(origin, -FOREVER))
    wanted = [
        _lasting_story(name, story, bounds) if origin_of(name) == DURABLE else _story(name, story, deaths, bounds)
        for name, story in by_subscription.items()
    ]
    for one in wanted:
        one.blind_until = damage.get(_broker_of(one.subscription), -FOREVER)
        one.answers_until = deaths.get(origin_of(one.subscription), FOREVER) - bounds.answer
    disturbances = [
        Disturbance(origin, at - bounds.boundary, at + bounds.crash)
        for origin, at in sorted(deaths.items())
        if at > -FOREVER
    ]
    return History(wanted, disturbances, told, restarts)


def _lives_over(origins: Iterable[str], gone: Collection[str]) -> set[str]:
    """The lives after which the same broker began another one, and those of brokers that are gone.

    An origin is `broker-incarnation`, both hexadecimal.
    """
    newest: dict[str, int] = {}
    lives: dict[str, tuple[str, int]] = {}
    for origin in origins:
        broker, _, incarnation = origin.partition("-")
        try:
            number = int(incarnation, 16)
        except ValueError:
            continue
        lives[origin] = broker, number
        newest[broker] = max(number, newest.get(broker, 0))
    return {origin for origin, (broker, number) in lives.items() if broker in gone or number < newest[broker]}


def _story(name: str, story: Sequence[Change], deaths: Mapping[str, int], bounds: Bounds) -> Wanted:
    """One subscription from its changes, in order of time."""
    wanted = Wanted(name)
    began: int | None = None
    asked: int | None = None
    for change in story:
        if change.action == "gap":
            since = change.effective_at - bounds.gap
            wanted.gaps.append(Gap(since, change.effective_at + bounds.boundary, _count_of(change.reason)))
            continue
        if wanted.pattern is None and not wanted.trouble:
            _wish(wanted, change)
        if change.action == "asked":
            asked = change.effective_at
        elif change.action == "subscribe":
            began = change.effective_at if began is None else began
        else:
            _end_span(wanted, -FOREVER if began is None else began, change, deaths, bounds)
            began = None
    if began is not None:
        death = deaths.get(origin_of(name))
        wanted.spans.append(_span(began, FOREVER if death is None else death, FOREVER, bounds))
    elif asked is not None and not wanted.spans:
        wanted.spans.append(Span(asked - bounds.outside, FOREVER, FOREVER, asked, asked, FOREVER))
    return wanted


_AT_ANY_TIME: Final = Span(-FOREVER, FOREVER, FOREVER, -FOREVER, -FOREVER, FOREVER)
"""What comes is right, and nobody misses it."""


def _lasting_story(name: str, story: Sequence[Change], bounds: Bounds) -> Wanted:
    """One durable subscription from its changes, in order of time."""
    former: list[Wanted] = []
    now: Wanted | None = None
    gaps: list[Gap] = []
    for change in story:
        if change.action == "gap":
            gaps.append(Gap(-FOREVER, change.effective_at + bounds.boundary, _count_of(change.reason)))
            continue
        version = Wanted(name)
        _wish(version, change)
        if now is not None and change.action == "subscribe" and _same_wish(now, version):
            continue  # another broker coordinates it
        if now is not None:
            now.spans = [_AT_ANY_TIME]
            former.append(now)
            now = None
        if change.action == "subscribe":
            sure = change.effective_at + bounds.boundary
            version.spans = [Span(-FOREVER, sure - 2 * bounds.boundary, sure, FOREVER, FOREVER, FOREVER)]
            now = version
    wanted = now or (former.pop() if former else Wanted(name, trouble="the log does not say what it asks for"))
    wanted.former, wanted.gaps = former, gaps
    wanted.trouble = next((one.trouble for one in wanted.versions() if one.trouble), "")
    return wanted


def _same_wish(one: Wanted, other: Wanted) -> bool:
    return (one.pattern, one.condition, one.trouble) == (other.pattern, other.condition, other.trouble)


def _end_span(wanted: Wanted, began: int, change: Change, deaths: Mapping[str, int], bounds: Bounds) -> None:
    at = change.effective_at
    if change.reason == RESTARTED:
        last = deaths[origin_of(wanted.subscription)]
    elif change.reason == SESSION_ENDED:
        last = at - bounds.session
    else:
        last = at
    wanted.spans.append(_span(began, last, at, bounds))


def _span(began: int, last: int, ended: int, bounds: Bounds) -> Span:
    """In force from `began`, certainly until `last`, and by no means after `ended`."""
    sure_from = began + bounds.boundary
    sure_to = max(sure_from, last if last >= FOREVER else last - bounds.boundary)
    return Span(
        began - bounds.outside,
        began - bounds.boundary,
        sure_from,
        sure_to,
        min(FOREVER, ended + bounds.boundary),
        min(FOREVER, ended + bounds.outside),
    )


def _wish(wanted: Wanted, change: Change) -> None:
    """What it asks for. Our own parsers read it: what they refuse is trouble, and never reaches Spark."""
    wanted.subscriber = change.subscriber
    wanted.condition = change.condition
    if not change.pattern:
        wanted.trouble = "the log does not have its beginning any more, and so not what it asked for"
        return
    try:
        wanted.pattern = parse_pattern(change.pattern, change.exact)
        wanted.tree = condition_tree(change.condition)
    except MatchingError as error:
        wanted.pattern = None
        wanted.trouble = str(error).splitlines()[0]


def _count_of(reason: str) -> int:
    """A GAP's reason begins with how many are lost; 0 when it says nothing of the kind."""
    digits = reason.split(" ", 1)[0]
    return int(digits) if digits.isdecimal() else 0

"""The ledger of a chaos run: what was published, delivered and announced, and so what was lost without a GAP.

A subscription is owed an event when it was in force from before the event was published until after the event was
accepted and on its way. Of what it is owed and did not get, each event must be accounted for:

    told      a GAP said that so many were lost; it accounts for that many, published shortly before it
    unknown   a GAP said that some may be lost, and nobody knows how many; it accounts for any number, published before
              the last death of a broker that it can have meant
    doomed    the broker that had accepted it was killed within a second: the promise of mode `accepted` ends there
    silent    none of these: a violation

An event whose publisher was told that its outcome is unknown, or that it was refused, is owed to nobody. While a
client looks for another broker nothing is owed to it either; that it was told so (the notice of having moved) is how
the end of such a time is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from ..limits import CHAOS_DOOMED_SECONDS, CHAOS_GAP_SECONDS_MAX, CHAOS_IN_FLIGHT_SECONDS

__all__ = ["Account", "Death", "Fate", "Published", "Told", "Watch", "judge", "unexplained"]

EXAMPLES_MAX = 5


class Fate(Enum):
    """The outcome of publishing one event."""

    OPEN = "open"
    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    REFUSED = "refused"


@dataclass(slots=True)
class Told:
    """A GAP, other than the notice of having moved. A count of 0 says that nobody knows how many."""

    at: float
    count: int


@dataclass(frozen=True, slots=True)
class Death:
    """A broker was killed."""

    broker: str
    at: float


@dataclass(slots=True)
class Published:
    """One event: when it was handed over, when its fate was known, and who accepted it."""

    sent_at: float
    fate: Fate = Fate.OPEN
    decided_at: float = 0.0
    broker: str = ""


@dataclass(slots=True)
class Watch:
    """One subscription through all its moves."""

    name: str
    seen: Counter[int] = field(default_factory=Counter)
    in_force: list[tuple[float, float, str]] = field(default_factory=list)
    """From when to when, and by which broker."""
    told: list[Told] = field(default_factory=list)
    since: float | None = None
    """In force since then, now; None: not in force."""
    broker: str = ""
    """Which it was asked of last."""

    def begins(self, now: float, broker: str) -> None:
        """The broker confirmed it."""
        if self.since is None:
            self.since, self.broker = now, broker

    def ends(self, at: float) -> None:
        """It is not in force since then."""
        if self.since is not None:
            self.in_force.append((self.since, max(at, self.since), self.broker))
            self.since = None

    def history(self) -> str:
        """When it was in force, and what it was told."""
        times = [f"{first:.2f} to {last:.2f} by {broker}" for first, last, broker in self.in_force]
        if self.since is not None:
            times.append(f"since {self.since:.2f} by {self.broker}")
        told = [f"{told.count} at {told.at:.2f}" for told in self.told]
        return f"in force {', '.join(times) or 'never'}; told of {', '.join(told) or 'nothing'}"

    def owed(self, event: Published) -> bool:
        """Whether it was in force from before the event was handed over until the event was on its way."""
        times = self.in_force if self.since is None else [*self.in_force, (self.since, float("inf"), self.broker)]
        until = event.decided_at + CHAOS_IN_FLIGHT_SECONDS
        return any(first < event.sent_at and until < last for first, last, _ in times)


@dataclass(slots=True)
class Account:
    """The sum over all subscriptions, with a few examples of each kind of fault."""

    wanted: int = 0
    delivered: int = 0
    repeated: int = 0
    unwanted: int = 0
    not_owed: int = 0
    doomed: int = 0
    told: int = 0
    told_unknown: int = 0
    silent: int = 0
    calm_wanted: int = 0
    calm_missing: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return not (self.repeated or self.unwanted or self.silent or self.calm_missing)

    def example(self, kind: str, watch: Watch, number: int, event: Published) -> None:
        """Keep some examples of each kind of fault."""
        kept = self.examples.setdefault(kind, [])
        if len(kept) < EXAMPLES_MAX:
            text = f"{watch.name} event {number}, {event.fate.value} by {event.broker} at {event.sent_at:.2f}"
            kept.append(f"{text}, {event.decided_at - event.sent_at:.3f} s later; {watch.history()}")


def judge(
    watches: Sequence[Watch],
    wanted: Sequence[Sequence[int]],
    events: Sequence[Published],
    deaths: Sequence[Death],
    calm_from: int,
) -> Account:
    """Balance the ledger. Events from number `calm_from` on were published after the cluster had settled."""
    account = Account()
    for watch, numbers in zip(watches, wanted, strict=True):
        _count_deliveries(account, watch, set(numbers), events)
        missing = [number for number in numbers if number not in watch.seen]
        account.wanted += len(numbers)
        account.calm_wanted += sum(number >= calm_from for number in numbers)
        open_ones = []
        for number in missing:
            event = events[number]
            if number >= calm_from:
                account.calm_missing += 1
                account.example("calm", watch, number, event)
            elif event.fate is not Fate.ACCEPTED or not watch.owed(event):
                account.not_owed += 1
            elif _doomed(event, deaths):
                account.doomed += 1
            else:
                open_ones.append(number)
        uncounted = unexplained(open_ones, events, watch.told)
        silent = [number for number in uncounted if not _perhaps(events[number], watch.told, deaths)]
        account.told += len(open_ones) - len(uncounted)
        account.told_unknown += len(uncounted) - len(silent)
        account.silent += len(silent)
        for number in silent:
            account.example("silent", watch, number, events[number])
    return account


def _count_deliveries(account: Account, watch: Watch, wanted: set[int], events: Sequence[Published]) -> None:
    for number, times in watch.seen.items():
        account.delivered += 1
        if times > 1:
            account.repeated += times - 1
            account.example("repeated", watch, number, events[number])
        if number not in wanted:
            account.unwanted += 1
            account.example("unwanted", watch, number, events[number])


def _doomed(event: Published, deaths: Sequence[Death]) -> bool:
    return any(
        death.broker == event.broker and event.decided_at <= death.at < event.decided_at + CHAOS_DOOMED_SECONDS
        for death in deaths
    )


def _perhaps(event: Published, told: Sequence[Told], deaths: Sequence[Death]) -> bool:
    """Whether a GAP of unknown size accounts for it: it was published before the broker died that the GAP speaks of."""
    for gap in told:
        if gap.count or not event.sent_at <= gap.at <= event.sent_at + CHAOS_GAP_SECONDS_MAX:
            continue
        if event.sent_at <= max((death.at for death in deaths if death.at <= gap.at), default=float("-inf")):
            return True
    return False


def unexplained(numbers: Sequence[int], events: Sequence[Published], told: Sequence[Told]) -> list[int]:
    """Those that no GAP with a count accounts for. Each does for as many as it counts, published not long before."""
    waiting = sorted(numbers, key=lambda number: events[number].sent_at)
    silent = []
    for gap in sorted(told, key=lambda one: one.at):
        left = gap.count
        later = []
        for number in waiting:
            sent_at = events[number].sent_at
            if sent_at > gap.at:
                later.append(number)
            elif sent_at < gap.at - CHAOS_GAP_SECONDS_MAX:
                silent.append(number)
            elif left:
                left -= 1
            else:
                later.append(number)
        waiting = later
    return sorted([*silent, *waiting])

"""Registry: how a subscription comes to rest where its events pass, and how every broker knows where that is.

For a subscription of one of our clients (we are its *home*):

    plan      the placement of its stream says where it rests: dimensions, and the keys on them (`placement.py`)
    place     items that say so are put at these keys (`kv/store.py`: owners, siblings, confirmation)
    announce  if it is the first of this home on that dimension of the stream, or to read some attribute, an item
              that says so is put on the whole ring: it is *in use* now
    in force  when all of that is confirmed SUBACK is sent: what is published after that, anywhere, is seen

Every broker adds up what is in use, stream by stream: that is the **interest summary**. It tells a publisher's broker
which keys an event has to visit, and publishers which attributes to send as columns. It only needs to be large enough:
what is no longer used is taken out when the item is next refreshed.

What rests here, whichever its home, is its placement's: in the stream's index (`anchored.py`), or on lists
(`counting_home.py`).

Nothing is trusted to stay: a home puts its items again every REFRESH_SECONDS, unchanged, so that whatever a disaster
took is back by then (and soon after any broker came, because two rings may have met, of which one owns keys now that
it knows nothing about); and what belongs to a home that is gone, or that lives another life by now, is dropped. A home
that was only away, and finds that out, puts its items in a new *edition*: the former one may have been dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from headgate.matching import MatchingError, Pattern, Tree, attributes, deltas, event_part
from headgate.matching.limits import CONDITION_BYTES_MAX
from headgate.matching.tree import TRUE
from headgate.protocol.data import Batch
from headgate.protocol.errors import ProtocolViolation

from ..cluster import Cluster, ClusterEvent
from ..config import NodeConfig
from ..delivery import Carrier, ClientSession, Streams, Subscribers, Subscription
from ..effects import Effect, Note
from ..keyspace import Dimension, Segment
from ..kv import Added, Item, Placed, Removed, Unplaced
from ..limits import (
    ANEW_SECONDS,
    ORPHAN_SECONDS,
    REFRESH_BYTES,
    REFRESH_GROWTH,
    REFRESH_PAUSE_SECONDS,
    REFRESH_SECONDS,
)
from ..safeguards import Safeguard
from ..timers import Timers
from .anchored import Anchored
from .carriers import Carriers
from .counting_home import Counting
from .edges import Edges, Laid
from .interest import Usage
from .placement import Lists, Mine, Placement, Resting, Runs, Wish
from .planner import twigs_of
from .schemas import Schemas

__all__ = ["REGISTRY", "InForce", "Registry", "items_of"]

REGISTRY = "registry"
"""The timer of this room: when to put again what is ours, and to let go of what has no home."""

_UNKNOWN: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InForce:
    """Event: a subscription of one of our clients is in force, or could not be placed."""

    subscription: Subscription
    done: bool


class Registry:
    """Sees our clients' subscriptions through their life, and knows which brokers are home to what rests here."""

    def __init__(
        self,
        config: NodeConfig,
        effects: list[Effect],
        streams: Streams,
        subscribers: Subscribers,
        cluster: Cluster,
        timers: Timers,
        now: float,
    ) -> None:
        self._timers = timers
        self._limits = config.limits
        self._me, self._life = config.identifier, config.incarnation
        self._effects = effects
        self._streams = streams
        self._cluster = cluster
        self.usage = Usage(self._me, self._life, streams, cluster)
        self.edges = Edges(self._me, self._life, cluster)
        self.schemas = Schemas(effects, streams, cluster.kv, config.limits)
        self.events: list[InForce] = []
        """What came of placing; the Node takes them out."""
        self.long_bytes = 0
        """Of conditions above what they may have without IN lists."""
        self._mine: dict[int, Mine] = {}
        self.anchored = Anchored(config, streams, subscribers, cluster, self._mine)
        self.counting = Counting(config)
        self.carriers = Carriers(streams, subscribers, config.safeguards)
        self._placements: dict[str, Placement] = {one.name: one for one in (self.anchored, self.counting)}
        self._tickets: dict[int, int] = {}
        """Put under way -> the subscription that waits for it."""
        self._homes: dict[tuple[int, int], float] = {}
        self._refresh: deque[int | tuple[str, Dimension, int]] = deque()
        """Subscriptions of ours, and vertices where we have laid edges."""
        self._refresh_seconds = REFRESH_SECONDS
        self._refresh_at = now + REFRESH_SECONDS
        self._sweep_at = now + ORPHAN_SECONDS / 4
        self._edition = 1
        self._was_apart = self._anew = False
        self._adders = {"use": self._add_use, "schema": self.schemas.add, Edges.kind: self._add_edges}
        self._removers = {
            "use": self.usage.remove,
            "schema": self.schemas.remove,
            Edges.kind: self._remove_edges,
        }
        for one in self._placements.values():
            self._adders[one.kind] = partial(self._add_resting, one)
            self._removers[one.kind] = partial(self._remove_resting, one)

    # --- our clients' subscriptions ------------------------------------------------------------------------------

    def plan(self, pattern: Pattern, condition: Tree | None, ordered: bool) -> Resting:
        """Where a subscription is going to rest. One with DELTA wants its events in order: it rests at one key."""
        stream = pattern.stream
        placement = self._placements[self._streams.settings_of(stream).placement]
        if condition is not None and deltas(condition) and Safeguard.DELTA_AT_ONE_KEY in self._cluster.safeguards:
            placement, ordered = self.anchored, True
        used, schema = self.usage.dimensions_used(stream), self._streams.schemas.get(stream)
        return placement.plan(Wish(pattern, condition, schema, used, ordered, self._limits.dimensions))

    def place(
        self,
        subscription: Subscription,
        condition: Tree | None,
        text: str,
        exact: bool,
        ordered: bool,
        now: float,
        former: int = 0,
    ) -> None:
        """Put it where its events pass; the event InForce says when it is in force. Of what is put for a `former`
        version of it, which goes on, that is kept which serves this one.

        `text` is the condition as the client wrote it: that has a bound, and what is printed of it may be far longer.
        One with DELTA is not placed itself, but its carrier.
        """
        moves = () if condition is None else deltas(condition)
        if condition is None or not moves:
            self._place(subscription, condition, text, exact, ordered, now, former)
            return
        carrier, is_new = self.carriers.join(subscription, condition, moves)
        if is_new:
            self._place(carrier, condition, text, exact, ordered, now)
        elif not self.carriers.waits(carrier):
            self.events.append(InForce(subscription, True))

    def _place(
        self,
        subscription: Subscription,
        condition: Tree | None,
        text: str,
        exact: bool,
        ordered: bool,
        now: float,
        former: int = 0,
    ) -> None:
        pattern, number = subscription.pattern, subscription.identity
        resting = self.plan(pattern, condition, ordered)
        placement = self._placements[resting.placement]
        names = attributes(condition) if condition is not None else _UNKNOWN
        shape, twigs = twigs_of(condition, self._streams.schemas.get(pattern.stream))
        if twigs and shape.column not in names:
            names = (*names, shape.column)
        if isinstance(subscription, Carrier):
            condition = _static(condition)
        said = text if condition is not None else ""
        lists = self._lists_of(former, placement, resting.dimensions)
        meaning = (pattern, condition)
        mine = Mine(subscription, placement, (), resting.dimensions, names, meaning, _long(text), laid=resting.laid)
        mine.lists = lists
        pieces = resting.pieces(subscription, exact, said)
        stands = number if lists is None else lists.number
        name = placement.kind, self._me, self._life, stands
        if lists is None:
            items = mine.items = items_of(name, self._edition, pieces)
        else:
            mine.items, items = _by_difference(lists, name, self._edition, pieces)
            lists.versions.append(mine)
        self._mine[number] = mine
        self.long_bytes += _long(text)
        placement.enter(stands, number, pattern, condition)
        known = self.usage.use(pattern.stream, resting.dimensions, names, number, now)
        mine.waits = 0 if known or Safeguard.USE_KNOWN_BEFORE_SUBACK not in self._cluster.safeguards else 1
        if items:  # else all of it stands there already, or nothing can ever match it
            self._tickets[self._cluster.kv.put(items, now)] = number
            mine.waits += 1
        if resting.laid is not None:
            mine.waits += self.edges.lay(resting.laid, number, now)
        if Safeguard.PLACED_BEFORE_SUBACK not in self._cluster.safeguards:
            mine.waits = 0
        if not mine.waits:
            self._ended(number, True)

    def _ended(self, number: int, done: bool) -> None:
        """What a subscription waited for came to its end: with the last of it, or a failure, placing it is over."""
        mine = self._mine.get(number)
        if mine is None or mine.meaning is None:
            return
        mine.waits -= mine.waits > 0
        if not mine.waits or not done:
            mine.meaning = None
            one = mine.subscription
            members = self.carriers.ended(one) if isinstance(one, Carrier) else [one]
            self.events += [InForce(member, done) for member in members]

    def _lists_of(self, former: int, placement: Placement, dimensions: Sequence[Dimension]) -> Lists | None:
        """The lists on which the former version stands, if the next one can stand there under the same number.

        An event is counted by the attributes of the subscription, so these have to be the same.
        """
        mine = self._mine.get(former)
        if mine is None or not placement.keeps or mine.placement is not placement:
            return None
        if set(mine.dimensions) != set(dimensions):
            return None
        if mine.lists is None:
            mine.lists = Lists(former, len(mine.items), [mine])
        return mine.lists

    def difference(self, former: int, following: int) -> dict[str, int]:
        """What changes for the cluster when one subscription of ours takes the place of another."""
        before, after = ({item.name for item in self._mine[one].items} for one in (former, following))
        return {"puts": len(after - before), "kept": len(after & before), "removed": len(before - after)}

    def subid(self, resting: Resting) -> dict[str, Any] | None:
        """The subID that a subscription of ours that rests so would have, as far as it is known before it is made."""
        return self._placements[resting.placement].subid(None, len(resting.dimensions))

    def subid_of(self, number: int) -> dict[str, Any] | None:
        """The subID of a subscription of ours; None of one that is anchored."""
        mine = self._mine.get(number)
        return None if mine is None else mine.placement.subid(_number_of(mine), len(mine.dimensions))

    def withdraw(self, subscriptions: Iterable[Subscription], now: float) -> None:
        """They are no more."""
        ended: list[Item] = []
        laid: list[Laid] = []
        for subscription in subscriptions:
            resting = subscription if subscription.carrier is None else self.carriers.leave(subscription)
            mine = None if resting is None else self._mine.pop(resting.identity, None)
            if mine is not None:
                self.long_bytes -= mine.long_bytes
                needed: set[tuple[str | int, ...]] = set()
                if mine.lists is not None:
                    mine.lists.versions.remove(mine)
                    needed = {item.name for other in mine.lists.versions for item in other.items}
                removed = self._edition + 1
                ended += [item._replace(version=removed, value=None) for item in mine.items if item.name not in needed]
                self.usage.release(subscription.stream, mine.dimensions, mine.attributes)
                mine.placement.leave(_number_of(mine), mine.subscription.identity)
                laid += () if mine.laid is None else (mine.laid,)
        if ended:
            self._cluster.kv.put(ended, now)
        self.edges.take_up(laid, now)
        self.usage.shrink(now)

    def leave(self, now: float) -> None:
        """This broker goes, and what its clients asked for with it: the others need not find that out."""
        if not self._cluster.alone:
            self.withdraw([mine.subscription for mine in self._mine.values()], now)

    # --- what the cluster says -----------------------------------------------------------------------------------

    def handle(self, happened: ClusterEvent, now: float) -> None:
        """Something came to rest here, or rests here no more, or a put came to its end."""
        if isinstance(happened, Added):
            self.added(happened.item, now)
        elif isinstance(happened, Removed):
            self.removed(happened.item, now)
        elif isinstance(happened, Placed | Unplaced):
            done = isinstance(happened, Placed)
            number = self._tickets.pop(happened.ticket, None)
            waiting = self.usage.placed(happened.ticket, done) if number is None else [number]
            if waiting is None:
                waiting = self.edges.placed(happened.ticket, done)
            if waiting is None:
                self.schemas.placed(happened.ticket, done, now)
            for one in waiting or ():
                self._ended(one, done)

    # --- what rests here -----------------------------------------------------------------------------------------

    def added(self, item: Item, now: float) -> None:
        """An item came to rest here."""
        add = self._adders.get(str(item.name[0]))
        if add is not None:
            try:
                add(item, now)
            except (MatchingError, ProtocolViolation, ValueError, TypeError, IndexError, KeyError) as error:
                self._effects.append(Note("item not understood", {"item": str(item.name), "reason": str(error)}))

    def removed(self, item: Item, now: float) -> None:
        """It rests here no more."""
        remove = self._removers.get(str(item.name[0]))
        if remove is not None:
            remove(item, now)

    def _add_resting(self, placement: Placement, item: Item, now: float) -> None:
        placement.add(item)
        self._home_seen(item, now)

    def _add_edges(self, item: Item, now: float) -> None:
        self.edges.add(item)
        self._home_seen(item, now)

    def _remove_edges(self, item: Item, now: float) -> None:
        self.edges.remove(item)

    def _remove_resting(self, placement: Placement, item: Item, now: float) -> None:
        placement.remove(item)

    def resting(self, stream: str) -> int:
        """How many subscriptions of a stream rest here."""
        return sum(one.resting(stream) for one in self._placements.values())

    def confirmed(self, batch: Batch, runs: Runs) -> Runs:
        """Of what other brokers found for our clients, what they want. Raises ProtocolViolation when read."""
        for one in self._placements.values():
            runs = one.confirmed(batch, runs)
        return runs

    def session_of(self, home: int, life: int, now: float) -> ClientSession | None:
        """The session of a home; None when that life of it is over."""
        info = self._cluster.peers.by_identifier.get(home)
        if info is not None and info.life > life:
            return None
        self._home_at_work(home, life, now)
        return self._cluster.peers.session_of(home, life)

    def _add_use(self, item: Item, now: float) -> None:
        home, life = self._home_seen(item, now)
        if home != self._me or life == self._life:
            self.usage.add(item, now)

    def _home_seen(self, item: Item, now: float) -> tuple[int, int]:
        home, life = item.name[1], item.name[2]
        assert isinstance(home, int) and isinstance(life, int)
        if home != self._me:
            self._home_at_work(home, life, now)
        return home, life

    def _home_at_work(self, home: int, life: int, now: float) -> None:
        if (home, life) not in self._homes:
            self._homes[home, life] = now
            self._set_timer()

    # --- time ----------------------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        self._timers.at(REGISTRY, min(self._refresh_at, self._sweep_at))

    def go_on(self, now: float) -> None:
        """Put again what is ours; let go of what has no home."""
        if self._cluster.alone and not self._homes:
            return  # there is no broker to tell, and nothing of another's
        if now >= self._refresh_at:
            self._refresh_some(now)
        if now >= self._sweep_at:
            if now >= self._sweep_at + ORPHAN_SECONDS / 2:
                self._put_anew(now)  # we stood still, and may have been taken for dead
            self._sweep_at = now + ORPHAN_SECONDS / 4
            self._sweep(now)
        self._set_timer()

    def life_seen(self, home: int, life: int, now: float) -> None:
        """A broker is there, in this life: its former ones are over."""
        self._refresh_seconds = ANEW_SECONDS
        self._refresh_at = min(self._refresh_at, now + ANEW_SECONDS)
        if self._was_apart or self._homes.get((home, life), now) + ORPHAN_SECONDS / 2 < now:
            self._put_anew(now)  # it may have dropped what is ours
        self._homes[home, life] = now
        self._set_timer()
        ended = {one for one in self._homes if one[0] == home and one[1] < life}
        if ended:
            self._drop(ended, now)

    def _sweep(self, now: float) -> None:
        for info in self._cluster.linked():
            self._homes[info.identifier, info.life] = now
        ended = {home for home, seen in self._homes.items() if seen + ORPHAN_SECONDS < now}
        if ended and self._cluster.table.mesh:  # else many live that we have no link to
            self._was_apart = True
            self._drop(ended, now)

    def _put_anew(self, now: float) -> None:
        """Soon, in an edition that is newer than anything that was dropped."""
        self._was_apart, self._anew = False, True
        self._refresh.clear()
        self._refresh_at = min(self._refresh_at, now + ANEW_SECONDS)

    def _drop(self, ended: set[tuple[int, int]], now: float) -> None:
        for home in ended:
            del self._homes[home]
            self._cluster.peers.forget(*home)
            self._effects.append(Note("broker forgotten", {"broker": f"{home[0]:016x}", "life": home[1]}, True))
        self._cluster.kv.drop_where(lambda name: len(name) > 3 and (name[1], name[2]) in ended, now)

    def _refresh_some(self, now: float) -> None:
        if not self._refresh:
            self._edition += self._anew
            self.usage.refresh(now, self._anew)
            self._refresh.extend(self._mine)
            if self._anew:
                self.edges.renew()
            self._refresh.extend(self.edges.names())
            self._anew = False
        items: list[Item] = []
        long_bytes = 0
        while self._refresh and len(items) < self._limits.refresh_items and long_bytes < REFRESH_BYTES:
            following = self._refresh.popleft()
            if isinstance(following, tuple):
                edges = self.edges.item(following)
                items += () if edges is None else (edges,)
                continue
            mine = self._mine.get(following)
            if mine is not None and mine.meaning is None:
                long_bytes += mine.long_bytes
                mine.items = tuple(item._replace(version=self._edition) for item in mine.items)
                items += mine.items
        if items:
            self._cluster.kv.put(items, now)
        if self._refresh:
            self._refresh_at = now + REFRESH_PAUSE_SECONDS
        else:
            self._refresh_seconds = min(REFRESH_SECONDS, REFRESH_GROWTH * self._refresh_seconds)
            self._refresh_at = now + self._refresh_seconds

    def validate(self) -> None:
        """Asserts that what rests here, what is in use and what our clients asked for is sound."""
        for one in self._placements.values():
            one.validate()
        self.usage.validate()
        self.carriers.validate()
        self.edges.validate()
        counted = {check.identity: number for number, checks in self.counting.checks.items() for check in checks}
        assert all(_number_of(self._mine[identity]) == number for identity, number in counted.items())
        assert all(mine.lists is None or mine in mine.lists.versions for mine in self._mine.values())
        assert self.long_bytes == sum(mine.long_bytes for mine in self._mine.values())


def items_of(
    name: tuple[str | int, ...], edition: int, pieces: Iterable[tuple[Segment, list[Any]]]
) -> tuple[Item, ...]:
    """What a subscription is put away as: an item for each piece, at its keys."""
    return tuple(
        Item((*name, part), segment.low, segment.high, edition, value) for part, (segment, value) in enumerate(pieces)
    )


def _number_of(mine: Mine) -> int:
    """Under which number it stands where it rests."""
    return mine.subscription.identity if mine.lists is None else mine.lists.number


def _by_difference(
    lists: Lists, name: tuple[str | int, ...], edition: int, pieces: Iterable[tuple[Segment, list[Any]]]
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """All items of a version, and those of them that do not stand there yet (RANGE 3.1.2)."""
    items: list[Item] = []
    new: list[Item] = []
    for segment, value in pieces:
        item = lists.standing(segment.low, segment.high, value)
        if item is None:
            item = Item((*name, lists.parts), segment.low, segment.high, edition, value)
            lists.parts += 1
            new.append(item)
        items.append(item)
    return tuple(items), tuple(new)


def _static(condition: Tree | None) -> Tree | None:
    """The static part of a condition, None when there is none."""
    rest = None if condition is None else event_part(condition)
    return None if rest == TRUE else rest


def _long(condition: str) -> int:
    """What a condition counts for when it is one with a long IN list: those have a bound of their own."""
    return len(condition) if len(condition) > CONDITION_BYTES_MAX else 0

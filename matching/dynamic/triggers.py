"""The trigger index: of many subscriptions that watch the same attributes, those that an event fires.

For each topic the upper ends of all bands stand in a queue, nearest first, and the lower ends, negated, in another; a
third one holds the moments when heartbeats are due. An event pops what it is beyond, and each that it fires is pushed
again at its new ends. What stands in the other queues is then out of date: it is passed over when it comes up, and they
are made anew when more than half of one is so. So an event costs O(log n) for each subscription that it fires, and two
comparisons when it fires none.

Where several attributes are watched, the first one has the queues, and the others are compared when it fires.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

from headgate.matching.dynamic.bands import Band, Number, band_of, edge_of, moved, reading
from headgate.matching.dynamic.nearest import Nearest
from headgate.matching.limits import DYNAMIC_STALE_MIN, DYNAMIC_TOPICS_MAX
from headgate.matching.tree import Delta

__all__ = ["Reference", "Tally", "Triggers"]

_End: TypeAlias = tuple[Number, bool, int]
"""In a queue: where a band ends, whether a value there is still within it, whose it is."""
_Due: TypeAlias = tuple[float, int]


class Reference(NamedTuple):
    """What a subscription was last sent of a topic, as `headgate explain` shows it; in the attribute's own units."""

    time: float
    values: tuple[Number, ...]
    lower: Number | None
    """A value of the first attribute below it is delivered next, or one above `upper`; None: none is, on that side."""
    upper: Number | None


class _Place(NamedTuple):
    """What one subscription has of one topic. An entry of a queue is current while it is this very object."""

    rise: _End | None
    fall: _End | None
    due: _Due | None
    time: float
    values: tuple[Number, ...]


@dataclass(slots=True)
class Tally:
    """What many triggers hold together."""

    references: int = 0
    forgotten: int = 0
    """References that were given up because there were too many topics."""


@dataclass(slots=True, eq=False)
class _Topic:
    """All that subscriptions have of one topic."""

    places: dict[int, _Place] = field(default_factory=dict)
    rising: Nearest = field(default_factory=Nearest)
    falling: Nearest = field(default_factory=Nearest)
    dues: Nearest = field(default_factory=Nearest)
    pushed: int = 0
    """Entries since the queues were made: so many may be out of date."""
    seen: int = 0
    """Places with greater numbers came later than the last event, and have nothing yet."""
    fresh: dict[int, None] = field(default_factory=dict)
    """Others that have nothing: their reference was forgotten."""


class Triggers:
    """Subscriptions that watch the same attributes, known by the caller's numbers."""

    def __init__(
        self,
        attributes: Sequence[str],
        precisions: Sequence[Number | None] = (),
        topics_max: int = DYNAMIC_TOPICS_MAX,
        tally: Tally | None = None,
    ) -> None:
        self.attributes = tuple(attributes)
        self._precisions = tuple(precisions) or (None,) * len(self.attributes)
        self._topics_max = topics_max
        self._places: dict[int, int] = {}
        """Subscription -> its own number in here, which it changes when all is forgotten that it was ever sent."""
        self._members: dict[int, tuple[int, tuple[Band, ...]]] = {}
        self._narrow: dict[int, tuple[Band, ...]] = {}
        """What those asked for whose bands have grown."""
        self._topics: dict[str, _Topic] = {}
        self._last = 0
        self._order: list[int] = []
        """Numbers in here as they were given, some of them over."""
        self._over = 0
        """Of those, how many are over."""
        self._tally = tally if tally is not None else Tally()
        self.references = 0

    def __len__(self) -> int:
        return len(self._places)

    def add(self, number: int, deltas: Sequence[Delta], like: int | None = None) -> None:
        """A subscription that has been sent nothing yet: it gets the next event of each topic.

        With `like` it counts as having been sent what another one was: simulations show what is wrong with that.
        """
        assert number not in self._places, "it is there already"
        assert len(deltas) == len(self.attributes), "one DELTA for each attribute"
        pairs = zip(deltas, self._precisions, strict=True)
        self._enter(number, tuple(band_of(delta, precision) for delta, precision in pairs))
        if like is not None:
            for topic, found in list(self._topics.items()):
                place = found.places.get(self._places[like])
                if place is not None:
                    self._move(topic, found, [self._last], place.values, place.time)
                found.seen = self._last

    def _enter(self, number: int, bands: tuple[Band, ...]) -> None:
        self._last += 1
        self._places[number] = self._last
        self._members[self._last] = number, bands
        self._order.append(self._last)

    def remove(self, number: int) -> None:
        """It is no more. KeyError when there is none of that number."""
        del self._members[self._places.pop(number)]
        self._narrow.pop(number, None)
        self._over += 1
        if self._over > len(self._members) + DYNAMIC_STALE_MIN or not self._members:
            self._sweep()

    def match(
        self, topics: Sequence[str], rows: Iterable[int], columns: Mapping[str, Sequence[Any]], time: float
    ) -> list[tuple[int, list[int]]]:
        """Of these rows of a batch, in order, those that fire subscriptions, and which.

        `topics` has one topic for each row of the batch, or one for all. A column that is missing is NULL.
        """
        found = [columns.get(name) for name in self.attributes]
        if None in found:
            return []
        read: list[Any] = found
        fired: list[tuple[int, list[int]]] = []
        alone = topics[0] if len(topics) == 1 else None
        for row in rows:
            own = self.fire(topics[row] if alone is None else alone, [column[row] for column in read], time)
            if own:
                fired.append((row, own))
        return fired

    def fire(self, topic: str, values: Sequence[object], time: float) -> list[int]:
        """The subscriptions that get this event, ascending; it is their reference from now on."""
        numbers = tuple(map(reading, values, self._precisions))
        if None in numbers:
            return []
        known: tuple[Any, ...] = numbers
        found = self._topics.get(topic)
        if found is None:
            found = self._begin(topic)
        alone = len(self.attributes) == 1
        moved_on = self._recentred(found, known, time) if alone else []
        fired = [] if alone else self._beyond(found, known, time)
        if found.seen < self._last:
            order = self._order
            fired += [one for one in order[bisect_right(order, found.seen) :] if one in self._members]
            found.seen = self._last
        if found.fresh:
            fired += [one for one in found.fresh if one in self._members]
            found.fresh.clear()
        if fired:
            self._move(topic, found, fired, known, time)
        elif moved_on:
            self._topics[topic] = self._topics.pop(topic)  # the one that was delivered last stands last
        else:
            return []
        return sorted([*moved_on, *(self._members[one][0] for one in fired)])

    def forget(self, number: int, topic: str) -> None:
        """What a subscription was sent last of a topic may not have come: it gets the next event."""
        found, one = self._topics.get(topic), self._places.get(number, 0)
        if found is not None and found.places.pop(one, None) is not None:
            self._count(-1)
            found.fresh[one] = None

    def forget_all(self, number: int) -> None:
        """The same of every topic. KeyError when there is no such subscription."""
        _, bands = self._members[self._places[number]]
        narrow = self._narrow.get(number)
        self.remove(number)
        self._enter(number, bands)
        if narrow is not None:
            self._narrow[number] = narrow

    def widen(self, number: int, most: Number) -> str:
        """Let its bands grow to twice what they are, up to `most` in the attributes' own units; what they are now, in
        words, or "" when they do not grow. KeyError when there is no such subscription.

        A reference keeps the ends that it has until the next delivery.
        """
        one = self._places[number]
        _, bands = self._members[one]
        wide = tuple(map(_widened, bands, self._precisions, repeat(most)))
        if wide == bands:
            return ""
        self._narrow.setdefault(number, bands)
        self._members[one] = number, wide
        words = (
            f"{name} moves by {band.width * (1 if precision is None or band.percent else precision):.6g}"
            + (" PERCENT" if band.percent else "")
            for name, band, precision in zip(self.attributes, wide, self._precisions, strict=True)
        )
        return "an event is delivered when " + " and ".join(words)

    def narrow(self, number: int) -> None:
        """What it asked for holds again, and it gets the next event of each topic. KeyError when there is none."""
        bands = self._narrow.pop(number, None)
        if bands is not None:
            self.remove(number)
            self._enter(number, bands)

    def forget_oldest(self) -> bool:
        """Give up the references of the topic of which nothing was delivered for longest; False when there is one."""
        if len(self._topics) < 2:
            return False
        gone = self._topics.pop(next(iter(self._topics)))
        self._count(-len(gone.places))
        self._tally.forgotten += len(gone.places)
        return True

    def topics_of(self, number: int) -> list[str]:
        """The topics of which it has a reference, the one of the oldest delivery first."""
        one = self._places.get(number, 0)
        return [topic for topic, found in self._topics.items() if one in found.places]

    def reference(self, number: int, topic: str) -> Reference | None:
        """What it was last sent of a topic; None when the next event is delivered whatever it says."""
        found = self._topics.get(topic)
        place = None if found is None else found.places.get(self._places.get(number, 0))
        if place is None:
            return None
        own = [
            value if precision is None else value * precision
            for value, precision in zip(place.values, self._precisions, strict=True)
        ]
        unit = 1 if self._precisions[0] is None else self._precisions[0]
        lower = None if place.fall is None else -place.fall[0] * unit
        upper = None if place.rise is None else place.rise[0] * unit
        return Reference(place.time, tuple(own), lower, upper)

    def validate(self) -> None:
        """Asserts that each place has its entries in the queues, and that the counts are right."""
        assert self.references == sum(len(found.places) for found in self._topics.values())
        assert len(self._topics) <= self._topics_max
        assert {one: number for number, one in self._places.items()} == {
            one: number for one, (number, _) in self._members.items()
        }
        assert self._members.keys() <= set(self._order) and self._order == sorted(set(self._order))
        assert len(self._order) == len(self._members) + self._over
        assert self._narrow.keys() <= self._places.keys()
        for found in self._topics.values():
            assert not found.fresh.keys() & found.places.keys()
            current = [place for one, place in found.places.items() if one in self._members]
            heaps: tuple[Nearest, ...] = (found.rising, found.falling, found.dues)
            for which, heap in enumerate(heaps):
                heap.validate()
                there = set(map(id, heap))
                assert all(place[which] is None or id(place[which]) in there for place in current)
                assert len(heap) <= 2 * len(found.places) + DYNAMIC_STALE_MIN

    # --- inside ------------------------------------------------------------------------------------------------------

    def _count(self, more: int) -> None:
        self.references += more
        self._tally.references += more

    def _begin(self, topic: str) -> _Topic:
        while len(self._topics) >= self._topics_max and self.forget_oldest():
            pass
        found = self._topics[topic] = _Topic()
        return found

    def _recentred(self, found: _Topic, values: tuple[Number, ...], time: float) -> list[int]:
        """Those whose band this value is beyond, or whose heartbeat is due, of subscriptions to one attribute: this
        event is their reference, and its entries take the places of those that were found, without a search."""
        places, members, first = found.places, self._members, values[0]
        rising, falling, dues = found.rising, found.falling, found.dues
        fired: list[int] = []
        again: list[tuple[Nearest, _End]] = []
        for which, heap, other, value in ((0, rising, falling, first), (1, falling, rising, -first)):
            while (block := heap.first) and (block[0][0] < value or (block[0][0] == value and not block[0][1])):
                end = block[0]
                one = end[2]
                place, member = places.get(one), members.get(one)
                if place is None or place[which] is not end or member is None:
                    heap.pop()
                    continue
                if place.values is values:  # a band without width: it was told of this event
                    again.append((heap, heap.pop()))
                    continue
                new = places[one] = _placed(one, member[1][0], values, time)
                same, opposite = (new.rise, new.fall) if which == 0 else (new.fall, new.rise)
                assert same is not None, "it has this side"
                heap.replace(same)
                if opposite is not None:
                    other.push(opposite)
                if new.due is not None:
                    dues.push(new.due)
                fired.append(member[0])
        for heap, end in again:
            heap.push(end)
        while (block := dues.first) and block[0][0] <= time:
            due = dues.pop()
            one = due[1]
            place, member = places.get(one), members.get(one)
            if place is None or place.due is not due or member is None:
                continue
            new = places[one] = _placed(one, member[1][0], values, time)
            for heap, entry in ((rising, new.rise), (falling, new.fall)):
                if entry is not None:
                    heap.push(entry)
            assert new.due is not None
            dues.push(new.due)
            fired.append(member[0])
        found.pushed += len(fired)
        if found.pushed > len(places) + DYNAMIC_STALE_MIN:
            _stack_anew(found)
        return fired

    def _beyond(self, found: _Topic, values: tuple[Number, ...], time: float) -> list[int]:
        """Those whose band of the first attribute this value is beyond, or whose heartbeat is due, and which the other
        attributes do not hold back. What fired is out of the heap that it was found in."""
        places, first = found.places, values[0]
        popped: list[tuple[int, Any]] = []
        for which, heap, value in ((0, found.rising, first), (1, found.falling, -first)):
            while (block := heap.first) and (block[0][0] < value or (block[0][0] == value and not block[0][1])):
                end = heap.pop()
                place = places.get(end[2])
                if place is not None and place[which] is end:
                    popped.append((which, end))
        dues = found.dues
        while (block := dues.first) and block[0][0] <= time:
            due = dues.pop()
            place = places.get(due[1])
            if place is not None and place.due is due:
                popped.append((2, due))
        if not popped:
            return []
        members = self._members
        current = [one for one in dict.fromkeys(entry[-1] for _, entry in popped) if one in members]
        if len(self.attributes) == 1:
            return current
        fired = {one: None for one in current if self._others(places[one], members[one][1], values, time)}
        heaps: tuple[Nearest, ...] = (found.rising, found.falling, found.dues)
        for which, entry in popped:
            if entry[-1] not in fired and entry[-1] in members:
                heaps[which].push(entry)
        return list(fired)

    def _others(self, place: _Place, bands: tuple[Band, ...], values: tuple[Number, ...], time: float) -> bool:
        """Whether the attributes after the first one let it be delivered too."""
        for at in range(1, len(bands)):
            band = bands[at]
            silent = band.heartbeat_seconds is not None and time >= place.time + band.heartbeat_seconds
            if not silent and not moved(values[at], place.values[at], band):
                return False
        return True

    def _move(self, topic: str, found: _Topic, fired: list[int], values: tuple[Number, ...], time: float) -> None:
        """This event is the reference of those that it fired."""
        places = found.places
        before = len(places)
        many = 4 * len(fired) > before
        for one in fired:
            new = places[one] = _placed(one, self._members[one][1][0], values, time)
            if not many:
                if new.rise is not None:
                    found.rising.push(new.rise)
                if new.fall is not None:
                    found.falling.push(new.fall)
                if new.due is not None:
                    found.dues.push(new.due)
        self._count(len(places) - before)
        found.pushed += len(fired)
        if many or found.pushed > len(places) + DYNAMIC_STALE_MIN:
            _stack_anew(found)
        self._topics[topic] = self._topics.pop(topic)  # the one that was delivered last stands last

    def _sweep(self) -> None:
        """Let go of what ended subscriptions had."""
        self._over = 0
        members = self._members
        self._order = [one for one in self._order if one in members]
        for topic, found in list(self._topics.items()):
            kept = {one: place for one, place in found.places.items() if one in members}
            self._count(len(kept) - len(found.places))
            found.places = kept
            found.fresh = {one: None for one in found.fresh if one in members}
            if not kept:
                del self._topics[topic]
            else:
                _stack_anew(found)


def _widened(band: Band, precision: Number | None, most: Number) -> Band:
    """Twice as wide; a band without width becomes an eighth of the most."""
    bound = most if precision is None or band.percent else most / precision
    width = max(band.width, min(bound, max(2 * band.width, bound / 8)))
    return replace(band, width=width)


def _placed(one: int, band: Band, values: tuple[Number, ...], time: float) -> _Place:
    """What a subscription has that was sent these values."""
    first = values[0]
    rise = (*edge_of(first, band), one) if band.rises else None
    fall = (*edge_of(-first, band), one) if band.falls else None
    due = None if band.heartbeat_seconds is None else (time + band.heartbeat_seconds, one)
    return _Place(rise, fall, due, time, values)


def _stack_anew(found: _Topic) -> None:
    """Make the queues of a topic from what is current."""
    places = found.places.values()
    found.pushed = 0
    found.rising = Nearest(place.rise for place in places if place.rise is not None)
    found.falling = Nearest(place.fall for place in places if place.fall is not None)
    found.dues = Nearest(place.due for place in places if place.due is not None)

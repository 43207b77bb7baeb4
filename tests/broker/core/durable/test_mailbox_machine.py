"""The mailbox against a dumb twin, which knows of each position by itself where it is.

The twin does not choose who gets what: it looks at what was handed out, and complains when that was not to be. After
every step the cursors, the counts and the numbers have to be those of the twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headgate.broker.core.durable import (
    Cursor,
    DurableLimits,
    DurableState,
    HandedOut,
    Mailbox,
    Place,
    Run,
    Section,
    decode_state,
    encode_state,
    join,
    runs_of,
)
from headgate.protocol.errors import Refused

PLACES = (Place("ann", 1), Place("bob", 7))
CLIENTS = ("x", "y", "z")
ACK, NAK, PROGRESS, TERM = range(4)
SMALL = DurableLimits(waiting_runs=8, owed_runs=6, held=3, hand_out_events=4, handed_ahead=3, clients=2)

Spot = tuple[Place, int]


@dataclass(slots=True)
class Where:
    """Where an event is: `waiting`, `unfed`, `again`, `delayed` or `out`, and how often it was handed out."""

    state: str
    delivered: int = 0
    due: float = 0.0
    client: str = ""
    number: int = 0


class MailboxMachine(RuleBasedStateMachine):
    """One durable subscription, its coordinators one after the other, and everything that happens to it."""

    sharing = "exclusive"
    limits = DurableLimits()

    @initialize(
        max_deliver=st.sampled_from([0, 0, 2]),
        backoff=st.sampled_from([(), (1.0, 3.0)]),
        windows=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    )
    def begin(self, max_deliver: int, backoff: tuple[float, ...], windows: list[int]) -> None:
        self.now = 0.0
        self.values: dict[Place, list[int]] = {place: [] for place in PLACES}
        self.firsts = dict.fromkeys(PLACES, 0)
        self.state = DurableState(
            "orders",
            condition="0",
            sharing=self.sharing,
            max_deliver=max_deliver,
            backoff=backoff,
            max_unacked=7,
            starts=dict.fromkeys(PLACES, 0),
        )
        self.box = Mailbox(self.state, self.now, self.limits)
        self.written = [self.box.snapshot()]
        self.unwritten: list[DurableState] = []
        self.windows: dict[str, int] = {}
        self.reached: dict[str, int] = {}
        self.places: dict[Spot, Where] = {}
        self.settled: set[Spot] = set()
        self.dead: set[Spot] = set()
        self.ever: set[Spot] = set()  # handed out by any coordinator
        self.upto = dict.fromkeys(PLACES, 0)
        self.known = dict.fromkeys(PLACES, 0)
        self.trimmed = dict.fromkeys(PLACES, 0)
        self.flagged = dict.fromkeys(PLACES, 0)
        self.marks = dict.fromkeys(PLACES, 0)
        self.number = 0
        self.pending_missed = 0
        for client, window in zip(CLIENTS, windows, strict=False):
            self.attach(client, window, False)

    # --- What is true -------------------------------------------------------------------------------------------------

    def key(self, spot: Spot) -> int:
        """The hash of the key of an event."""
        return self.values[spot[0]][spot[1]] % 3

    def matches(self, spot: Spot) -> bool:
        place, position = spot
        value = self.values[place][position]
        wanted = [self.box.state.condition]
        wanted += [one.condition for one in self.box.state.sections if position < one.ends.get(place, 0)]
        return all(value >= int(condition) for condition in wanted)

    def spots(self, *states: str) -> list[Spot]:
        return sorted(spot for spot, where in self.places.items() if where.state in states)

    def front(self, place: Place) -> int:
        waiting = [position for where, position in self.spots("waiting") if where == place]
        return min(waiting, default=max(self.known[place], self.upto[place]))

    # --- Feeding ------------------------------------------------------------------------------------------------------

    def tell(self, place: Place, start: int, upto: int) -> None:
        runs = runs_of(at for at in range(start, upto) if self.matches((place, at)))
        keys = [self.values[place][at] % 3 for run in runs for at in range(*run)]
        first, known = self.firsts[place], self.known[place]
        expected, self.pending_missed = self.pending_missed, 0
        if first > self.trimmed[place]:
            expected += max(0, first - max(known, self.upto[place]))
            for spot in self.spots("waiting", "unfed", "again", "delayed"):
                if spot[0] == place and spot[1] < first:
                    expected += 1
                    self.settle_spot(spot)
            self.trimmed[place] = first
            self.settled |= {(place, at) for at in range(max(known, self.upto[place]), first)}
            self.known[place] = known = max(known, first)
        takes = start <= known < upto and self.box.wants_feed
        missed = self.box.fed(place, first, start, upto, runs, keys, int(self.now * 1e6), self.now)
        missed += self.box.take_missed()
        assert missed == expected, f"{missed} events are lost, not {expected}"
        if not takes:
            return
        for at in range(known, upto):
            spot = place, at
            where = self.places.get(spot)
            if at >= self.upto[place]:
                if self.matches(spot):
                    self.places[spot] = Where("waiting", 1 if at < self.flagged[place] else 0)
                else:
                    self.settled.add(spot)
            elif where is not None and where.state == "unfed":
                if self.matches(spot):
                    where.state = "again"
                else:
                    self.settle_spot(spot)
        self.known[place] = upto

    def settle_spot(self, spot: Spot) -> None:
        self.places.pop(spot, None)
        self.settled.add(spot)

    @rule(place=st.sampled_from(PLACES), values=st.lists(st.integers(0, 8), max_size=8))
    def publish(self, place: Place, values: list[int]) -> None:
        self.values[place] += values
        end = len(self.values[place])
        begin = self.box.place_of(place)
        assert begin == self.known[place] or begin == self.trimmed[place]
        self.tell(place, max(begin, self.firsts[place]), end)

    @rule(
        place=st.sampled_from(PLACES), values=st.lists(st.integers(0, 8), min_size=3, max_size=12), write=st.booleans()
    )
    def publish_and_hand_out(self, place: Place, values: list[int], write: bool) -> None:
        self.publish(place, values)
        self.hand_out(write)
        self.hand_out(True)

    @rule(place=st.sampled_from(PLACES), ends=st.tuples(st.integers(0, 60), st.integers(0, 60)))
    def tell_again(self, place: Place, ends: tuple[int, int]) -> None:
        """Facts come in any order, and more than once."""
        start, upto = sorted(min(end, len(self.values[place])) for end in ends)
        self.tell(place, max(start, self.firsts[place]), max(upto, self.firsts[place]))

    @rule(place=st.sampled_from(PLACES), some=st.integers(1, 4), told=st.booleans())
    def trim(self, place: Place, some: int, told: bool) -> None:
        self.firsts[place] = min(len(self.values[place]), self.firsts[place] + some)
        if told:
            self.tell(place, self.firsts[place], self.firsts[place])

    # --- Clients ------------------------------------------------------------------------------------------------------

    @rule(client=st.sampled_from(CLIENTS), window=st.integers(1, 9), takeover=st.booleans())
    def attach(self, client: str, window: int, takeover: bool) -> None:
        others = [one for one in self.windows if one != client]
        try:
            replaced = self.box.attach(client, window, self.now, takeover)
        except Refused:
            is_taken = bool(others) and self.box.state.sharing == "exclusive" and not takeover
            assert is_taken or len(others) >= self.limits.clients
            self.gone([client] if client in self.windows else [])
            return
        exclusive = self.box.state.sharing == "exclusive"
        assert not (exclusive and others and not takeover)
        assert replaced == (others if exclusive else [])
        self.gone([one for one in self.windows if one == client or one in replaced])
        self.windows[client] = window

    @precondition(lambda self: self.windows)
    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(sorted(self.windows)))
        self.box.detach(client, self.now)
        self.gone([client])

    def gone_if_any(self, client: str) -> None:
        self.box.detach(client, self.now)
        self.gone([client] if client in self.windows else [])

    def gone(self, clients: Iterable[str]) -> None:
        for client in clients:
            del self.windows[client]
            reached = self.reached.pop(client, 0)
            numbers = {spot: self.places[spot].number for spot in self.out(client)}
            begun = min((number for number in numbers.values() if number > reached), default=0)
            for spot, number in numbers.items():
                if number > max(begun, reached):
                    self.places[spot].delivered = max(1, self.places[spot].delivered - 1)
                self.fail(spot)

    def out(self, client: str) -> list[Spot]:
        return [spot for spot in self.spots("out") if self.places[spot].client == client]

    def fail(self, spot: Spot, delay: float | None = None) -> None:
        where, state = self.places[spot], self.box.state
        if spot[1] < self.trimmed[spot[0]]:
            self.pending_missed += 1
            self.settle_spot(spot)
        elif state.max_deliver and where.delivered >= state.max_deliver:
            self.bury(spot)
        else:
            if delay is None:
                delay = state.backoff[min(where.delivered, len(state.backoff)) - 1] if state.backoff else 0.0
            self.places[spot] = Where("delayed" if delay > 0 else "again", where.delivered, self.now + delay)

    def bury(self, spot: Spot) -> None:
        self.settle_spot(spot)
        self.dead.add(spot)

    # --- Handing out --------------------------------------------------------------------------------------------------

    @rule(write=st.booleans())
    def hand_out(self, write: bool) -> None:
        if self.box.reserve() or write:
            self.keep(write)
        self.due()
        for one in self.box.hand_out(self.now):
            self.look(one)
        self.nothing_is_left()

    def due(self) -> None:
        for spot in self.spots("delayed"):
            if self.places[spot].due <= self.now:
                self.places[spot].state = "again"

    def look(self, one: HandedOut) -> None:
        """What went out was to go out, to that client, with these numbers and counts."""
        client = str(one.client)
        positions = [at for run in one.runs for at in range(*run)]
        assert positions == sorted(set(positions))
        assert one.first == (self.box.state.generation << 32) + self.number + 1
        assert len(positions) <= self.limits.hand_out_events
        assert one.counts == () or len(one.counts) == len(positions)
        if self.box.state.sharing in ("exclusive", "failover"):
            assert client == next(iter(self.windows)), "only the first client gets something"
        for index, position in enumerate(positions):
            spot = one.place, position
            where = self.places[spot]
            assert where.state in ("waiting", "again"), f"{spot} is {where.state}, and was handed out"
            count = one.counts[index] if one.counts else 1
            assert count == where.delivered + 1, f"{spot} goes out with count {count}, after {where.delivered} times"
            assert count > 1 or spot not in self.ever, f"{spot} went out before, and is not flagged"
            assert position < self.marks[one.place], f"{spot} goes out behind the mark that is written"
            if where.state == "waiting":
                self.in_order(spot)
            else:
                assert all(two.state != "waiting" for two in self.passed_over(spot)), "what goes out again goes first"
            self.number += 1
            number = (self.box.state.generation << 32) + self.number
            due = self.now + self.box.state.ack_wait
            self.places[spot] = Where("out", count, due, client, number)
            self.ever.add(spot)
            if self.box.state.sharing.startswith("key:"):
                others = {self.places[two].client for two in self.spots("out") if self.key(two) == self.key(spot)}
                assert others == {client}, f"events of one key are with {others}"
        assert len(self.out(client)) <= min(self.windows[client], self.box.state.max_unacked)

    def passed_over(self, spot: Spot) -> list[Where]:
        """What of the same log and key is before an event and could have gone out."""
        keyed = self.box.state.sharing.startswith("key:")
        return [
            self.places[two]
            for two in self.spots("waiting", "again")
            if two[0] == spot[0] and two[1] < spot[1] and (not keyed or self.key(two) == self.key(spot))
        ]

    def in_order(self, spot: Spot) -> None:
        assert not self.passed_over(spot), f"{spot} goes out before others"

    def nothing_is_left(self) -> None:
        """Who has room gets what there is."""
        if self.limits is SMALL:
            self.hold_passed_over()
            return
        room = {
            client: min(window, self.box.state.max_unacked) - len(self.out(client))
            for client, window in self.windows.items()
        }
        sharing = self.box.state.sharing
        if sharing == "shared":
            takes = any(left > 0 for left in room.values())
        elif sharing.startswith("key:"):
            takes = bool(room) and all(left > 0 for left in room.values())
        else:
            takes = bool(room) and next(iter(room.values())) > 0
        if takes:
            behind = {place for place, at in self.spots("again") if at >= self.marks[place]}
            left = [spot for spot in self.spots("again", "waiting") if spot[1] < self.marks[spot[0]]]
            assert {place for place, _ in left} <= behind, "nobody gets what there is"
        self.hold_passed_over()

    def hold_passed_over(self) -> None:
        """What was passed over for its key does not wait any more, but is held: the cursor tells."""
        cursors = self.keep(False).cursors
        for spot in self.spots("waiting"):
            if spot[1] < cursors[spot[0]].upto:
                assert self.box.state.sharing.startswith("key:")
                self.places[spot].state = "again"

    # --- Settling -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.number)
    @rule(
        client=st.sampled_from(CLIENTS),
        verb=st.sampled_from([ACK, ACK, NAK, PROGRESS, TERM]),
        ends=st.lists(st.integers(-2, 12), min_size=2, max_size=6),
        cumulative=st.booleans(),
        delay=st.sampled_from([None, 0.0, 2.0]),
    )
    def settle(self, client: str, verb: int, ends: list[int], cumulative: bool, delay: float | None) -> None:
        mine = {self.places[spot].number: spot for spot in self.out(client)}
        base = min(mine, default=(self.box.state.generation << 32) + 1)
        ends = sorted({base + end for end in ends})
        spans = [0, ends[-1]] if cumulative else ends[: len(ends) // 2 * 2]
        named = [
            number
            for first, last in zip(spans[::2], spans[1::2], strict=True)
            for number in (range(first, last + 1) if first else sorted(one for one in mine if one <= last))
        ]
        named = sorted(set(named))
        stale = self.box.settle(client, verb, spans, delay, "poison", self.now)
        refused = [at for first, last in zip(stale[::2], stale[1::2], strict=True) for at in range(first, last + 1)]
        assert sorted(refused) == [number for number in named if number not in mine]
        reached = min(max(spans[1::2], default=0), (self.box.state.generation << 32) + self.number)
        if client in self.windows and reached > self.reached.get(client, 0):
            self.reached[client] = reached
            for number, spot in mine.items():
                if number > reached:
                    self.places[spot].due = max(self.places[spot].due, self.now + self.box.state.ack_wait)
        for number in named:
            if number not in mine:
                continue
            spot = mine[number]
            if verb == ACK:
                self.settle_spot(spot)
            elif verb == NAK:
                self.fail(spot, delay)
            elif verb == PROGRESS:
                self.places[spot].due = self.now + self.box.state.ack_wait
            else:
                self.bury(spot)

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 29.0, 31.0]))
    def wake(self, seconds: float) -> None:
        self.now += seconds
        late = [spot for spot in self.spots("out") if self.places[spot].due <= self.now]
        dues = [self.places[spot].due for spot in self.spots("out", "delayed")]
        assert self.box.next_deadline() <= min(dues, default=inf)
        self.box.wake(self.now)
        self.due()
        for spot in late:
            self.fail(spot)

    @rule(every=st.booleans())
    def replay_dead(self, every: bool) -> None:
        self.box.take_dead()
        chosen = {spot for spot in self.dead if every or spot[1] % 2}
        back = [spot for spot in chosen if self.trimmed[spot[0]] <= spot[1] < self.front(spot[0])]
        back = [spot for spot in back if spot not in self.places]  # after a seek it may be owed again
        assert self.box.replay_dead(lambda one: (one.place, one.position) in chosen) == len(back)
        self.dead -= chosen
        for spot in back:
            self.settled.discard(spot)
            self.places[spot] = Where("again", 1)

    # --- Changes ------------------------------------------------------------------------------------------------------

    @rule(condition=st.integers(0, 8), now=st.booleans())
    def amend(self, condition: int, now: bool) -> None:
        old = self.keep(False)
        before = {(place, at) for place in PLACES for at in range(self.firsts[place], self.front(place))}
        matched = {spot for spot in before if self.matches(spot)}
        state = replace(old, version=old.version + 1, condition=str(condition))
        added: dict[Place, list[Run]] = {}
        keys: dict[Place, list[int]] = {}
        if now:
            ends = {place: len(self.values[place]) for place in PLACES}
            state.sections = (*old.sections, Section(old.condition, ends))[-64:]
        else:
            state.sections = ()
        new = [spot for spot in sorted(before - matched) if not now and self.values[spot[0]][spot[1]] >= condition]
        for place in PLACES if new else ():
            added[place] = runs_of(at for where, at in new if where == place)
            keys[place] = [self.values[where][at] % 3 for where, at in new if where == place]
        fronts = {place: self.front(place) for place in PLACES}
        self.box.amended(state, added, keys)
        for place in PLACES:
            if self.known[place] > self.upto[place]:
                self.known[place] = self.upto[place] = fronts[place]
            self.forget_from(place, self.upto[place], "waiting")
        for spot in new:
            # One that was settled as not matching; what is owed already stays as it is.
            if spot not in self.places and self.trimmed[spot[0]] <= spot[1] < self.upto[spot[0]]:
                self.settled.discard(spot)
                self.places[spot] = Where("again", 1 if old.version > 1 else 0)

    def forget_from(self, place: Place, position: int, *states: str) -> None:
        for spot in self.spots(*states):
            if spot[0] == place:
                del self.places[spot]
        self.settled = {spot for spot in self.settled if spot[0] != place or spot[1] < position}

    @rule(place=st.sampled_from(PLACES), position=st.integers(0, 60))
    def seek(self, place: Place, position: int) -> None:
        position = max(self.firsts[place], min(position, len(self.values[place])))
        self.keep(False)
        self.box.seek({place: position})
        self.flagged[place] = self.box.snapshot().handed.get(place, 0)
        self.forget_from(place, position, "waiting", "unfed", "again", "delayed", "out")
        self.settled |= {(place, at) for at in range(position)}
        self.upto[place] = self.known[place] = position

    # --- Disks --------------------------------------------------------------------------------------------------------

    def keep(self, write: bool) -> DurableState:
        snapshot = self.box.snapshot()
        assert decode_state(encode_state(snapshot)) == snapshot
        self.unwritten.append(snapshot)
        if write:
            self.box.written(snapshot)
            self.written += self.unwritten
            self.unwritten = []
            self.marks = {place: snapshot.handed.get(place, 0) for place in PLACES}
        return snapshot

    @rule()
    def write(self) -> None:
        self.keep(True)

    @rule(older=st.integers(0, 5), newer=st.booleans(), windows=st.lists(st.integers(1, 9), max_size=3))
    def restart(self, older: int, newer: bool, windows: list[int]) -> None:
        """Somebody else becomes coordinator, knows what was written last, and some older states, or a newer one."""
        state = self.written[-1]
        state = join(state, self.written[max(0, len(self.written) - 1 - older)])
        if newer and self.unwritten:
            state = join(self.unwritten[-1], state)
        state = decode_state(encode_state(state))
        assert not self.lost(state), f"{self.lost(state)} were never settled"
        state.generation += 1
        self.box = Mailbox(state, self.now, self.limits)
        self.written, self.unwritten = [state], []
        self.windows, self.places, self.number, self.pending_missed = {}, {}, 0, 0
        self.reached = {}
        self.trimmed = dict.fromkeys(PLACES, 0)
        self.settled = set()
        self.dead = {(one.place, one.position) for one in state.dead}
        for place in PLACES:
            cursor = state.cursors.get(place, Cursor(0))
            owed = {at for run in cursor.owed for at in range(*run)}
            self.upto[place] = cursor.upto
            self.known[place] = min(owed, default=cursor.upto)
            self.flagged[place] = self.marks[place] = state.handed.get(place, 0)
            counts = state.counts.get(place, {})
            for at in range(cursor.upto):
                if at in owed:
                    least = 1 if at < self.flagged[place] else 0
                    self.places[place, at] = Where("unfed", counts.get(at, least))
                else:
                    self.settled.add((place, at))
        for client, window in zip(CLIENTS, windows, strict=False):
            self.attach(client, window, False)

    def lost(self, state: DurableState) -> set[Spot]:
        """What a state says to be settled and is not, as far as nothing was made to be owed again since."""
        if state.rewinds != self.box.state.rewinds or state.version != self.box.state.version:
            return set()
        gone = {
            (place, at)
            for place, cursor in state.cursors.items()
            for at in range(cursor.upto)
            if not any(start <= at < stop for start, stop in cursor.owed)
        }
        return gone - self.settled

    # --- What always holds --------------------------------------------------------------------------------------------

    @invariant()
    def numbers_and_cursors_are_those_of_the_twin(self) -> None:
        box = self.box
        box.validate()
        again = self.spots("unfed", "again", "delayed", "waiting")
        assert box.waiting == len(again)
        assert box.unacked == len(self.spots("out"))
        assert box.clients == len(self.windows)
        repeated = [spot for spot in self.spots("unfed", "again", "delayed") if self.places[spot].delivered]
        repeated += [spot for spot in self.spots("out") if self.places[spot].delivered > 1]
        assert box.redelivered == len(repeated)
        before = box.state
        state = self.keep(False)
        for place in PLACES:
            cursor = state.cursors[place]
            owed = [at for where, at in self.spots("unfed", "again", "delayed", "out") if where == place]
            assert cursor == Cursor(self.front(place), tuple(runs_of(owed)))
            assert state.counts.get(place, {}) == {
                at: self.places[place, at].delivered for at in owed if self.places[place, at].delivered > 1
            }
            assert {(place, at) for at in range(cursor.upto)} - self.settled == {(place, at) for at in owed}
            assert box.position()[place] == min(owed, default=cursor.upto)
            if before.rewinds == state.rewinds and place in before.cursors:
                assert cursor.upto >= before.cursors[place].upto, "a cursor goes back by a seek alone"
        assert {(one.place, one.position) for one in state.dead} == self.dead

    def teardown(self) -> None:
        """In the end a client that takes everything gets all that matches, once, and then nothing is owed."""
        if not hasattr(self, "box"):
            return
        for client in list(self.windows):
            self.box.detach(client, self.now)
            self.gone([client])
        self.box.attach("last", 100, self.now)
        self.windows["last"] = 100
        for _ in range(200):
            self.now += 4.0
            self.due()
            for place in PLACES:
                begin = self.box.place_of(place)
                assert begin is not None
                self.tell(place, max(begin, self.firsts[place]), len(self.values[place]))
            self.hand_out(True)
            self.settle("last", ACK, [0, 1_000], True, None)
            if not self.places and all(self.known[place] == len(self.values[place]) for place in PLACES):
                break
        else:
            raise AssertionError(f"some are never handed out: {self.places}")
        assert self.box.waiting == self.box.unacked == 0


class FailoverMachine(MailboxMachine):
    sharing = "failover"


class SharedMachine(MailboxMachine):
    sharing = "shared"


class KeyMachine(MailboxMachine):
    sharing = "key:symbol"


class SmallMachine(MailboxMachine):
    limits = SMALL


class SmallSharedMachine(SharedMachine):
    limits = SMALL


class SmallKeyMachine(KeyMachine):
    limits = SMALL


SETTINGS = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)
MACHINES = (
    MailboxMachine,
    FailoverMachine,
    SharedMachine,
    KeyMachine,
    SmallMachine,
    SmallSharedMachine,
    SmallKeyMachine,
)
for _machine in MACHINES:
    _machine.TestCase.settings = SETTINGS

TestExclusive = MailboxMachine.TestCase
TestFailover = FailoverMachine.TestCase
TestShared = SharedMachine.TestCase
TestByKey = KeyMachine.TestCase
TestExclusiveWithLittleRoom = SmallMachine.TestCase
TestSharedWithLittleRoom = SmallSharedMachine.TestCase
TestByKeyWithLittleRoom = SmallKeyMachine.TestCase


def walk(machine: MailboxMachine, random: Random, steps: int) -> None:
    """Long walks with a client at work for most of the time: deeper than examples that are made to be short."""

    def values(most: int) -> list[int]:
        return [random.randrange(9) for _ in range(random.randrange(most))]

    def settle() -> None:
        busy = [client for client in CLIENTS if machine.out(client)] or list(CLIENTS)
        ends = [random.randrange(-1, 12) for _ in range(random.choice([2, 2, 4]))]
        verb = random.choice([ACK, ACK, ACK, NAK, PROGRESS, TERM])
        delay = random.choice([None, None, 0.0, 2.0])
        machine.settle(
            random.choice(busy if random.random() < 0.9 else CLIENTS), verb, ends, random.random() < 0.2, delay
        )

    def windows() -> list[int]:
        return [random.randrange(1, 10) for _ in range(random.randrange(4))]

    machine.begin(random.choice([0, 0, 2]), random.choice([(), (1.0, 3.0)]), windows())
    moves: dict[Callable[[], None], int] = {
        lambda: machine.publish_and_hand_out(random.choice(PLACES), values(8), random.random() < 0.5): 12,
        lambda: machine.publish(random.choice(PLACES), values(8)): 2,
        lambda: machine.hand_out(random.random() < 0.5): 10,
        settle: 14 if machine.sharing == "exclusive" else 20,
        lambda: machine.attach(random.choice(CLIENTS), random.randrange(1, 10), random.random() < 0.5): 4,
        lambda: machine.wake(random.choice([0.5, 1.0, 3.0, 29.0, 31.0])): 3,
        lambda: machine.tell_again(random.choice(PLACES), (random.randrange(60), random.randrange(60))): 2,
        lambda: machine.trim(random.choice(PLACES), random.randrange(1, 5), random.random() < 0.5): 1,
        lambda: machine.replay_dead(random.random() < 0.5): 1,
        lambda: machine.amend(random.randrange(9), random.random() < 0.5): 1,
        lambda: machine.seek(random.choice(PLACES), random.randrange(60)): 1,
        machine.write: 2,
        lambda: machine.restart(random.randrange(6), random.random() < 0.5, windows()): 1,
        lambda: machine.gone_if_any(random.choice(CLIENTS)): 2,
    }
    for _ in range(steps):
        (move,) = random.choices(list(moves), list(moves.values()))
        move()
        machine.numbers_and_cursors_are_those_of_the_twin()
    machine.teardown()


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", range(25))
def test_a_long_walk(machine: type[MailboxMachine], seed: int) -> None:
    walk(machine(), Random(seed), 80)

"""Handing and bodies: whatever is handed out is found and sent, in order, under its numbers; and by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.delivery import ClientSession
from headgate.broker.core.durable import bodies as bodies_room
from headgate.broker.core.durable import handing as handing_room
from headgate.broker.core.durable.bodies import BODIES, Bodies
from headgate.broker.core.durable.handing import HANDING, Handing
from headgate.broker.core.durable.messages import Detach, Detached, Fetch, HandOut, Missed, Place, Settle, Settled
from headgate.broker.core.durable.runs import Run, count_of, join_runs, runs_of
from headgate.broker.core.effects import ReadRows
from headgate.broker.core.inputs import Stored
from headgate.protocol.data import LogName, decode_record, join_u32
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Ack, Acked, AckVerb, Ended, Fetched, Gap, Handed, Suback
from tests.support.feed_world import FeedWorld
from tests.support.log_disk import EPOCH

ANN, BOB = Place("ann", EPOCH), Place("bob", EPOCH)


@dataclass
class Other:
    """Another broker: its log and its disk, and what it is asked."""

    name: str
    identifier: int
    world: FeedWorld = field(default_factory=FeedWorld)
    link: int | None = 1
    silent: bool = False


class Home:
    """Broker `ann` with one client, and other brokers that may have bodies."""

    def __init__(self, others: Sequence[str] = ()) -> None:
        self.world = FeedWorld()
        self.others = [Other(name, number) for number, name in enumerate(others, 1)]
        self.cluster: Any = SimpleNamespace(
            linked=lambda: [one for one in self.others if one.link is not None],
            peers=SimpleNamespace(by_identifier={one.identifier: one for one in self.others}),
        )
        world = self.world
        self.bodies = Bodies("ann", world.effects, world.log, self.cluster, self.tell, world.timers)
        streams: Any = SimpleNamespace(schemas={"quotes": {"attributes": {"coarse": {"precision": 1}}}})
        self.handing = Handing(world.effects, self.bodies, self.tell, world.timers, streams, 1000)
        self.session = ClientSession(b"key", "client", 3, 0, 0)
        self.number = self.handing.begin(self.session, 4, 99)
        self.asked: list[tuple[int, Fetch]] = []
        self.said: list[Any] = []
        """To the client."""
        self.told: list[Any] = []
        """To the coordinator."""
        self.ids: dict[tuple[str, int], str] = {}
        """The event of each id that was seen; the log gives them out from 0."""

    def tell(self, identifier: int, message: Any) -> None:
        if isinstance(message, Fetch):
            self.asked.append((identifier, message))
        else:
            assert identifier == 99
            self.told.append(message)

    def take(self) -> None:
        """What was said goes where it belongs."""
        self.world.ask_disk()
        sent, self.world.sent = self.world.sent, []
        self.said += [one.message for one in sent]

    def settle(self) -> None:
        """Until nothing more happens at once."""
        self.take()
        while self.asked or self.world.disk.asked:
            self.world.answer()
            asked, self.asked = self.asked, []
            for identifier, fetch in asked:
                other = next(one for one in self.others if one.identifier == identifier)
                if not other.silent and other.link is not None:
                    self.answer(other, fetch)
            self.take()
        self.handing.validate()
        self.bodies.validate()

    def answer(self, other: Other, fetch: Fetch) -> None:
        """Another broker looks, by the same code."""
        world = other.world
        asker: Any = SimpleNamespace(peers=SimpleNamespace(by_identifier={7: SimpleNamespace(link=9)}))
        there = Bodies(other.name, world.effects, world.log, asker, self.tell, world.timers)
        there.asked(7, fetch, 0.0)
        world.ask_disk()
        while world.disk.asked:
            world.answer()
        fetched = world.sent.pop().message
        assert isinstance(fetched, Fetched) and not world.sent
        self.bodies.fetched(other.identifier, fetched, self.world.now)

    def hand_out(
        self, first: int, runs: Sequence[Run], place: Place = ANN, counts: Sequence[int] = (), ack_wait: int = 86_400
    ) -> None:
        packed = join_u32(counts) if counts else b""
        message = HandOut(self.number, first, packed, "quotes", place, join_runs(runs), 1000 * ack_wait)
        self.handing.hand_out(message, self.world.now)
        self.settle()

    def wake(self, seconds: float) -> None:
        self.world.now += seconds
        for key in self.world.timers.due(self.world.now):
            if key == HANDING:
                self.handing.go_on(self.world.now)
            elif key == BODIES:
                self.bodies.go_on(self.world.now)
        self.settle()

    def ack(self, *spans: int, verb: AckVerb = AckVerb.ACK, subscription: int = 4, request: int = 0) -> None:
        self.handing.settle(self.session, Ack(request, subscription, verb, list(spans)), self.world.now)
        self.settle()

    @property
    def events(self) -> list[tuple[int, int, str]]:
        """(delivery number, how often, body) of all that was sent."""
        found = []
        for handed in self.said:
            if isinstance(handed, Handed):
                portion, at = handed.portion, 0
                counts = list(handed.count_list()) or [1] * portion.count
                assert len(counts) == portion.count == len(portion.rows())
                for place in range(portion.count):
                    length = int.from_bytes(portion.lengths[4 * place : 4 * place + 4], "little")
                    body = decode_record(portion.records[at : at + length])[1].decode()
                    identity = portion.origin, portion.base + portion.rows()[place]
                    assert self.ids.setdefault(identity, body) == body
                    found.append((handed.first + place, counts[place], body))
                    at += length
        return found

    @property
    def messages(self) -> list[Handed]:
        return [one for one in self.said if isinstance(one, Handed)]


def commit(home: Home, *batches: Sequence[Any]) -> None:
    """Batches of ours pass the high watermark."""
    for batch in batches:
        home.world.append(batch)
    for happened in home.world.disk.answer():
        if isinstance(happened, Stored):
            home.world.log.stored(happened, 0.0)
            home.bodies.committed(home.world.log.take_committed())
        else:
            home.world.happens(happened)


def store(world: FeedWorld, *batches: Sequence[Any], broker: str = "ann") -> None:
    """Batches are in a log; not in memory."""
    for batch in batches:
        world.append(batch, held=None if broker == "ann" else world.copy(broker))
    world.answer()
    world.settle()


def test_what_was_just_committed_is_sent_without_the_disk() -> None:
    home = Home()
    commit(home, [1, 2], [3])
    home.hand_out(10, [(0, 3)])
    assert home.events == [(10, 1, "1"), (11, 1, "2"), (12, 1, "3")]
    assert (home.bodies.from_memory, home.bodies.from_disk) == (1, 0)


def test_what_is_not_in_memory_is_read_and_goes_out_before_what_came_later() -> None:
    home = Home()
    store(home.world, [1, 2])
    home.handing.hand_out(HandOut(home.number, 10, b"", "quotes", ANN, join_runs([(0, 2)])), 0.0)
    home.world.ask_disk()
    read = home.world.read()
    commit(home, [3])
    home.handing.hand_out(HandOut(home.number, 12, b"", "quotes", ANN, join_runs([(2, 3)])), 0.0)
    home.take()
    assert home.events == []
    home.world.happens(read)
    home.hand_out(13, [(2, 3)])
    assert [number for number, _, _ in home.events] == [10, 11, 12, 13]


def test_memory_begins_anew_behind_a_hole_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    commit(home, [1])
    store(home.world, [2])
    commit(home, [3], [4])
    home.hand_out(1, [(2, 4)])
    assert home.bodies.from_memory == 1
    home.hand_out(3, [(0, 1)])
    assert home.bodies.from_disk == 1
    monkeypatch.setattr(bodies_room, "BODIES_RECENT_BYTES", 1500)
    commit(home, [5], [6])
    home.bodies.validate()
    home.hand_out(4, [(4, 6)])
    home.hand_out(6, [(5, 6)])
    assert (home.bodies.from_memory, home.bodies.from_disk) == (2, 2)
    assert [body for _, _, body in home.events] == ["3", "4", "1", "5", "6", "6"]


def test_it_is_asked_of_the_broker_that_wrote_it_then_of_others() -> None:
    home = Home(["cid", "bob"])
    for other in home.others:
        store(other.world, [1, 2], [3], broker="bob")
    home.hand_out(1, [(0, 3)], BOB)
    assert [body for _, _, body in home.events] == ["1", "2", "3"]
    home.others[1].world.log.logs.clear()
    home.hand_out(4, [(1, 2)], BOB)
    assert home.events[-1] == (4, 1, "2"), "bob lost it, cid has a copy"
    home.others[1].silent = True
    home.hand_out(5, [(2, 3)], BOB)
    assert len(home.events) == 4
    home.wake(bodies_room.FETCH_SECONDS)
    assert home.events[-1] == (5, 1, "3")
    home.hand_out(6, [(0, 1)], BOB)
    home.others[1].link = None
    home.bodies.link_down(home.others[1], home.world.now)  # type: ignore[arg-type]
    home.settle()
    assert home.events[-1] == (6, 1, "1")


def test_a_log_that_nobody_has_is_looked_for_again_and_keeps_no_other_one() -> None:
    home = Home(["bob"])
    store(home.world, [7])
    home.hand_out(1, [(0, 2)], BOB)
    home.hand_out(3, [(2, 3)], BOB)
    home.hand_out(4, [(0, 1)])
    assert home.events == [(4, 1, "7")]
    home.wake(handing_room.HANDING_PAUSE_SECONDS)
    assert home.told[-1] == Settle(home.number, 0, AckVerb.PROGRESS, (1, 2, 3, 3), None, ""), "no fault of the client"
    store(home.others[0].world, [1, 2], [3], broker="bob")
    home.wake(2 * handing_room.HANDING_PAUSE_SECONDS)
    assert home.events[1:] == [(1, 1, "1"), (2, 1, "2"), (3, 1, "3")]
    assert not home.handing._attachments[home.number].missing
    home.hand_out(5, [(3, 4)], BOB)
    pauses = []
    for _ in range(6):
        due = home.world.timers.when(HANDING)
        pauses.append(due - home.world.now)
        home.wake(due - home.world.now)
    assert pauses == pytest.approx([0.25, 0.5, 1.0, 2.0, 2.0, 2.0])


def test_what_retention_took_is_left_out_and_numbers_stay() -> None:
    home = Home()
    store(home.world, [1, 2], [3], [4])
    home.world.trim(2)
    home.world.answer()
    home.hand_out(10, [(0, 2), (3, 4)], counts=[1, 1, 5])
    assert home.events == [(12, 5, "4")]
    home.hand_out(20, [(0, 1)])
    assert len(home.events) == 1


def test_damage_is_left_out() -> None:
    home = Home()
    store(home.world, [1], [2], [3])
    rows = home.world.disk.logs[home.world.own().name].rows
    rows[1].row = b"?"
    home.hand_out(1, [(0, 3)])
    assert home.events == [(1, 1, "1"), (3, 1, "3")]


def test_small_rows_of_one_moment_go_out_as_one_message_and_others_do_not() -> None:
    home = Home()
    store(home.world, [1], [2], [3])
    home.world.clock_us += 10**6
    store(home.world, [4], [5])
    home.hand_out(1, [(0, 5)])
    assert [(one.first, one.portion.count) for one in home.messages] == [(1, 3), (4, 2)]
    home.hand_out(6, [(0, 1), (2, 3)])
    assert (home.messages[-1].portion.count, list(home.messages[-1].portion.rows())) == (2, [0, 2])


def test_rows_of_two_lives_and_large_ones_go_out_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.world.append([1])
    home.world.append([2], origin="ann/2")
    home.world.answer()
    home.hand_out(1, [(0, 2)])
    assert [one.portion.origin for one in home.messages] == ["ann", "ann/2"]
    store(home.world, [3], [4])
    monkeypatch.setattr(handing_room, "HANDED_JOIN_BYTES", 1)
    home.hand_out(3, [(2, 4)])
    assert [one.portion.count for one in home.messages] == [1, 1, 1, 1]


def test_any_number_of_parts_goes_out_in_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_room, "HANDED_EVENTS", 1)
    home = Home()
    commit(home, list(range(2000)))
    home.hand_out(1, [(0, 2000)])
    assert len(home.events) == 2000


def test_a_copy_or_a_memory_that_has_only_the_beginning_is_not_asked() -> None:
    home = Home(["bob"])
    store(home.world, [1], broker="bob")
    store(home.others[0].world, [1], [2], broker="bob")
    home.hand_out(1, [(0, 2)], BOB)
    commit(home, [3])
    store(home.world, [4])
    home.hand_out(3, [(0, 2)])
    assert home.events == [(1, 1, "1"), (2, 1, "2"), (3, 1, "3"), (4, 1, "4")]


def test_a_part_of_the_disk_that_cannot_be_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies_room, "BODIES_READ_BYTES", 1)
    home = Home(["bob"])
    for world, place in ((home.world, ANN), (home.others[0].world, BOB)):
        store(world, [1, 2], [3, 4], [5], broker=place.broker)
        world.disk.unreadable[world.copy(place.broker).name] = 2
        home.hand_out(1, [(0, 5)], place)
        assert home.events[-3:] == [(1, 1, "1"), (2, 1, "2"), (5, 1, "5")]
        home.hand_out(1, [(2, 3), (4, 5)], place)
        assert home.events[-1] == (2, 1, "5")


def test_bytes_on_the_way_are_bounded_until_they_are_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_room, "HANDED_BYTES", 1)
    monkeypatch.setattr(handing_room, "HANDED_EVENTS", 2)
    home = Home()
    store(home.world, [1, 2, 3], [4, 5])
    home.hand_out(1, [(0, 5)])
    assert len(home.events) == 2
    home.ack(1, 1)
    home.ack(2, 2, verb=AckVerb.PROGRESS)
    assert len(home.events) == 2
    home.ack(2, 2)
    assert len(home.events) == 4
    home.ack(0, 4)
    assert [body for _, _, body in home.events] == ["1", "2", "3", "4", "5"]
    home.hand_out(6, [(0, 1)])
    assert len(home.events) == 5
    home.wake(handing_room.HANDED_SECONDS)
    assert len(home.events) == 6, "what was sent so long ago was handed out again"


def test_a_slow_client_gets_all_that_there_is_no_room_for_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_room, "HANDED_BYTES", 1)
    monkeypatch.setattr(handing_room, "HANDED_EVENTS", 1)
    home = Home()
    store(home.world, [1], [2], [3], [4], [5])
    home.hand_out(1, [(0, 3)], ack_wait=10)
    home.hand_out(4, [(3, 5)], ack_wait=10)
    for number in range(1, 5):
        home.wake(8.0)
        home.ack(number, number)
        assert [event[0] for event in home.events] == list(range(1, number + 2))
    home.hand_out(6, [(0, 2)], ack_wait=10)
    home.wake(5.0)
    home.ack(1, 1)
    home.wake(5.0)
    home.ack(5, 5)
    assert len(home.events) == 5, "it said nothing of them for so long that they were handed out again"


def test_what_waits_is_looked_at_by_what_it_was_selected_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition is changed while events wait here: SUBACK says the new one before the first that has it."""
    monkeypatch.setattr(handing_room, "HANDED_BYTES", 1)
    home = Home()
    store(home.world, [1], [2], [3], [4])
    first, second = [["boolean(//a)", ["n/a"]]], [["boolean(//b)", ["n/b"]]]
    home.handing.look_for(home.number, first)
    assert home.handing.told(home.number) == first
    home.hand_out(1, [(0, 1)])
    home.hand_out(2, [(1, 2)])
    home.handing.look_for(home.number, second)
    home.hand_out(3, [(2, 3)])
    home.handing.look_for(home.number, [])
    home.hand_out(4, [(3, 4)])
    for number in range(1, 5):
        home.ack(number, number)
    told = [
        one.checks if isinstance(one, Suback) else one.first for one in home.said if isinstance(one, Handed | Suback)
    ]
    assert told == [1, 2, second, 3, [], 4]
    assert all((one.request, one.subscription) == (0, 4) for one in home.said if isinstance(one, Suback))


def test_a_client_that_takes_nothing_is_sent_nothing() -> None:
    home = Home()
    store(home.world, [1])
    home.session.paused = True
    home.hand_out(1, [(0, 1)])
    assert not home.events and not home.world.disk.asked
    home.session.paused = False
    home.handing.resumed(home.session, 0.0)
    home.settle()
    assert home.events == [(1, 1, "1")]


def test_settlements_go_to_the_coordinator_and_their_answers_back() -> None:
    home = Home()
    home.handing.settle(home.session, Ack(8, 4, AckVerb.NAK, [1, 3], 2.5, ""), 0.0)
    assert home.told == [Settle(home.number, 8, AckVerb.NAK, (1, 3), 2500, "")]
    home.handing.settled(Settled(home.number, 8, (3, 3)), 0.0)
    home.handing.settled(Settled(home.number, 0, ()), 0.0)
    home.ack(1, 2, subscription=77, request=9)
    home.ack(1, 2, subscription=77)
    assert home.said == [Acked(8, [3, 3]), Acked(9, [1, 2])]


def test_a_cumulative_acknowledgement_is_of_what_was_sent() -> None:
    home = Home()
    commit(home, ["a", "b", "c"])
    home.hand_out(5, [(0, 1)], BOB)  # nobody has it
    home.hand_out(6, [(0, 3)])
    home.handing.settle(home.session, Ack(1, 4, AckVerb.ACK, [0, 7]), home.world.now)
    settled = [(one.request, one.spans) for one in home.told if isinstance(one, Settle) and one.verb == AckVerb.ACK]
    assert settled == [(0, (6, 7)), (1, ())]


def told_settled(home: Home) -> set[int]:
    """Delivery numbers of which the coordinator was told that they are settled."""
    spans = [one.spans for one in home.told if isinstance(one, Settle) and one.verb != AckVerb.PROGRESS]
    return {number for one in spans for at in range(0, len(one), 2) for number in range(one[at], one[at + 1] + 1)}


def test_cumulative_acknowledgements_of_one_message_one_after_the_other_are_all_told() -> None:
    home = Home()
    commit(home, list("abcdefghij"))
    home.hand_out(1, [(0, 10)])
    home.ack(2, 3)
    for last in range(1, 11):
        home.ack(0, last, request=last)
        assert told_settled(home) == set(range(1, max(last, 3) + 1))
    spans = [one.spans for one in home.told if isinstance(one, Settle) and one.spans]
    assert spans == [(2, 3), (1, 1), *((number, number) for number in range(4, 11))], "each is told once"


def test_what_does_not_count_as_on_its_way_any_more_is_acknowledged_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handing_room, "HANDED_BYTES", 1)
    home = Home()
    commit(home, ["a"], ["b"])
    home.hand_out(1, [(0, 1)])
    home.hand_out(2, [(1, 2)])
    home.wake(handing_room.HANDED_SECONDS)
    assert len(home.events) == 2
    home.ack(0, 2)
    assert told_settled(home) == {1, 2}


def test_numbers_that_a_client_says_nothing_of_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_room, "HANDED_RUNS", 2)
    home = Home()
    commit(home, ["a"])
    for number in (10, 20, 30):
        home.hand_out(number, [(0, 1)])
    home.ack(0, 40)
    assert told_settled(home) == {20, 30}


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=6),
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 30), st.integers(0, 9), st.sampled_from(["ack", "nak", "progress"])),
        max_size=25,
    ),
    st.randoms(use_true_random=False),
)
def test_by_brute_force_exactly_what_was_sent_and_is_not_settled_is_told(
    counts: list[int], acks: list[tuple[bool, int, int, str]], random: Any
) -> None:
    home = Home()
    total = sum(counts)
    commit(home, list(range(total)))
    parts, number, at = [], 1, 0
    for count in counts:
        parts.append((number, (at, at + count)))
        number += count + random.randint(0, 1)  # a number of another client
        at += count
    random.shuffle(parts)  # a log that nobody had comes late
    open_: set[int] = set()
    turn_of: dict[int, int] = {}
    behind: dict[int, int] = {}  # number -> the highest one that was sent before its message

    def had(last: int, number: int) -> bool:
        """Whether a client that has, or says, the one has had the other."""
        return turn_of[number] <= turn_of[last] if last in turn_of else behind[number] < last

    for turn, (is_cumulative, first, more, verb) in enumerate(acks):
        if parts and random.random() < 0.5:
            start, run = parts.pop()
            home.hand_out(start, [run])
            numbers = set(range(start, start + run[1] - run[0]))
            behind |= dict.fromkeys(numbers, max(turn_of, default=0))
            turn_of |= dict.fromkeys(numbers, turn)
            open_ |= numbers
        last, before = first + more, told_settled(home)
        home.ack(0 if is_cumulative else first, last, verb=AckVerb[verb.upper()])
        if is_cumulative:
            covered = {number for number in turn_of if number <= last and had(last, number)}
        else:
            covered = set(range(first, last + 1))
        if verb != "progress":
            expected = open_ & covered if is_cumulative else covered
            assert told_settled(home) - before == expected - before
            open_ -= covered
    assert sum(chunk.left for chunk in home.handing._attachments[home.number].chunks) == len(open_)


def test_losses_and_ends_are_told() -> None:
    home = Home()
    home.handing.missed(Missed(home.number, 5, "retention"), 0.0)
    home.handing.detached(Detached(home.number, ErrorCode.REPLACED, "taken over"), 0.0)
    home.handing.detached(Detached(home.number, ErrorCode.REPLACED, "taken over"), 0.0)
    home.settle()
    assert home.said == [Gap(4, 5, "retention"), Ended(4, ErrorCode.REPLACED, "taken over")]
    assert not home.told and not home.session.durables


def test_who_ends_is_detached_and_sent_nothing_more() -> None:
    home = Home()
    store(home.world, [1])
    home.handing.hand_out(HandOut(home.number, 1, b"", "quotes", ANN, join_runs([(0, 1)])), 0.0)
    home.handing.end(home.session, None)
    home.settle()
    assert not home.events and home.told == [Detach(home.number)]
    home.handing.end(home.session, None)
    assert len(home.told) == 1


def test_a_gap_between_two_events_is_read_with_them_unless_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    store(home.world, *[[f"{number} {'x' * 5000}"] for number in range(20)])
    reads = 0
    for gap in (10**6, 1):
        monkeypatch.setattr(bodies_room, "BODIES_GAP_BYTES", gap)
        home.handing.hand_out(HandOut(home.number, 1, b"", "quotes", ANN, join_runs([(0, 1), (9, 10), (19, 20)])), 0.0)
        home.take()
        while home.world.disk.asked:
            reads += sum(isinstance(one, ReadRows) for one in home.world.disk.asked)
            home.world.answer()
            home.take()
        assert reads == (1 if gap > 1 else 4)
    assert [body.split()[0] for _, _, body in home.events] == ["0", "9", "19"] * 2


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=12)


@given(sizes, st.lists(st.booleans(), min_size=48, max_size=48), st.sampled_from(["memory", "disk", "far"]), st.data())
def test_by_brute_force_every_event_is_sent_once_in_order(
    counts: list[int], chosen: list[bool], where: str, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies_room, "BODIES_READ_BYTES", data.draw(st.sampled_from([1, 200, 10**6])))
        patch.setattr(bodies_room, "BODIES_GAP_BYTES", data.draw(st.sampled_from([0, 100, 10**6])))
        patch.setattr(handing_room, "HANDED_EVENTS", data.draw(st.sampled_from([1, 3, 1000])))
        home = Home(["bob"])
        total = sum(counts)
        batches, at = [], 0
        for count in counts:
            batches.append(list(range(at, at + count)))
            at += count
        place = BOB if where == "far" else ANN
        world = home.others[0].world if where == "far" else home.world
        if where == "memory":
            commit(home, *batches)
        else:
            store(world, *batches, broker=place.broker)
        first = 0
        if where != "memory" and data.draw(st.booleans()):
            held = world.copy("bob") if where == "far" else world.own()
            world.trim(data.draw(st.integers(0, total)), held)
            world.answer()
            first = held.first
        damaged: list[int] = []
        rows = world.disk.logs[LogName(*place, 0, "quotes")].rows
        if where != "memory" and rows and data.draw(st.booleans()):
            row = data.draw(st.sampled_from(rows))
            row.row, damaged = b"?", list(range(row.first, row.first + row.count))
        positions = [position for position in range(total) if chosen[position]]
        if not positions:
            return
        runs = runs_of(positions)
        redelivered = data.draw(st.booleans())
        home.hand_out(100, runs, place, [position + 1 for position in positions] if redelivered else [])
        assert count_of(runs) == len(positions)
        assert all(str(identity) == body for (_, identity), body in home.ids.items())
        assert home.events == [
            (100 + number, position + 1 if redelivered else 1, str(position))
            for number, position in enumerate(positions)
            if position >= first and position not in damaged
        ]

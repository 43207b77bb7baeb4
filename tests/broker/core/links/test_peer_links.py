"""How links come about: whoever dials, how often, in whatever order, there is one in the end, and nothing is lost."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.core.links.limits import FORGET_SECONDS, HALF_OPEN_SECONDS_MAX
from headgate.broker.core.membership import ChordConfig
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import PEER_VERSION, Control, Credit, Message, Peer
from headgate.protocol.wire import encode_chunks, frame
from tests.support.peer_events import forward
from tests.support.peer_net import PeerNet, Station, Wire


def say(wire: Wire, side: int, *messages: Message) -> None:
    """One side's bytes, whoever made them, are at the other one at once."""
    wire.under_way[1 - side] += b"".join(chunk for message in messages for chunk in frame(encode_chunks(message)))
    wire.arrive(1 - side, len(wire.under_way[1 - side]))


def both_dial(higher_first: bool, alias: bool) -> tuple[PeerNet, Station, Station]:
    """Both have dialled, and neither has heard of the other; the order in which bytes then come in is the test's."""
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob")
    net.also |= {"bob-alias:1": "bob:1", "ann-alias:1": "ann:1"}
    ann.keep("bob-alias:1" if alias else "bob:1")
    bob.keep("ann-alias:1" if alias else "ann:1")
    net.connect()
    higher, lower = sorted((ann, bob), key=lambda station: -station.config.identifier)
    return (net, higher, lower) if higher_first else (net, lower, higher)


def dialled_by(net: PeerNet, station: Station) -> Wire:
    (wire,) = [wire for wire in net.wires if wire.stations[0] is station]
    return wire


def arrive(wire: Wire, side: int) -> None:
    wire.arrive(side, len(wire.under_way[side]))


def agree(ann: Station, bob: Station) -> None:
    """One link, and both mean the same."""
    assert ann.wire(bob.config.name) is bob.wire(ann.config.name)
    assert len(ann.wires) == len(bob.wires) == 1
    assert len(ann.heard("up")) == len(bob.heard("up")) == 1 and ann.heard("down") == [] == bob.heard("down")


@pytest.mark.parametrize("alias", [False, True])
@pytest.mark.parametrize("higher_first", [False, True])
def test_two_that_dial_each_other_and_greet_at_the_same_time_use_the_dial_of_the_higher(
    higher_first: bool, alias: bool
) -> None:
    net, first, second = both_dial(higher_first, alias)
    one, other = dialled_by(net, first), dialled_by(net, second)
    for wire in (one, other):
        arrive(wire, 1)  # PEER
    for wire in (one, other):
        arrive(wire, 0)  # the answers
    net.run(1.0)
    agree(first, second)
    higher = max(first, second, key=lambda station: station.config.identifier)
    assert first.wire(second.config.name).stations[0] is higher


@pytest.mark.parametrize("alias", [False, True])
@pytest.mark.parametrize("higher_first", [False, True])
def test_a_link_that_was_decided_before_the_other_greeting_came_is_the_one(higher_first: bool, alias: bool) -> None:
    net, first, second = both_dial(higher_first, alias)
    one = dialled_by(net, first)
    arrive(one, 1)
    arrive(one, 0)  # `first` decides, and knows nothing of the other dial
    assert first.linked() and not second.linked()
    net.run(1.0)
    agree(first, second)
    assert first.wire(second.config.name) is one


def test_letters_that_waited_for_the_dial_that_lost_go_out_on_the_one_that_won() -> None:
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob")
    net.also |= {"bob-alias:1": "bob:1", "ann-alias:1": "ann:1"}
    ann.tell("bob-alias:1", "from ann")
    bob.tell("ann-alias:1", "from bob")
    net.settle()
    assert bob.heard("control") == [("ann", "from ann")] and ann.heard("control") == [("bob", "from bob")]


def test_two_addresses_of_one_broker_are_one_link() -> None:
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob")
    net.also["localhost:1"] = "bob:1"
    ann.keep("localhost:1", "bob:1")
    net.run(30.0)
    agree(ann, bob)
    assert len(ann.dials) == 2, "known by both names, it is not dialled again"
    ann.tell("localhost:1", "x")
    net.settle()
    assert bob.heard("control") == [("ann", "x")]


def test_a_broker_that_dials_itself_notices_and_stops() -> None:
    net = PeerNet()
    ann = net.add("ann")
    net.also["seed:1"] = "ann:1"
    ann.keep("ann:1", "seed:1")
    net.run(30.0)
    assert ann.dials == ["seed:1"] and ann.told == [] and not ann.wires
    assert ann.peers.by_identifier == {}
    ann.tell("seed:1", "to myself")
    net.run(5.0)
    assert ann.dials == ["seed:1"]
    assert ann.notes == []


@pytest.mark.parametrize("order", [("ann", "two"), ("two", "ann")])
def test_two_brokers_of_one_name_are_told_and_stay_apart(order: tuple[str, str]) -> None:
    net = PeerNet()
    stations = {"ann": net.add("ann", address="ann:1"), "two": net.add("ann", address="two:1")}
    stations[order[0]].keep(stations[order[1]].address)
    net.run(5.0)
    for station in stations.values():
        assert station.linked() == []
        (note,) = {note.facts["reason"] for note in station.notes}
        assert "two brokers are named ann, at " in note and "give one of them another --name" in note


def test_a_third_broker_keeps_the_first_of_two_with_one_name_and_life() -> None:
    net = PeerNet()
    bob = net.add("bob")
    first, second = net.add("ann", address="one:1"), net.add("ann", address="two:1")
    first.keep("bob:1")
    net.settle()
    second.keep("bob:1")
    net.run(10.0)
    assert bob.info("ann").address == "one:1" and first.linked() == ["bob"] and second.linked() == []
    assert "two brokers are named ann, at one:1 and at two:1" in second.notes[0].facts["reason"]
    assert len(second.notes) == 1, "once is enough"


def test_of_two_with_one_name_the_first_stays_as_long_as_it_lives() -> None:
    net = PeerNet()
    bob = net.add("bob")
    old, new = net.add("ann", 3, "one:1"), net.add("ann", 4, "two:1")
    old.keep("bob:1")
    net.settle()
    new.keep("bob:1")
    net.run(10.0)
    assert new.linked() == [] and old.linked() == ["bob"]
    assert "two brokers are named ann, at one:1 and at two:1" in new.notes[-1].facts["reason"]
    net.kill(old)
    net.run(10.0)
    assert new.linked() == ["bob"] and bob.heard("up") == [("ann", 3), ("ann", 4)]
    (back := net.add("ann", 3, "three:1")).keep("bob:1")
    net.run(10.0)
    assert "is known here in life 4, and this is life 3" in back.notes[-1].facts["reason"]


def test_an_older_life_is_taken_back_when_the_newer_one_is_forgotten() -> None:
    net = PeerNet()
    bob, ann = net.add("bob"), net.add("ann", 4)
    ann.keep("bob:1")
    net.settle()
    net.kill(ann)
    lost_its_data = net.add("ann", 1)
    lost_its_data.keep("bob:1")
    net.run(FORGET_SECONDS - 1.0)
    assert bob.linked() == []
    net.run(5.0)
    assert bob.linked() == ["ann"] and bob.info("ann").life == 1


def test_a_difference_in_the_clusters_settings_is_named_with_both_values() -> None:
    net = PeerNet()
    ann, bob = net.add("ann", replicas=2), net.add("bob", replicas=3)
    ann.keep("bob:1")
    net.run(5.0)
    assert ann.linked() == [] == bob.linked()
    for station in (ann, bob):
        text = station.notes[0].facts["reason"]
        assert "the same replicas" in text and "ann has 2" in text and "bob has 3" in text
    other = net.add("cid", chord=ChordConfig(list_length=3))
    other.keep("ann:1")
    net.run(1.0)
    assert "the same list_length" in other.notes[0].facts["reason"]


def test_a_restart_under_a_new_life_waits_until_the_link_of_the_old_one_is_found_dead() -> None:
    """Who has copied a broker's settings is a newer life as well, and the one that is linked must not fall to it."""
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob")
    bob.keep("ann:1")
    net.settle()
    net.break_silently(bob.wire("ann"))
    again = net.replace_silently(bob, life=2)
    again.keep("ann:1")
    net.settle()
    assert ann.heard("up") == [("bob", 1)] and again.linked() == []
    (refusal,) = again.peers.refusals(net.now).values()
    assert refusal.code == ErrorCode.DUPLICATE
    assert "here life 1 is linked, and life 2 may take its place" in refusal.text
    net.run(8.0)
    assert ann.heard("up") == [("bob", 1), ("bob", 2)] and ann.linked() == ["bob"]
    assert len(ann.heard("down")) == 1 and again.peers.refusals(net.now) == {}


def test_the_same_life_replaces_a_link_that_only_it_knows_to_be_dead() -> None:
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob")
    bob.keep("ann:1")
    net.settle()
    ann.send("bob", forward(events=5))
    net.settle()
    ann.send("bob", forward(events=3))
    wire = bob.wire("ann")
    net.break_silently(wire)
    wire.lose(wire.stations.index(bob), "reset")
    assert ann.linked() == ["bob"] and bob.linked() == []
    net.run(0.5)
    agreed = ann.wire("bob")
    assert agreed is bob.wire("ann") is not wire
    assert ann.lost == {"quotes": 3} and bob.handled == {"quotes": 5}


def accepted(net: PeerNet, ann: Station, name: str = "eve") -> Wire:
    """A connection to ann from somebody whose words are the test's; its first is still to come."""
    eve = net.add(name, begun=False)
    wire = Wire(net, eve, ann, ann.address)
    net.wires[wire] = None
    ann.wires[wire.links[1]] = wire
    ann.accept(wire.links[1])
    return wire


def peer(name: str = "eve", life: int = 1, **fingerprint: int) -> Peer:
    shared = {"replicas": 2, "list_length": 4, "attempts": 3, "log_copies": 2} | fingerprint
    return Peer(PEER_VERSION, name, life, f"{name}:1", "", "headgate", False, dict(shared))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([Control(1, [])], "the first message is PEER, not CONTROL"),
        ([peer(), Control(1, [])], "the first message is PEER, not CONTROL"),
        ([peer(), Credit(5, 0)], "the first message is PEER, not CREDIT"),
        ([peer(), peer()], "PEER is said once"),
    ],
)
def test_before_the_answer_a_dialler_says_nothing_but_who_it_is(words: list[Message], told: str) -> None:
    net = PeerNet()
    ann = net.add("ann")
    wire = accepted(net, ann)
    say(wire, 0, *words)
    assert told in str(wire.sessions[1].failure) and ann.told == []


def test_after_the_answer_the_dialler_decides_first() -> None:
    net = PeerNet()
    ann = net.add("ann")
    wire = accepted(net, ann)
    say(wire, 0, peer())
    assert ann.told == []
    say(wire, 0, Control(1, []))
    assert ann.told == [] and ann.peers.by_link == {}
    net.run(0.0, carry=False)
    assert wire.sessions[1].closed


@pytest.mark.parametrize("name", ["", "ann"])
def test_nobody_without_a_name_of_its_own_is_let_in(name: str) -> None:
    net = PeerNet()
    ann = net.add("ann")
    wire = accepted(net, ann)
    say(wire, 0, Peer(PEER_VERSION, name, 1, "eve:1", "", "headgate", False, {}))
    assert wire.sessions[1].closed and ann.peers.by_identifier == {}


def test_an_answer_that_nobody_follows_up_ends() -> None:
    net = PeerNet()
    ann = net.add("ann")
    wire = accepted(net, ann)
    wire.stalled = [True, False]
    say(wire, 0, peer())
    net.now += HALF_OPEN_SECONDS_MAX - 0.1
    ann.wake()
    assert not wire.sessions[1].closed
    net.now += 0.2
    ann.wake()
    assert wire.sessions[1].closed and ann.peers._links.openings == {}


def test_a_link_that_was_not_decided_for_ends_with_the_decision_for_another() -> None:
    net = PeerNet()
    ann = net.add("ann")
    wires = [accepted(net, ann, f"eve{number}") for number in range(2)]
    for wire in wires:
        say(wire, 0, peer())
    say(wires[1], 0, Credit(5, 0))
    assert ann.linked() == ["eve"] and wires[0].sessions[1].closed and not wires[1].sessions[1].closed
    assert ann.peers._links.openings == {}


def test_a_first_count_of_what_was_never_sent_opens_no_link() -> None:
    net = PeerNet()
    ann = net.add("ann")
    ann.keep("bob:1")
    net.add("bob")
    net.settle()
    ann.send("bob", forward(events=2))
    net.settle()
    session = ann.info("bob").session
    net.cut(ann.wire("bob"))
    ann.keep()
    wire = accepted(net, ann)
    say(wire, 0, peer("bob"))
    say(wire, 0, Credit(10, 3))
    assert ann.linked() == [] and ann.heard("up") == [("bob", 1)]
    assert session.sent == 2


class Meeting:
    """Several brokers that know each other by one address or by another, and dial at random moments."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.random = random
        self.net = PeerNet(random)
        names = ["ann", "bob", "cid", "dan", "eve"][: random.choice((2, 2, 3, 5))]
        self.stations = [self.net.add(name) for name in names]
        for station in self.stations:
            self.net.also[f"{station.config.name}.local:1"] = station.address
        self.said: dict[tuple[str, str], int] = {}
        for station in self.stations:
            seeds = [other.address for other in self.stations]
            seeds += [f"{other.config.name}.local:1" for other in self.stations]
            station.seeds = random.sample(seeds, random.randint(1, len(seeds)))

    def play(self, cuts: bool) -> None:
        for station in self.stations:
            station.keep(*station.seeds)
        for _ in range(self.random.choice((30, 200))):
            choice = self.random.random()
            if choice < 0.7:
                self.net.step()
            elif choice < 0.9:
                self.chat()
            elif choice < 0.94 and cuts and self.net.wires:
                self.net.cut(self.random.choice(list(self.net.wires)))
            else:
                self.net.run(self.random.choice((0.0, 0.1, 0.4) if cuts else (0.0, 0.01)), carry=False)
        self.net.run(6.0)

    def chat(self) -> None:
        station = self.random.choice(self.stations)
        if station.linked():
            name = self.random.choice(station.linked())
            number = self.said.get((station.config.name, name), 0)
            self.said[station.config.name, name] = number + 1
            station.tell(station.info(name).address, str(number))
            station.send(name, forward(base=number))

    def check(self, cuts: bool) -> None:
        for station in self.stations:
            for other in self.stations:
                if station is other or station.config.identifier < other.config.identifier:
                    continue
                name, others = station.config.name, other.config.name
                wanted = any(place in (other.address, f"{others}.local:1") for place in station.seeds)
                wanted |= any(place in (station.address, f"{name}.local:1") for place in other.seeds)
                assert (others in station.linked()) == (name in other.linked()) == wanted
                if wanted:
                    assert station.wire(others) is other.wire(name)
            assert len(station.wires) == len(station.linked()), "nothing is left of the dials that lost"
            assert station.peers._links.openings == {}
            if not cuts:
                assert station.heard("down") == [] and station.lost == {} and station.returned == []
        if not cuts:
            for (name, others), count in self.said.items():
                (other,) = [one for one in self.stations if one.config.name == others]
                assert [told[1] for told in other.heard("control") if told[0] == name] == list(map(str, range(count)))
                assert [told[1] for told in other.heard("forward") if told[0] == name] == list(range(count))


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_whoever_dials_there_is_one_link_and_nothing_was_lost(seed: int, cuts: bool) -> None:
    meeting = Meeting(seed)
    meeting.play(cuts)
    meeting.check(cuts)


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("seed", range(1_000, 2_500))
def test_whoever_dials_in_many_runs(seed: int, cuts: bool) -> None:
    meeting = Meeting(seed)
    meeting.play(cuts)
    meeting.check(cuts)


def test_the_error_codes_of_refusals_are_what_the_specification_says() -> None:
    assert (ErrorCode.REPLACED, ErrorCode.MISMATCH, ErrorCode.OTHER_CLUSTER, ErrorCode.DUPLICATE) == (9, 10, 11, 108)

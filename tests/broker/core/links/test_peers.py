"""Peers over real sessions: told at once, kept, counted; whatever breaks, every forwarded event is accounted for."""

from __future__ import annotations

import pytest

from headgate.broker.core.delivery import Subscription
from headgate.broker.core.inputs import LinkDown, LinkPaused, LinkResumed, Received, Wake
from headgate.broker.core.limits import Limits
from headgate.broker.core.links import LOSS_SECONDS_MAX
from headgate.broker.core.links.limits import FORGET_SECONDS, PAUSED_TELLS_MAX
from headgate.matching import parse_pattern
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Control, Error, Letter, Scope
from tests.support.peer_events import deliver, forward
from tests.support.peer_net import PeerNet, Station


def linked_pair() -> tuple[PeerNet, Station, Station]:
    """ann has dialled bob."""
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob")
    ann.keep("bob:1")
    net.settle()
    assert ann.linked() == ["bob"] and bob.linked() == ["ann"]
    return net, ann, bob


def test_what_is_told_comes_in_order_and_before_events_that_wait() -> None:
    net, ann, bob = linked_pair()
    ann.pause("bob")
    ann.send("bob", forward(base=1))
    ann.tell("bob:1", "first")
    ann.tell("bob:1", "second")
    net.settle()
    ann.resume("bob")
    net.settle()
    assert [told[0] for told in bob.told[1:]] == ["control", "control", "forward"]
    assert bob.heard("control") == [("ann", "first"), ("ann", "second")]


def test_what_is_told_without_a_link_dials_and_goes_out_first() -> None:
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob")
    for number in range(3):
        ann.tell("bob:1", f"letter {number}")
    assert ann.dials == ["bob:1"]
    net.settle()
    assert bob.heard("control") == [("ann", f"letter {number}") for number in range(3)]
    bob.tell("ann:1", "answer")
    net.settle()
    assert ann.heard("control") == [("bob", "answer")] and bob.dials == []


def test_every_kind_of_message_reaches_its_hook() -> None:
    net, ann, bob = linked_pair()
    ann.peers.tell("bob:1", Letter([1, 2, 0, "a"], None, 9, []), net.now)
    ann.peers.tell("bob:1", Control(20, ["x"]), net.now)
    ann.send("bob", forward(events=2, base=3))
    ann.send("bob", deliver(4, base=5))
    net.settle()
    assert bob.told[1:] == [
        ("letter", "ann", 9),
        ("control", "ann", "x"),
        ("forward", "ann", 3, 2),
        ("deliver", "ann", 5, 4),
    ]


def test_the_peer_is_known_by_what_it_said_and_its_identifier_by_its_name() -> None:
    _, ann, bob = linked_pair()
    info = ann.info("bob")
    assert (info.identifier, info.life, info.address, info.client_address) == (
        bob.config.identifier,
        1,
        "bob:1",
        "bob:10",
    )
    assert ann.peers.by_identifier == {bob.config.identifier: info}
    assert info.session is ann.peers.session_of(bob.config.identifier, 1)


def test_a_link_that_is_kept_comes_back_and_one_that_is_not_does_not() -> None:
    net, ann, bob = linked_pair()
    net.cut(ann.wire("bob"))
    assert ann.heard("down") == [("bob", "cut")] and bob.heard("down") == [("ann", "cut")]
    assert ann.dials == ["bob:1"]
    net.run(0.5)
    assert ann.linked() == ["bob"] and len(ann.dials) == 2
    ann.keep()
    net.cut(ann.wire("bob"))
    net.run(30.0)
    assert ann.linked() == [] and len(ann.dials) == 2


def test_a_dead_address_is_dialled_again_after_pauses_of_two_seconds_at_most() -> None:
    net = PeerNet()
    ann = net.add("ann")
    ann.keep("bob:1")
    net.run(20.0)
    assert 10 < len(ann.dials) < 24
    net.add("bob")
    net.run(2.1)
    assert ann.linked() == ["bob"]


def test_a_link_that_nobody_wants_ends_when_it_idles() -> None:
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob")
    ann.tell("bob:1", "x")
    net.run(Limits().idle_link_seconds - 1.0)
    ann.send("bob", forward())
    net.run(Limits().idle_link_seconds - 1.0)
    assert ann.linked() == ["bob"]
    net.run(2.0)
    assert ann.linked() == [] == bob.linked() and len(ann.dials) == 1
    assert ann.lost == {} and ann.returned == []


def test_credit_is_kept_and_given_back() -> None:
    net, ann, bob = linked_pair()
    bob.at_once = False
    info = ann.info("bob")
    for number in range(40):
        ann.send("bob", forward(events=4096, base=4096 * number))
        net.settle()
    # Credit goes on as events come in; being done with them is another matter.
    assert len(bob.heard("forward")) == 40 and info.session.sent == 40 * 4096
    assert sum(count for _, count in ann.peers.unacknowledged(info)) == 40 * 4096
    bob.acknowledge("ann", 3 * 4096)
    net.run(0.2)
    assert ann.peers.unacknowledged(info) == [("quotes", 4096)] * 37
    bob.acknowledge("ann", 37 * 4096)
    net.run(0.2)
    assert ann.peers.unacknowledged(info) == []


def test_without_credit_events_wait_and_over_the_bound_the_oldest_are_lost_and_counted() -> None:
    net = PeerNet()
    ann, bob = net.add("ann", outbox_bytes=100_000), net.add("bob")
    ann.keep("bob:1")
    net.settle()
    ann.pause("bob")
    for number in range(30):
        ann.send("bob", forward(events=2, base=2 * number, body=b"x" * 5_000))
    kept = len(ann.info("bob").forwards)
    assert 5 < kept < 10 and ann.lost == {"quotes": 2 * (30 - kept)}
    assert ann.peers.outbox_bytes == ann.subscribers.outbox_bytes <= 100_000
    ann.resume("bob")
    net.settle()
    assert [base for _, base, _ in bob.heard("forward")] == list(range(2 * (30 - kept), 60, 2))
    assert ann.peers.outbox_bytes == 0


def test_all_outboxes_together_have_a_bound_too() -> None:
    net = PeerNet()
    ann = net.add("ann", outbox_bytes_total=100_000)
    net.add("bob")
    ann.keep("bob:1")
    net.settle()
    ann.pause("bob")
    ann.subscribers.outbox_bytes = 99_000
    ann.send("bob", forward(events=3, body=b"x" * 1_000))
    assert ann.lost == {"quotes": 3}


def test_deliveries_that_were_dropped_become_a_gap() -> None:
    net = PeerNet()
    ann, bob = net.add("ann", outbox_bytes=2_000), net.add("bob")
    ann.keep("bob:1")
    net.settle()
    session = ann.info("bob").session
    session.subscriptions[7] = Subscription(1, 7, session, "quotes", parse_pattern("quotes"), "")
    ann.pause("bob")
    for number in range(10):
        ann.send("bob", deliver(base=number))
    dropped = ann.subscribers.drops["slow"]
    assert dropped > 0
    ann.resume("bob")
    net.settle()
    assert bob.delivered + dropped == 10 and bob.heard("gap") == [("ann", 7, dropped)]


def test_a_session_of_a_life_that_is_not_linked_keeps_what_waits_for_it() -> None:
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob", life=4)
    session = ann.peers.session_of(bob.config.identifier, 4)
    former = ann.peers.session_of(bob.config.identifier, 3)
    for one in (session, former):
        ann.subscribers.deliver(one, [7, 2], deliver(2).portion)
    ann.keep("bob:1")
    net.settle()
    assert bob.delivered == 2 and ann.info("bob").session is session
    ann.peers.forget(bob.config.identifier, 3)
    assert ann.peers.outbox_bytes == 0 == ann.subscribers.outbox_bytes
    ann.peers.forget(bob.config.identifier, 4)
    assert ann.peers.session_of(bob.config.identifier, 4) is session, "it is linked, and in use"


def test_what_was_never_sent_is_returned_when_the_link_breaks() -> None:
    net, ann, _ = linked_pair()
    ann.pause("bob")
    for number in range(3):
        ann.send("bob", forward(base=number))
    net.cut(ann.wire("bob"))
    assert [message.base for message in ann.returned] == [0, 1, 2]
    assert ann.lost == {} and ann.peers.outbox_bytes == 0


def test_what_was_under_way_is_lost_exactly_as_the_next_link_tells() -> None:
    net, ann, bob = linked_pair()
    for number in range(3):
        ann.send("bob", forward(base=number, events=10))
        net.settle()
    ann.send("bob", forward("other", events=5))
    ann.send("bob", deliver(4))
    net.cut(ann.wire("bob"))
    assert ann.lost == {}, "nobody knows yet"
    net.run(1.0)
    assert ann.lost == {"other": 5} and bob.handled == {"quotes": 30}
    assert bob.heard("gap") == [("ann", 0, 4)]
    net.run(1.0)
    assert ann.peers.unacknowledged(ann.info("bob")) == []


def test_without_a_next_link_everything_under_way_is_lost_once() -> None:
    net, ann, bob = linked_pair()
    bob.at_once = False
    ann.send("bob", forward(events=10))
    net.settle()
    net.cut(ann.wire("bob"))
    ann.keep()
    net.run(LOSS_SECONDS_MAX - 0.1)
    assert ann.lost == {}
    net.run(0.2)
    assert ann.lost == {"quotes": 10}
    ann.keep("bob:1")
    net.run(1.0)
    net.cut(ann.wire("bob"))
    net.run(LOSS_SECONDS_MAX + 1.0)
    assert ann.lost == {"quotes": 10}


def test_a_new_life_has_nothing_of_the_former_one() -> None:
    net, ann, bob = linked_pair()
    bob.at_once = False
    ann.send("bob", forward(events=10))
    net.settle()
    again = net.replace(bob, life=2)
    net.run(3.0)
    assert (ann.heard("up"), ann.heard("gap")) == ([("bob", 1), ("bob", 2)], [("bob", 0, 0)])
    assert ann.lost == {"quotes": 10} and again.handled == {}
    assert ann.peers.unacknowledged(ann.info("bob")) == []
    ann.send("bob", forward(events=3))
    net.settle()
    assert again.handled == {"quotes": 3}


def test_a_broker_is_forgotten_after_a_while_and_its_comeback_loses_nothing_more() -> None:
    net, ann, bob = linked_pair()
    for message in (forward(events=10), deliver(5)):
        ann.send("bob", message)
    bob.send("ann", forward(events=3))
    net.run(1.0)
    ann.keep()
    net.cut(ann.wire("bob"))
    net.run(FORGET_SECONDS + 1.0)
    assert ann.peers.by_identifier == {} == bob.peers.by_identifier
    assert ann.peers.sessions == {}
    ann.keep("bob:1")
    net.settle()
    for station, name in ((ann, "bob"), (bob, "ann")):
        station.send(name, forward(events=2))
    net.settle()
    assert (ann.handled, bob.handled) == ({"quotes": 5}, {"quotes": 12})
    assert ann.lost == {} == bob.lost and ann.heard("gap") == [] == bob.heard("gap")


def test_only_one_side_forgot() -> None:
    net, ann, bob = linked_pair()
    for station, name in ((ann, "bob"), (bob, "ann")):
        station.send(name, forward(events=10))
        station.send(name, deliver(7))
    net.run(1.0)
    ann.keep()
    net.cut(ann.wire("bob"))
    ann.peers._links.drop(ann.info("bob"), net.now)
    ann.keep("bob:1")
    net.run(1.0)
    for station, name in ((ann, "bob"), (bob, "ann")):
        station.send(name, forward(events=2))
    net.run(1.0)
    assert (ann.handled, bob.handled) == ({"quotes": 12}, {"quotes": 12})
    assert ann.lost == {} == bob.lost and ann.heard("gap") == [] == bob.heard("gap")


@pytest.mark.parametrize("received", [3, 2**40])
def test_a_count_of_more_than_was_sent_ends_that_link_only(received: int) -> None:
    net, ann, bob = linked_pair()
    cid = net.add("cid")
    cid.keep("ann:1")
    ann.send("bob", forward(events=2))
    net.settle()
    bob.info("ann").handled = bob.info("ann").got = received
    bob.peers.traffic.tell_handled(bob.info("ann"))
    bob.carry_out()
    net.settle()
    assert ann.linked() == ["cid"]
    assert "CREDIT: received" in bob.heard("down")[0][1]


def test_a_word_that_a_hook_refuses_ends_that_link_only() -> None:
    net, ann, bob = linked_pair()
    ann.refuses = "control"
    bob.tell("ann:1", "nonsense")
    net.settle()
    assert bob.heard("down") == [("ann", "no such thing")] and ann.heard("down") == [("bob", "no such thing")]


def test_an_error_about_a_request_is_noted_and_one_about_the_connection_ends_it() -> None:
    net, ann, bob = linked_pair()
    wire = bob.wire("ann")
    side = wire.links.index(bob.info("ann").link or 0)
    wire.sessions[side].send(Error(ErrorCode.BAD_REQUEST, Scope.REQUEST, 5, "which"))
    wire.flush(side)
    net.settle()
    assert ann.linked() == ["bob"] and ann.notes[-1].facts["text"] == "which"
    wire.sessions[side].send(Error(ErrorCode.PROTOCOL, Scope.CONNECTION, 0, "enough"))
    wire.flush(side)
    net.settle()
    assert ann.heard("down") == [("bob", "enough")]


def test_a_drain_says_what_is_left_and_goodbye() -> None:
    net, ann, bob = linked_pair()
    for number in range(3):
        ann.send("bob", forward(base=number))
    ann.peers.drain(net.now)
    ann.carry_out()
    net.settle()
    assert len(bob.heard("forward")) == 3
    assert bob.heard("down") == [("ann", "this broker is shutting down")] and ann.linked() == []
    net.run(5.0)
    assert ann.linked() == [] and len(ann.dials) == 1
    bob.keep("ann:1")
    net.run(5.0)
    assert ann.linked() == [] == bob.linked()


def test_before_anybody_can_reach_us_nobody_is_dialled() -> None:
    net = PeerNet()
    ann = net.add("ann", begun=False)
    ann.keep("bob:1")
    ann.tell("bob:1", "x")
    net.run(1.0)
    assert ann.dials == [] and ann.deadline() == float("inf")
    ann.begin()
    assert ann.dials == ["bob:1"]


def test_a_link_that_takes_nothing_is_cut_in_the_end() -> None:
    net, ann, _ = linked_pair()
    ann.pause("bob")
    for _ in range(PAUSED_TELLS_MAX):
        ann.peers.tell("bob:1", Control(20, [""]), net.now)
    assert ann.linked() == ["bob"]
    ann.effects.clear()
    ann.tell("bob:1", "one more")
    assert ann.linked() == []


def test_the_host_hears_when_an_input_was_not_about_a_peer() -> None:
    net, ann, _ = linked_pair()
    link = ann.info("bob").link
    assert link is not None
    for one, expected in ((99, False), (link, True)):
        for happened in (LinkPaused(one), LinkResumed(one), Received(one, []), LinkDown(one, "")):
            assert ann.peers.handle(happened, net.now) is expected, happened
    assert not ann.peers.handle(Wake(), net.now)


def test_an_event_that_arrived_after_it_was_given_up_is_reported_once() -> None:
    net, ann, bob = linked_pair()
    bob.at_once = False
    ann.send("bob", forward(events=10))
    net.settle()
    for _ in range(2):  # it was not done with the first time: were it still in the ledger, it would be lost twice
        net.cut(ann.wire("bob"))
        ann.keep()
        net.run(LOSS_SECONDS_MAX + 0.1)
        assert ann.lost == {"quotes": 10}
        ann.keep("bob:1")
        net.run(1.0)


def test_notes_tell_of_links() -> None:
    net, ann, _ = linked_pair()
    net.cut(ann.wire("bob"))
    assert [(note.event, note.facts["broker"]) for note in ann.notes] == [
        ("broker linked", "bob"),
        ("broker link ended", "bob"),
    ]

"""What is known of a broker begins with nothing under way."""

from __future__ import annotations

from headgate.broker.core.delivery import ClientSession
from headgate.broker.core.links import PeerInfo
from headgate.broker.core.links.greeting import Entry
from tests.support.peer_net import PeerNet


def make(name: str) -> PeerInfo:
    return PeerInfo(name, 1, 2, "ann:1", "ann:2", ClientSession(b"key", name, None, 0, 0))


def test_a_broker_is_met_without_a_link_and_without_debts() -> None:
    info = make("ann")
    assert info.link is None and not info.counted and not info.dialled
    assert (info.got, info.handled, info.acknowledged, info.forwards_bytes) == (0, 0, 0, 0)
    assert info.settle_at == info.acknowledge_at == float("inf")


def test_two_records_share_nothing_and_are_never_the_same() -> None:
    one, other = make("ann"), make("ann")
    one.ledger.append(Entry(5, "quotes", 5))
    one.aliases["ann:1"] = None
    assert not other.ledger and not other.aliases
    assert one != other and len({one, other}) == 2


def test_a_new_life_after_a_goodbye_leaves_no_gap_and_after_a_death_one_of_unknown_size() -> None:
    for said_goodbye, gaps in ((True, []), (False, [("ann", 0, 0)])):
        net = PeerNet()
        ann, bob = net.add("ann"), net.add("bob")
        bob.keep("ann:1")
        net.settle()
        if said_goodbye:
            ann.peers.drain(net.now)
            ann.carry_out()
            net.settle()
        net.replace(ann, life=2)
        net.run(5.0)
        assert bob.heard("up") == [("ann", 1), ("ann", 2)]
        assert bob.heard("gap") == gaps

"""What a broker of the cluster may say that cannot be: it is refused with a reason, or heals, and harms nobody else.

A broker with a certificate of the cluster is trusted with everything; so this is about brokers that are broken, or of
another version, rather than about thieves. Beside it stand, each with its reason: two of one name and former lives
(`test_cluster_strangers.py`, `links/test_peer_links.py`), words that are none, and messages in a circle
(`test_cluster.py`, `forwarding/test_forwarding_peers.py`), acknowledgements of what was never sent
(`links/test_peer_traffic.py`, `log/test_log_copies.py`), pages that do not fit (`kv/test_replicas.py`), rows of
somebody else's log (`log/test_log_holder.py`), certificates (`tests/system/test_tls.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.broker.core.keyspace import RING_SIZE, hash_identifier
from headgate.broker.core.membership import Letter, from_wire, to_wire
from headgate.broker.core.membership.members import Member
from headgate.broker.core.membership.messages import Notify, Query, State
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import CREDIT_MAX, LETTER_LENGTH_MAX
from headgate.protocol.messages import Credit, Error, Mode, Puback
from headgate.protocol.messages import Letter as WireLetter
from headgate.protocol.wire import decode, encode
from tests.support.builders import quote_batch
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import EPOCH
from tests.support.node_cluster import NodeCluster

from ..log.test_log_holder import copy, offer

pytestmark = pytest.mark.slow


def reasons(messages: list[Any]) -> list[str]:
    return [message.text for message in messages if isinstance(message, Error)]


def me(cluster: NodeCluster, name: str) -> Member:
    chord = cluster.node(name).cluster.chord
    assert chord is not None
    return chord.me


def ring_of(cluster: NodeCluster, name: str) -> Any:
    chord = cluster.node(name).cluster.chord
    assert chord is not None and chord.ring is not None
    return chord.ring


def delivers(cluster: NodeCluster) -> bool:
    """Whether what is published anywhere is heard anywhere."""
    reader, writer = cluster.connect("b2"), cluster.connect("b4")
    reader.subscribe(1, "quotes", "p = 1")
    cluster.run(3.0)
    writer.publish(quote_batch(["quotes"] * 2, ["one", "two"], p=[1, 2]))
    cluster.run(1.0)
    return reader.bodies == [(1, "one")]


def test_a_writer_whose_identifier_is_not_the_hash_of_its_name_loses_its_link() -> None:
    cluster = NodeCluster(5)
    true = me(cluster, "b1")
    assert true.identifier == hash_identifier("b1")
    for identifier in (true.identifier + 1, hash_identifier("b9"), me(cluster, "b0").identifier):
        cluster.until(lambda: cluster.linked("b0", "b1"), 10.0)
        letter = to_wire(Letter(true._replace(identifier=identifier % RING_SIZE), None, Notify()))
        assert reasons(cluster.tell("b1", "b0", letter)) == ["a letter names its own writer"]
        assert not cluster.linked("b0", "b1") and cluster.linked("b0", "b2")
    cluster.until(cluster.settled, 30.0)
    assert delivers(cluster)


@pytest.mark.parametrize("identifier", [RING_SIZE, -1, 2**70])
def test_an_identifier_outside_of_the_space_is_refused(identifier: int) -> None:
    with pytest.raises(ProtocolViolation):
        from_wire(WireLetter([identifier, 1, 0, "b1:7401"], None, 5, []))


@pytest.mark.parametrize("count", [LETTER_LENGTH_MAX + 1, 1_000_000])
def test_a_list_of_a_million_is_refused_before_anybody_looks_at_it(count: int) -> None:
    member = [1, 1, 0, "b1:7401"]
    with pytest.raises(ProtocolViolation):
        decode(b"".join(encode_long(WireLetter(member, None, 1, [7, None, [0] * count]))))


def encode_long(message: WireLetter) -> list[bytes]:
    """Its bytes, whatever our own side thinks of its length."""
    import msgpack

    return [msgpack.packb([33, message.sender, message.recipient, message.kind, message.body])]


LISTS: dict[str, Callable[[NodeCluster, Member], list[Member]]] = {
    "the same one again and again": lambda cluster, head: [me(cluster, "b3")] * 4,
    "the head itself": lambda cluster, head: [head] * 4,
    "whoever asks": lambda cluster, head: [me(cluster, "b0")] * 4,
    "nobody there": lambda cluster, head: [Member(number, 1, 0, f"ghost{number}:7401") for number in range(1, 5)],
    "no hash of a name": lambda cluster, head: (
        [me(cluster, name)._replace(identifier=(me(cluster, name).identifier + 1) % RING_SIZE) for name in ("b2", "b3")]
        * 2
    ),
    "future lives": lambda cluster, head: [me(cluster, name)._replace(incarnation=2**62) for name in ("b2", "b3")] * 2,
    "in no order": lambda cluster, head: [me(cluster, name) for name in ("b4", "b2", "b3", "b1")],
}


@pytest.mark.parametrize("kind", list(LISTS))
def test_a_list_of_successors_that_cannot_be_heals_and_nothing_is_lost_for_good(kind: str) -> None:
    """The answer to a question that is open, from whom it was asked: nothing but its content is wrong."""
    cluster = NodeCluster(5, check_every=10)
    asked: list[tuple[str, int]] = []
    while not asked:
        before = len(cluster.said)
        cluster.step()
        for source, to, what in cluster.said[before:]:
            body = from_wire(what).body if isinstance(what, WireLetter) else None
            if source == "b0" and isinstance(body, Query):
                asked.append((to, body.number))
    head, number = asked[0]
    false = State(number, None, tuple(LISTS[kind](cluster, me(cluster, head))))
    before, life = ring_of(cluster, "b0").successors, me(cluster, "b0")
    cluster.tell(head, "b0", to_wire(Letter(me(cluster, head), life, false)))
    chord = cluster.node("b0").cluster.chord
    assert chord is not None
    assert chord.me != life or chord.ring is None or chord.ring.successors != before, "it was believed"
    cluster.run(30.0)
    cluster.until(cluster.settled, 60.0)
    names = {name: [str(one) for one in ring_of(cluster, name).successors] for name in cluster.hosts}
    assert not any("ghost" in text for texts in names.values() for text in texts)
    assert delivers(cluster)


def test_who_is_no_neighbour_and_says_that_it_is_changes_nothing() -> None:
    cluster = NodeCluster(5)
    before = {name: (ring_of(cluster, name).predecessor, ring_of(cluster, name).successors) for name in cluster.hosts}
    for sender in ("b1", "b2", "b3", "b4"):
        assert cluster.tell(sender, "b0", to_wire(Letter(me(cluster, sender), me(cluster, "b0"), Notify()))) is not None
        assert cluster.linked("b0", sender)
        cluster.run(2.0)
    after = {name: (ring_of(cluster, name).predecessor, ring_of(cluster, name).successors) for name in cluster.hosts}
    assert before == after and cluster.settled()


@pytest.mark.parametrize(("allowed", "received"), [(CREDIT_MAX, CREDIT_MAX), (0, 1), (CREDIT_MAX, 2**40)])
def test_credit_for_what_was_never_sent_costs_the_link(allowed: int, received: int) -> None:
    cluster = NodeCluster(3)
    (reason,) = reasons(cluster.tell("b1", "b0", Credit(allowed, received)))
    assert "CREDIT" in reason and not cluster.linked("b0", "b1") and cluster.linked("b0", "b2")
    cluster.until(lambda: cluster.linked("b0", "b1"), 10.0)


@pytest.mark.parametrize("allowed", [0, CREDIT_MAX])
def test_credit_only_grows_and_none_is_ever_negative(allowed: int) -> None:
    cluster = NodeCluster(3)
    assert reasons(cluster.tell("b1", "b0", Credit(allowed, 0))) == []
    writer, reader = cluster.connect("b0"), cluster.connect("b1")
    reader.subscribe(1, "quotes", "p = 1")
    cluster.run(3.0)
    writer.publish(quote_batch(["quotes"], ["one"], p=[1]))
    cluster.run(1.0)
    assert reader.bodies == [(1, "one")] and cluster.linked("b0", "b1")


@pytest.mark.parametrize("wrong", [Credit(-1, 0), Credit(0, -1), Credit(CREDIT_MAX + 1, 0), Credit(0, 2**64 - 1)])
def test_credit_below_nothing_or_beyond_all_numbers_is_no_message(wrong: Credit) -> None:
    with pytest.raises(ProtocolViolation, match="CREDIT"):
        decode(encode(wrong))


@pytest.mark.parametrize("epoch", [0, 1, EPOCH - 1, EPOCH + 1, CREDIT_MAX])
def test_rows_of_a_past_or_far_future_epoch_stand_beside_the_log_and_do_not_stop_it(epoch: int) -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "before")
    cluster.run(0.1)
    strange = offer(0, 5)
    strange.body[1] = epoch
    said = cluster.tell("b0", "b1", strange, copy(0, 5, epoch=epoch))
    assert reasons(said) == [] and cluster.linked("b1", "b0")
    cluster.run(0.1)
    cluster.store(client, "after", mode=Mode.STORED)
    cluster.run(1.0)
    assert [one.sequence for one in client.of(Puback)][-1] == 2
    assert [row.count for row in cluster.rows("b1", "b0")] == [1, 1]

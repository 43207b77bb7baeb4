"""Cold start: a cluster whose brokers all start again at once waits for nobody; whoever may be needed is waited for."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.core.cluster.cold_start import ColdStart
from headgate.broker.core.kv.limits import LEASE_SECONDS, SETTLE_SECONDS
from headgate.broker.core.limits import NEWS_SECONDS
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.protocol.messages import Suback
from tests.support.builders import quote_batch
from tests.support.node_cluster import Client, NodeCluster

ALL = frozenset([1, 2, 3])


def told(*answers: tuple[int, float, frozenset[int]]) -> ColdStart:
    """Broker 1, which asked each of these at that moment, and heard that it sees those."""
    cold = ColdStart(1)
    for broker, asked_at, seen in answers:
        cold.answered(broker, cold.ask(broker, asked_at), seen)
    return cold


# --- Who agrees -------------------------------------------------------------------------------------------------------


def test_all_agree_since_the_first_of_them_was_asked() -> None:
    assert told((2, 5.0, ALL), (3, 5.2, ALL)).agreed_since(ALL, 5.3) == 5.0


def test_one_that_sees_somebody_else_or_nobody_or_did_not_answer_does_not_agree() -> None:
    assert told((2, 5.0, ALL), (3, 5.2, frozenset([1, 2, 3, 4]))).agreed_since(ALL, 5.3) is None
    assert told((2, 5.0, ALL), (3, 5.2, frozenset())).agreed_since(ALL, 5.3) is None
    assert told((2, 5.0, ALL)).agreed_since(ALL, 5.3) is None
    assert told((2, 5.0, ALL), (3, 5.2, ALL)).agreed_since(frozenset(), 5.3) is None


def test_a_broker_that_sees_nobody_else_does_not_agree_with_itself() -> None:
    assert told().agreed_since(frozenset([1]), 5.0) is None


def test_an_answer_counts_from_the_moment_of_asking() -> None:
    cold = told((2, 5.0, ALL), (3, 5.2, ALL))
    assert cold.agreed_since(ALL, 5.0 + NEWS_SECONDS) == 5.0
    assert cold.agreed_since(ALL, 5.1 + NEWS_SECONDS) is None, "who stood still reads old answers, and believes none"


def test_only_the_last_question_is_answered_and_no_answer_outlives_its_link() -> None:
    cold = told((2, 5.0, ALL), (3, 5.0, ALL))
    first = cold.ask(2, 5.1)
    cold.ask(2, 5.2)
    cold.answered(2, first, frozenset())
    assert cold.agreed_since(ALL, 5.3) == 5.0
    cold.forget(2)
    assert cold.agreed_since(ALL, 5.3) is None, "it may be another life"


def test_who_began_says_so_as_long_as_it_sees_the_same_without_a_break() -> None:
    cold = told((2, 5.0, ALL), (3, 5.0, ALL))
    cold.agreed_since(ALL, 5.1)
    assert cold.began == ALL
    cold.agreed_since(ALL, 50.0)
    assert cold.began == ALL
    cold.agreed_since(frozenset([1, 2]), 51.0)
    cold.agreed_since(ALL, 52.0)
    assert cold.began == frozenset(), "it may have had the keys of the one that was not seen"


# --- A whole cluster --------------------------------------------------------------------------------------------------


def subscribed(client: Client) -> bool:
    return bool(client.of(Suback))


def seconds_until_all_subscribe(cluster: NodeCluster, clients: list[Client], seconds_max: float = 20.0) -> float:
    began = cluster.now
    for number, client in enumerate(clients):
        client.subscribe(number + 1, "quotes", "n > 0")
    cluster.until(lambda: all(subscribed(client) for client in clients), seconds_max)
    return cluster.now - began


def restarted(cluster: NodeCluster, but: tuple[str, ...] = (), down: float = 0.3, apart: float = 0.0) -> list[Client]:
    """All of them killed at once, and started again in their order; a client of each."""
    names = list(cluster.hosts)
    for name in names:
        cluster.kill(name)
    cluster.run(down)
    for name in [one for one in names if one not in but]:
        cluster.start(name, ["b0"] if name != "b0" else [], life=2)
        cluster.run(apart)
    return [cluster.connect(name) for name in cluster.hosts]


@pytest.mark.parametrize("brokers", [2, 3, 4, 5])
def test_when_all_start_again_at_once_a_subscription_waits_for_links_alone(brokers: int) -> None:
    cluster = NodeCluster(brokers, check_every=10)
    assert seconds_until_all_subscribe(cluster, restarted(cluster)) < 1.0


def test_they_need_not_start_in_one_moment() -> None:
    cluster = NodeCluster(3, check_every=10)
    assert seconds_until_all_subscribe(cluster, restarted(cluster, apart=1.0)) < 1.5


def test_a_new_cluster_waits_until_all_is_over_that_a_lost_disk_may_have_known() -> None:
    cluster = NodeCluster(3, check_every=10)
    cluster.records.clear()
    names = ["b0:7401", "b1:7401", "b2:7401"]
    for name in list(cluster.hosts):
        cluster.kill(name)
    for name in ("b0", "b1", "b2"):
        cluster.start(name, [one.partition(":")[0] for one in names], life=2)
    seconds = seconds_until_all_subscribe(cluster, [cluster.connect(name) for name in cluster.hosts])
    assert LEASE_SECONDS <= seconds < LEASE_SECONDS + 1.0


def test_when_one_of_them_stays_away_the_others_wait_as_long_as_ever() -> None:
    cluster = NodeCluster(3, check_every=10)
    assert seconds_until_all_subscribe(cluster, restarted(cluster, but=("b2",))) > SETTLE_SECONDS + LEASE_SECONDS


def three_of_four_restarted(safeguards: frozenset[Safeguard] = SAFEGUARDS) -> tuple[NodeCluster, list[Client]]:
    """The fourth one serves, and is out of reach."""
    cluster = NodeCluster(4, check_every=10, safeguards=safeguards)
    cluster.hold("b3", "b0", "b1", "b2")
    for name in ("b0", "b1", "b2"):
        cluster.kill(name)
    for name in ("b0", "b1", "b2"):
        cluster.start(name, ["b0"] if name != "b0" else [], life=2)
    return cluster, [cluster.connect(name) for name in ("b0", "b1", "b2")]


def test_one_that_serves_and_is_out_of_reach_makes_the_others_wait() -> None:
    """It may answer by leases that their former lives gave it."""
    cluster, clients = three_of_four_restarted()
    assert seconds_until_all_subscribe(cluster, clients) > SETTLE_SECONDS + LEASE_SECONDS


def test_without_the_safeguard_it_answers_for_keys_and_lacks_what_has_suback() -> None:
    cluster, clients = three_of_four_restarted(SAFEGUARDS - {Safeguard.COLD_START_AGREED})
    assert seconds_until_all_subscribe(cluster, clients) < LEASE_SECONDS
    away, scope = cluster.node("b3").cluster.kv, cluster.node("b3").cluster.scope(cluster.now)
    placed = [item for item in cluster.node("b0").cluster.kv.items.table.values() if item.name not in away.items.table]
    assert any(arc.touches(item.low, item.high) for item in placed for arc in scope.stretches)


def test_who_starts_again_beside_one_that_serves_waits_for_its_copy() -> None:
    cluster = NodeCluster(3, check_every=10)
    reader = cluster.connect("b1")
    numbers = range(1, 13)
    for number in numbers:
        reader.subscribe(number, "quotes", f"n = {number}")
    cluster.until(lambda: len(reader.of(Suback)) == len(numbers))
    for name in ("b0", "b2"):
        cluster.kill(name)
        cluster.run(0.1)
        cluster.start(name, ["b1"], life=2)
        cluster.run(1.5)
        assert "all brokers are new" not in [note.event for note in cluster.hosts[name].notes]
    writer = cluster.connect("b2")
    writer.publish(quote_batch(bodies=["x"] * len(numbers), n=list(numbers)))
    cluster.run(20.0)
    assert sorted(number for number, _ in reader.bodies) == list(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_whatever_restarts_and_whenever_what_is_subscribed_is_heard(seed: int) -> None:
    """Brokers die, all or some, come back apart, and are cut off meanwhile; what has SUBACK then misses nothing."""
    random = Random(seed)
    cluster = NodeCluster(random.choice([2, 3, 4]), seed=seed, check_every=20)
    names = list(cluster.hosts)
    life = 1
    for _ in range(3):
        life += 1
        struck = names if random.random() < 0.6 else random.sample(names, random.randint(1, len(names) - 1))
        for name in struck:
            cluster.kill(name)
        if random.random() < 0.4:
            one = random.choice(names)
            cluster.hold(one, *[name for name in names if name != one])
        for name in random.sample(struck, len(struck)):
            cluster.run(random.choice([0.0, 0.1, 1.0, 4.0]))
            cluster.start(name, [one for one in names if one != name], life=life)
        reader = cluster.connect(random.choice(names))
        for number in range(1, 9):
            reader.subscribe(number, "quotes", f"n = {number}")
        cluster.run(random.choice([0.3, 1.0, 3.0]))
        cluster.release()
        cluster.until(lambda reader=reader: len(reader.of(Suback)) == 8, 60.0)
        cluster.run(8.0)  # halves that went apart have met
        writer = cluster.connect(random.choice(names))
        writer.publish(quote_batch(bodies=["x"] * 8, n=list(range(1, 9))))
        cluster.run(8.0)
        assert sorted(number for number, _ in reader.bodies) == list(range(1, 9))
        cluster.disconnect(reader)
        cluster.disconnect(writer)
        cluster.run(8.0)

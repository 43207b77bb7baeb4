"""The cluster as one broker sees it: whom it knows, which keys it answers for and since when, and what goes where."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.cluster import HERE, WAIT
from headgate.broker.core.effects import Dial
from headgate.broker.core.inputs import Loaded, Reachable, Wake
from headgate.broker.core.keyspace import RING_SIZE, Way, distance, hash_identifier
from headgate.broker.core.kv import Item
from headgate.broker.core.kv.limits import TICKETS_MAX
from headgate.broker.core.limits import ALONE_SECONDS, ROUTE_HOPS_MAX
from headgate.broker.core.membership import Letter, to_wire
from headgate.broker.core.membership.messages import Gone
from headgate.protocol.messages import Control, Error, Message
from tests.support.keyed_parts import written
from tests.support.node_cluster import NodeCluster

STORE, ROUTE, ROSTER = 1, 2, 3
KEYS = [number * RING_SIZE // 64 for number in range(64)]


def keys_covered(cluster: NodeCluster, name: str) -> list[int]:
    scope = cluster.node(name).cluster.scope(cluster.now)
    return [key for key in KEYS if scope.covers(key)]


def controls(cluster: NodeCluster, kind: int, since: int = 0) -> list[tuple[str, str, list[Any]]]:
    return [
        (source, to, list(what.body))
        for source, to, what in cluster.said[since:]
        if isinstance(what, Control) and what.kind == kind
    ]


def errors(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, Error)]


# --- Whose the keys are -----------------------------------------------------------------------------------------------


def test_without_seeds_and_alone_every_key_is_answered_for_at_once() -> None:
    node = Node(NodeConfig("b0", 1), Random(1), 0.0)
    assert node.cluster.alone and node.cluster.settled(0.0) and node.cluster.scope(0.0).everything
    assert {node.cluster.place_of(key) for key in KEYS} == {HERE}
    node.handle(Wake(), node.next_deadline())  # looks once for items that belong to others
    assert node.next_deadline() == float("inf")


@pytest.mark.parametrize(
    ("seeds", "records"), [(("b9:7401",), {}), ((), {"contacts": ["b9:7401"]}), (("b9:7401",), {"contacts": ["b8:1"]})]
)
def test_who_knows_of_others_answers_for_nothing_before_they_had_time_to_speak(
    seeds: tuple[str, ...], records: dict[str, Any]
) -> None:
    """Else a broker that starts beside a living cluster takes all of its keys for a moment."""
    node = Node(NodeConfig("b0", 1, seeds=seeds), Random(1), 0.0)
    node.handle(Loaded(records), 0.0)
    node.cluster.scope(0.0)
    assert {node.cluster.place_of(key) for key in KEYS} == {WAIT}
    effects = node.handle(Reachable("b0:7401"), 0.0)
    assert not node.cluster.settled(0.0)
    now = 0.0
    dialled = {effect.address for effect in effects if isinstance(effect, Dial)}
    while not node.cluster.settled(now):
        now = max(now, node.next_deadline())
        dialled |= {effect.address for effect in node.handle(Wake(), now) if isinstance(effect, Dial)}
    assert now >= ALONE_SECONDS
    assert dialled >= {*seeds, *records.get("contacts", [])}
    assert node.cluster.scope(now).everything, "nobody answered: then nobody is there"


@pytest.mark.parametrize("brokers", [2, 3])
def test_up_to_three_brokers_everybody_answers_for_everything(brokers: int) -> None:
    cluster = NodeCluster(brokers)
    for node in cluster.nodes:
        assert node.cluster.scope(cluster.now).everything
        assert node.cluster.scope_share(cluster.now) == 1.0
        assert {node.cluster.place_of(key) for key in KEYS} == {HERE}


@pytest.mark.parametrize("brokers", [4, 5, 7])
def test_with_more_each_key_is_answered_for_by_three_and_everybody_knows_one_of_them(brokers: int) -> None:
    cluster = NodeCluster(brokers)
    holders: dict[int, set[int]] = {key: set() for key in KEYS}
    for name, host in cluster.hosts.items():
        for key in keys_covered(cluster, name):
            holders[key].add(host.node.cluster.me)
    identifiers = sorted(node.cluster.me for node in cluster.nodes)
    for key, some in holders.items():
        assert some == set(sorted(identifiers, key=lambda one: distance(key, one))[:3])
        for node in cluster.nodes:
            place = node.cluster.place_of(key)
            assert (place == HERE) == (node.cluster.me in some)
            assert place == HERE or place in some
            assert node.cluster.owner_of(key) == min(some, key=lambda one: distance(key, one))
    assert sum(node.cluster.scope_share(cluster.now) for node in cluster.nodes) == pytest.approx(3.0)


def test_places_are_remembered_for_one_epoch_and_no_longer() -> None:
    cluster = NodeCluster(5)
    node = cluster.nodes[0].cluster
    epoch, places = node.epoch, [node.place_of(key) for key in KEYS]
    cluster.run(5.0)
    node.scope(cluster.now)
    assert node.epoch == epoch, "nothing happened"
    elsewhere = next(place for place in places if place != HERE)
    other = next(name for name, host in cluster.hosts.items() if host.node.cluster.me == elsewhere)
    cluster.cut(cluster.hosts["b0"].name, other)
    cluster.until(lambda: not cluster.linked("b0", other))
    node.scope(cluster.now)
    assert node.epoch != epoch
    again = [node.place_of(key) for key in KEYS]
    assert [place for place in again if place == elsewhere] == []
    assert {now for before, now in zip(places, again, strict=True) if before == elsewhere} == {WAIT}


def test_keys_of_the_dead_are_answered_for_again_by_whoever_follows() -> None:
    cluster = NodeCluster(5)
    cluster.kill("b2")
    cluster.until(lambda: all(sum(key in keys_covered(cluster, name) for name in cluster.hosts) for key in KEYS), 10.0)
    cluster.until(lambda: all(node.cluster.chord is not None for node in cluster.nodes), 1.0)
    cluster.run(30.0)
    assert [len([name for name in cluster.hosts if key in keys_covered(cluster, name)]) for key in KEYS] == [3] * 64


@pytest.mark.parametrize("victim", ["b1", "b2"])
def test_when_one_of_five_dies_the_ring_becomes_a_mesh_and_the_others_keys_stay_whose_they_were(victim: str) -> None:
    cluster = NodeCluster(5)
    ring = sorted(cluster.hosts, key=hash_identifier)
    before = ring[ring.index(victim) - 1]
    cluster.kill(victim)
    silent = dict.fromkeys(cluster.hosts, 0)
    for _ in range(150):
        cluster.run(0.1)
        for name, node in zip(cluster.hosts, cluster.nodes, strict=True):
            silent[name] += not node.cluster.settled(cluster.now)
    assert cluster.settled()
    assert [silent[name] for name in cluster.hosts if name != before] == [0, 0, 0]
    assert silent[before] <= 10, "who had its lease from the dead one has it from the next within a second"


def test_never_do_two_brokers_believe_a_key_to_be_their_own() -> None:
    """Of all that a broker answers for, what it owns: the first stretch. Through starts, deaths, leaves and returns."""
    cluster = NodeCluster(3)

    def look(seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            cluster.run(0.1)
            for key in KEYS:
                owners = []
                for name, host in cluster.hosts.items():
                    own = host.node.cluster.kv.ownership.ready
                    if own is not None and own.covers(key) and key in keys_covered(cluster, name):
                        owners.append(name)
                assert len(owners) <= 1, (cluster.now, key, owners)

    for step in (
        lambda: cluster.start("b3"),
        lambda: cluster.start("b4"),
        lambda: cluster.kill("b1"),
        lambda: cluster.start("b1", ["b0"], life=2),
        lambda: cluster.leave("b4"),
        lambda: cluster.kill("b0"),
        lambda: cluster.start("b0", [], life=2),
    ):
        step()
        look(8.0)


# --- Who is there -----------------------------------------------------------------------------------------------------


def test_a_newcomer_that_knows_one_broker_comes_to_know_all() -> None:
    cluster = NodeCluster(4)
    cluster.start("b9", ["b2"])
    cluster.until(lambda: all(len(node.cluster.linked()) == 4 for node in cluster.nodes), 10.0)
    assert set(cluster.records["b9"]["contacts"]) == {f"b{number}:7401" for number in range(4)}


def test_a_broker_that_comes_back_without_seeds_finds_its_cluster_by_its_contacts() -> None:
    cluster = NodeCluster(3)
    cluster.kill("b0")
    cluster.run(20.0)
    cluster.start("b0", [], life=2)
    cluster.until(lambda: all(len(node.cluster.linked()) == 2 for node in cluster.nodes), 5.0)
    cluster.until(lambda: all(node.cluster.scope(cluster.now).everything for node in cluster.nodes), 20.0)


def test_who_leaves_says_so_and_nobody_waits_for_it() -> None:
    cluster = NodeCluster(5)
    cluster.leave("b3")
    cluster.until(lambda: all(sum(key in keys_covered(cluster, name) for name in cluster.hosts) for key in KEYS), 4.0)
    gone = hash_identifier("b3")
    assert all(gone not in node.cluster.table.known for node in cluster.nodes)


def test_rosters_go_round_and_a_malformed_one_costs_its_link() -> None:
    cluster = NodeCluster(3)
    since = len(cluster.said)
    cluster.run(10.0)
    rosters = controls(cluster, ROSTER, since)
    assert {source for source, _, _ in rosters} == set(cluster.hosts)
    assert all(
        set(body[0]) == {f"{name}:7401" for name in cluster.hosts if name != source} for source, _, body in rosters
    )
    for wrong in (["b" * 301], [7], [""], ["b1:7401"] * 65):
        cluster.until(lambda: cluster.linked("b0", "b1"), 5.0)
        assert "Roster" in errors(cluster.tell("b1", "b0", Control(ROSTER, [wrong])))[0]
        assert not cluster.linked("b0", "b1")


def test_strangers_that_nobody_has_a_link_to_are_dialled_for_a_while_and_forgotten() -> None:
    cluster = NodeCluster(2)
    cluster.tell("b1", "b0", Control(ROSTER, [["ghost:7401"]]))
    assert "ghost:7401" in cluster.node("b0").peers.dials.wanted
    cluster.run(20.0)
    assert "ghost:7401" in cluster.node("b0").peers.dials.wanted
    cluster.run(20.0)
    assert "ghost:7401" not in cluster.node("b0").peers.dials.wanted


# --- What other brokers say -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Control(99, []), "no CONTROL has kind 99"),
        (Control(STORE, []), "StoreMessage has 1 fields, not 0"),
        (Control(STORE, [[1, "x"]]), "Put has 7 fields"),
        (Control(STORE, [[99, []]]), "no STORE has kind 99"),
        (Control(ROUTE, [1, 0, 0, 1]), "Routed has 5 fields"),
        (Control(ROUTE, [1, 0, 0, 1, "1"]), "Routed: message"),
        (Control(ROUTE, [RING_SIZE - 1, 4, 0, 1, [7, [1]]]), "Routed: way"),
        (Control(ROUTE, [1, 0, -1, 1, [7, [1]]]), "Routed: hops"),
        (Control(ROUTE, [-1, 0, 0, 1, [7, [1]]]), "Routed: key"),
    ],
)
def test_nonsense_costs_its_link_and_nothing_else(wrong: Control, words: str) -> None:
    cluster = NodeCluster(3)
    assert words in errors(cluster.tell("b1", "b0", wrong))[0]
    assert not cluster.linked("b0", "b1") and cluster.linked("b0", "b2")
    cluster.until(lambda: cluster.linked("b0", "b1") and cluster.linked("b1", "b0"), 5.0)


def test_nobody_writes_letters_in_anothers_name() -> None:
    cluster = NodeCluster(5)
    chord = cluster.node("b1").cluster.chord
    assert chord is not None
    for sender, fine in (("b1", True), ("b2", False)):
        said = cluster.tell(sender, "b0", to_wire(Letter(chord.me, None, Gone(chord.me._replace(incarnation=1)))))
        assert (errors(said) == []) == fine
        assert cluster.linked("b0", sender) == fine


def test_a_message_for_a_key_reaches_its_owner_from_anywhere_and_his_answer_comes_back() -> None:
    cluster = NodeCluster(5)
    for name, host in cluster.hosts.items():
        for key in KEYS[::9]:
            item = Item(("thing", name, key), key, key, 1, [key])
            host.node.cluster.kv.put([item], cluster.now)
            host.node.carry_on(cluster.now)
    cluster.run(0.5)
    assert [node.cluster.kv.statistics().puts_waiting for node in cluster.nodes] == [0] * 5
    assert [node.cluster.lost_routes for node in cluster.nodes] == [0] * 5
    for name in cluster.hosts:
        for key in KEYS[::9]:
            assert cluster.owner(key).node.cluster.kv.get(("thing", name, key)) is not None


def test_no_two_lives_of_a_broker_number_their_puts_alike() -> None:
    nodes = [Node(NodeConfig("b0", life), Random(1), 0.0) for life in (3, 4)]
    tickets = [node.cluster.kv.put([Item(("thing",), 1, 1, 1, "x")], 0.0) for node in nodes]
    assert tickets[1] - tickets[0] == TICKETS_MAX


def test_a_message_that_went_in_a_circle_comes_to_an_end() -> None:
    cluster = NodeCluster(5)
    key = next(key for key in KEYS if cluster.owner(key).name not in ("b0", "b1"))
    body = [1, 1, 0, key, key, 0, written([Item(("thing",), key, key, 1, [])])]
    origin = cluster.node("b1").cluster.me
    for hops, lost in ((0, 0), (ROUTE_HOPS_MAX, 1)):
        message = Control(ROUTE, [key, int(Way.NEAREST), hops, origin, [1, body]])
        before, since = cluster.node("b0").cluster.lost_routes, len(cluster.said)
        assert cluster.tell("b1", "b0", message) == []
        assert cluster.node("b0").cluster.lost_routes - before == lost
        passed = [body for source, _, body in controls(cluster, ROUTE, since) if source == "b0"]
        assert [body[2] for body in passed] == ([] if lost else [1])

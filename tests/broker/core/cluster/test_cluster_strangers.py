"""Who is let into a cluster, and what a broker does that is not: same name, lost data, another cluster, other settings.

Brokers dial what they were told to join and what they remember. Both lists grow old: another broker may live at an
address, and a broker may come that has no place. Each of these has one end, and none is to stay undecided.
"""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.effects import Note
from headgate.broker.core.limits import ALONE_SECONDS
from headgate.broker.core.links.limits import REFUSAL_SECONDS
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error, Scope
from tests.support.node_cluster import Host, NodeCluster

pytestmark = pytest.mark.slow

LONG = 30.0


def settled(cluster: NodeCluster, name: str) -> bool:
    return cluster.node(name).cluster.settled(cluster.now)


def refusal(cluster: NodeCluster, name: str) -> str:
    return next(iter(cluster.node(name).cluster.refusals(cluster.now).values()), "")


def reasons(host: Host) -> list[str]:
    notes = [note for note in host.notes if isinstance(note, Note) and note.event == "broker refused"]
    return [str(note.facts["reason"]) for note in notes]


def twin(cluster: NodeCluster, name: str, at: str, **config: Any) -> Host:
    """Another process that calls itself by this name, at an address of its own."""
    return cluster.start(at, ["b0"], life=2, name=name, **config)


@pytest.mark.parametrize("brokers", [2, 5])
def test_a_second_broker_of_a_name_is_never_ready_and_the_first_one_notices_nothing(brokers: int) -> None:
    cluster = NodeCluster(brokers)
    stray = twin(cluster, "b1", "elsewhere")
    for _ in range(int(LONG)):
        cluster.run(1.0)
        assert not settled(cluster, "elsewhere") and settled(cluster, "b1")
        assert "two brokers are named b1" in refusal(cluster, "elsewhere")
    assert len(reasons(stray)) == 1, "said once"
    assert not stray.node.publishers.knows(cluster.now)
    assert cluster.linked("b0", "b1")


def test_it_is_let_in_when_the_first_one_is_gone() -> None:
    cluster = NodeCluster(3)
    twin(cluster, "b1", "elsewhere")
    cluster.run(LONG)
    cluster.kill("b1")
    cluster.until(lambda: settled(cluster, "elsewhere"), 20.0)
    assert cluster.linked("b0", "b1") and refusal(cluster, "elsewhere") == ""


def test_who_lost_its_data_and_its_clock_waits_until_its_former_life_is_forgotten() -> None:
    cluster = NodeCluster(3, incarnation=7)
    cluster.kill("b1")
    cluster.records["b1"] = {}
    cluster.start("b1", ["b0", "b2"], incarnation=3)
    cluster.run(LONG)
    assert not settled(cluster, "b1") and "b1 is known here in life 7, and this is life 3" in refusal(cluster, "b1")
    cluster.until(lambda: settled(cluster, "b1"), 60.0)
    assert cluster.linked("b1", "b0") and cluster.linked("b1", "b2")


def test_who_refused_and_went_away_does_not_keep_a_broker_waiting_for_ever() -> None:
    cluster = NodeCluster(1)
    twin(cluster, "b0", "elsewhere")
    cluster.run(LONG)
    assert not settled(cluster, "elsewhere")
    cluster.kill("b0")
    cluster.until(lambda: settled(cluster, "elsewhere"), REFUSAL_SECONDS + ALONE_SECONDS + 5.0)


@pytest.mark.parametrize("setting", ["log_copies", "replicas"])
def test_who_is_set_up_in_another_way_is_not_let_in_and_both_say_in_what(setting: str) -> None:
    cluster = NodeCluster(2)
    host = cluster.start("b9", ["b0"], **{setting: 3})
    cluster.run(LONG)
    assert not settled(cluster, "b9") and not cluster.linked("b0", "b9")
    for text in (refusal(cluster, "b9"), *reasons(host), *reasons(cluster.hosts["b0"])):
        assert f"the same {setting}" in text and "b0 has 2" in text and "b9 has 3" in text
    assert len(reasons(cluster.hosts["b0"])) == 1


def test_who_speaks_another_version_is_never_ready_until_the_cluster_speaks_it_too() -> None:
    cluster = NodeCluster(1)
    text = "to other brokers this one speaks version 1, and b9 speaks version 2: upgrade the older one"
    cluster.turned_away["b0"] = Error(ErrorCode.VERSION, Scope.CONNECTION, 0, text)
    cluster.start("b9", ["b0"])
    cluster.run(LONG)
    assert not settled(cluster, "b9") and refusal(cluster, "b9") == text
    cluster.turned_away.clear()
    cluster.until(lambda: settled(cluster, "b9") and cluster.linked("b0", "b9"), REFUSAL_SECONDS + 5.0)


def test_clusters_of_different_names_never_link_and_both_say_so() -> None:
    cluster = NodeCluster(2)
    host = cluster.start("b9", ["b0"], cluster="staging")
    cluster.run(LONG)
    assert not settled(cluster, "b9"), "it was told to join what it may not join"
    assert not cluster.linked("b0", "b9")
    for text in (*reasons(host), *reasons(cluster.hosts["b0"])):
        assert "b0 is of the cluster 'headgate'" in text and "'staging'" in text
    assert reasons(host) and reasons(cluster.hosts["b0"])


def test_who_only_remembers_an_address_where_another_cluster_lives_now_does_without_it() -> None:
    """`b0` was started without --join, and knows the others from its records."""
    cluster = NodeCluster(2)
    cluster.kill("b1")
    cluster.kill("b0")
    cluster.records["b1"] = {}
    cluster.start("b1", [], cluster="staging")
    cluster.start("b0", [], life=2)
    cluster.until(lambda: settled(cluster, "b0") and settled(cluster, "b1"), 15.0)
    assert not cluster.linked("b0", "b1") and refusal(cluster, "b0") == ""


@pytest.mark.parametrize("left_in_order", [False, True])
@pytest.mark.parametrize("name", ["b2", "other"])
def test_who_was_told_to_join_nobody_is_not_taken_in_where_its_address_is_remembered(
    name: str, left_in_order: bool
) -> None:
    """Not even under the name that was there: it has no data, and nobody told it of a cluster."""
    cluster = NodeCluster(3)
    (cluster.leave if left_in_order else cluster.kill)("b2")
    cluster.records["b2"] = {}
    host = cluster.start("b2", [], life=2, name=name)
    assert settled(cluster, "b2"), "alone for certain, and at once"
    cluster.run(LONG)
    assert settled(cluster, "b2") and cluster.node("b2").cluster.linked() == []
    assert "was told to join nobody" in reasons(cluster.hosts["b0"])[-1]
    assert "--join b0:7401" in "".join(reasons(host)), "the other side is told as well"


def test_a_founder_is_joined_by_who_was_told_of_it_and_then_by_all() -> None:
    cluster = NodeCluster(3)
    cluster.kill("b0")
    cluster.records["b0"] = {}
    cluster.start("b0", [], life=2)  # the others have it in their --join
    cluster.until(cluster.settled, 20.0)


@pytest.mark.parametrize("left_in_order", [False, True])
@pytest.mark.parametrize(("seeds", "taken_in"), [(["b2"], False), (["dead"], True), (["b2", "dead"], True)])
def test_a_new_name_on_a_remembered_address_that_is_told_of_itself_or_the_dead_comes_to_rest(
    seeds: list[str], taken_in: bool, left_in_order: bool
) -> None:
    """Told only of itself it is a founder; told of others it looks for a cluster, and the one that finds it will do."""
    cluster = NodeCluster(3)
    (cluster.leave if left_in_order else cluster.kill)("b2")
    cluster.records["b2"] = {}
    cluster.start("b2", seeds, name="newcomer")
    cluster.until(lambda: settled(cluster, "b2"), 15.0)
    cluster.run(LONG)
    assert settled(cluster, "b2")
    assert len(cluster.node("b2").cluster.linked()) == (2 if taken_in else 0)
    if taken_in:
        assert cluster.settled()

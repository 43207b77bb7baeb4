"""Schemas: items on the whole ring whose last word stays, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from headgate.broker.core.delivery import Streams
from headgate.broker.core.effects import Effect
from headgate.broker.core.effects import Store as ToDisk
from headgate.broker.core.keyspace import RING_SIZE
from headgate.broker.core.kv import Added, Item, KvConfig, KvLimits, KvStore, Placed, Removed, View
from headgate.broker.core.limits import Limits
from headgate.broker.core.placement.schemas import Schemas
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Ask, Error
from tests.support.node_cluster import Client, NodeCluster

ONE = {"attributes": {"price": {"type": "float", "min": 0, "max": 10, "precision": 0.5}}}
TWO = {"attributes": {"price": {"type": "int"}}}


class Store(KvStore):
    """Remembers what was put."""

    def __init__(self) -> None:
        super().__init__(7, KvConfig(), 0.0)
        self.put_items: list[Item] = []

    def put(self, items: Iterable[Item], now: float) -> int:
        listed = list(items)
        self.put_items += listed
        return super().put(listed, now)


class Dimension:
    """Schemas over a store of their own, alone on the ring."""

    def __init__(self, **limits: int) -> None:
        self.effects: list[Effect] = []
        self.streams = Streams()
        self.kv = Store()
        self.put = self.kv.put_items
        self.kv.view(View(7, 7, (), True, True), 0.0)
        self.schemas = Schemas(self.effects, self.streams, self.kv, Limits(**limits))

    def load(self, stream: str, record: Any) -> None:
        self.schemas.load(stream, record, 0.0)
        self.carry_on(0.0)

    def carry_on(self, now: float) -> None:
        """What the Node does with what the store says."""
        for effect in self.kv.effects:  # which grows meanwhile
            if isinstance(effect, Added):
                self.schemas.add(effect.item, now)
            elif isinstance(effect, Removed):
                self.schemas.remove(effect.item, now)
            elif isinstance(effect, Placed):
                self.schemas.placed(effect.ticket, True, now)
        self.kv.effects.clear()

    def write(self, schema: Any, now: float) -> list[bool]:
        done: list[bool] = []
        self.schemas.write("quotes", schema, lambda well, now: done.append(well), now)
        self.carry_on(now)
        return done


def test_a_schema_is_an_item_on_the_whole_ring_whose_version_is_the_time() -> None:
    dimension = Dimension()
    dimension.schemas.wall_offset = 1_000.0
    assert dimension.write(ONE, 2.5) == [True]
    assert dimension.put == [Item(("schema", "quotes"), 0, RING_SIZE - 1, 1_002_500_000, ONE)]
    assert dimension.streams.schemas == {"quotes": ONE}
    assert dimension.effects == [ToDisk("schema/quotes", [1_002_500_000, ONE])]


@pytest.mark.parametrize("later", [2.5, 1.0, -3.0])
def test_the_next_word_is_newer_whatever_the_clock_says(later: float) -> None:
    dimension = Dimension()
    dimension.write(ONE, 2.5)
    dimension.write(TWO, later)
    assert dimension.put[1].version > dimension.put[0].version
    assert dimension.streams.schemas == {"quotes": TWO}
    assert dimension.effects[-1] == ToDisk("schema/quotes", [dimension.put[1].version, TWO])


def test_a_clock_before_the_epoch_still_makes_a_version() -> None:
    dimension = Dimension()
    dimension.write(ONE, -5.0)
    assert dimension.put[0].version == 1


def test_who_deletes_writes_and_the_disk_forgets() -> None:
    dimension = Dimension()
    dimension.write(ONE, 1.0)
    dimension.write(None, 2.0)
    assert dimension.streams.schemas == {}
    assert dimension.effects[-1] == ToDisk("schema/quotes", [2_000_000, None])
    dimension.write(TWO, 1.5)
    assert dimension.streams.schemas == {"quotes": TWO}, "a clock that is behind the one that deleted"


def test_a_schema_that_was_deleted_while_its_holder_was_away_does_not_come_back() -> None:
    dimension = Dimension()
    dimension.load("quotes", [5, None])
    old = Item(("schema", "quotes"), 0, RING_SIZE - 1, 5, ONE)
    dimension.schemas.add(old, 0.0)
    assert dimension.put == [old._replace(value=None)] and dimension.streams.schemas == {} and dimension.effects == []
    dimension.schemas.add(old._replace(version=6), 0.0)
    assert dimension.streams.schemas == {"quotes": ONE}
    assert dimension.effects == [ToDisk("schema/quotes", [6, ONE])]


def test_what_is_on_disk_gives_way_to_a_deletion_that_it_missed() -> None:
    dimension = Dimension()
    dimension.load("quotes", [5, ONE])
    dimension.kv.items.alone = False
    assert dimension.streams.schemas == {"quotes": ONE} and dimension.effects == [], "the disk has it"
    dimension.kv.put([Item(("schema", "quotes"), 0, RING_SIZE - 1, 9, None)], 0.0)
    dimension.carry_on(0.0)
    assert dimension.streams.schemas == {} and dimension.effects == [ToDisk("schema/quotes", [9, None])]


def test_another_word_is_written_once() -> None:
    dimension = Dimension()
    dimension.write(ONE, 1.0)
    dimension.write(TWO, 2.0)
    assert dimension.effects == [ToDisk("schema/quotes", [1_000_000, ONE]), ToDisk("schema/quotes", [2_000_000, TWO])]


def test_deletions_are_remembered_up_to_a_bound() -> None:
    dimension = Dimension(schemas_deleted=1)
    dimension.load("other", [7, None])
    dimension.write(ONE, 1.0)
    dimension.write(None, 2.0)
    assert dimension.effects[-2:] == [ToDisk("schema/quotes", [2_000_000, None]), ToDisk("schema/other", None)]


def test_a_schema_that_was_never_there_is_not_taken_from_disk() -> None:
    dimension = Dimension()
    dimension.schemas.remove(Item(("schema", "quotes"), 0, RING_SIZE - 1, 1, ONE), 0.0)
    assert dimension.effects == []


@pytest.mark.parametrize("record", [[5, ONE], ONE])
def test_what_an_earlier_life_stored_is_known_at_once_and_told(record: Any) -> None:
    dimension = Dimension()
    dimension.load("quotes", record)
    assert dimension.streams.schemas == {"quotes": ONE}
    assert dimension.put == [Item(("schema", "quotes"), 0, RING_SIZE - 1, 1 if record is ONE else 5, ONE)]


# --- Among brokers ----------------------------------------------------------------------------------------------------


def ask(client: Client, verb: str, **arguments: Any) -> Any:
    """The answer, when it comes."""
    client.take()
    client.send(Ask(1, verb, arguments))
    client.cluster.until(lambda: bool(client.got), 40.0)
    (answer,) = client.take()
    return answer.value if isinstance(answer, Answer) else answer


def test_a_schema_is_answered_when_every_broker_has_it() -> None:
    cluster = NodeCluster(5)
    client = cluster.connect("b1")
    client.send(Ask(9, "schema.put", {"stream": "quotes", "schema": ONE}))
    assert client.got == []
    cluster.until(lambda: bool(client.got))
    (answer,) = client.got
    assert isinstance(answer, Answer) and answer.request == 9 and answer.value["schema"] == ONE
    assert all(node.streams.schemas == {"quotes": ONE} for node in cluster.nodes)
    assert all(records["schema/quotes"][1] == ONE for records in cluster.records.values())
    assert ask(cluster.connect("b4"), "schema.get", stream="quotes")["schema"] == ONE


def test_whoever_writes_last_wins_everywhere_and_a_deletion_is_a_word_too() -> None:
    cluster = NodeCluster(3)
    clients = [cluster.connect(name) for name in cluster.hosts]
    ask(clients[0], "schema.put", stream="quotes", schema=ONE)
    ask(clients[1], "schema.put", stream="quotes", schema=TWO)
    assert all(node.streams.schemas == {"quotes": TWO} for node in cluster.nodes)
    ask(clients[2], "schema.rm", stream="quotes")
    assert all(node.streams.schemas == {} for node in cluster.nodes)
    assert all(records["schema/quotes"][1] is None for records in cluster.records.values())


def test_who_was_away_when_it_was_deleted_hears_of_it_and_so_do_all_after_a_restart() -> None:
    cluster = NodeCluster(2)
    client = cluster.connect("b0")
    ask(client, "schema.put", stream="quotes", schema=ONE)
    cluster.kill("b1")
    cluster.run(10.0)
    ask(client, "schema.rm", stream="quotes")
    cluster.kill("b0")
    cluster.start("b1", ["b0"], life=2)
    cluster.run(10.0)
    assert cluster.hosts["b1"].node.streams.schemas == {"quotes": ONE}, "it cannot know"
    cluster.start("b0", ["b1"], life=2)
    cluster.run(20.0)
    assert [node.streams.schemas for node in cluster.nodes] == [{}, {}]
    assert [records["schema/quotes"][1] for records in cluster.records.values()] == [None, None]


def test_the_whole_cluster_may_stop_and_the_newest_word_on_any_disk_stays() -> None:
    cluster = NodeCluster(2)
    client = cluster.connect("b0")
    ask(client, "schema.put", stream="quotes", schema=ONE)
    cluster.kill("b1")
    cluster.run(10.0)
    ask(client, "schema.put", stream="quotes", schema=TWO)
    cluster.kill("b0")
    assert [cluster.records[name]["schema/quotes"][1] for name in ("b0", "b1")] == [TWO, ONE]
    cluster.start("b1", ["b0"], life=2)
    cluster.start("b0", ["b1"], life=2)
    cluster.run(20.0)
    assert [node.streams.schemas for node in cluster.nodes] == [{"quotes": TWO}] * 2
    assert [records["schema/quotes"][1] for records in cluster.records.values()] == [TWO, TWO]


def test_when_brokers_do_not_answer_the_client_hears_that() -> None:
    # Before a broker that is alone knows that it is alone.
    cluster = NodeCluster(3, kv=KvLimits(put_seconds=1.0))
    client = cluster.connect("b0")
    cluster.hold("b0", "b1", "b2")
    refusal = ask(client, "schema.put", stream="quotes", schema=ONE)
    assert isinstance(refusal, Error)
    assert (refusal.code, refusal.reference) == (ErrorCode.UNAVAILABLE, 1)
    assert "try again" in refusal.text

"""The walk that is printed is the one that events go, counted edge by edge in a cluster of Nodes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headgate.broker.core.clients import ask
from headgate.broker.core.keyspace import ROUTINGS
from headgate.matching.structure import DEFAULT_SHAPE
from headgate.ops.jsonlines import Line
from headgate.ops.walks import walks_of
from headgate.protocol.data import encode_column
from headgate.protocol.structure import filters_of_body
from tests.properties.test_structure_delivers import StructureRun
from tests.support.builders import quote_batch
from tests.support.node_cluster import NodeCluster


class ClusterClient:
    """Asks the Nodes themselves."""

    def __init__(self, cluster: NodeCluster) -> None:
        self._cluster = cluster

    async def ask(self, verb: str, at: str = "b0", **arguments: Any) -> Any:
        return ask(self._cluster.node(at), verb, arguments, self._cluster.now)


@pytest.mark.parametrize("routing", ROUTINGS)
def test_the_edges_that_are_counted_are_those_of_the_walk(routing: str) -> None:
    run = StructureRun(5, routing, replicas=0)
    run.ask(25)
    publisher = run.cluster.connect("b0")
    for names in ("abc", "defg", "al", "ghijkl"):
        body = json.dumps({names[0]: {name: {"a": 1, "b": {"c": 2}} for name in names[1:]}}).encode()
        (walk,), told = asyncio.run(walks_of(ClusterClient(run.cluster), "quotes", Line("", {}, body, "text/json")))
        assert not told.missing and walk.root is not None
        batch = quote_batch()
        column = DEFAULT_SHAPE.column
        batch.columns[column] = encode_column([filters_of_body(body, "text/json", [column])[column]])  # type: ignore[list-item]
        before = run.total("edges_local"), run.total("edges_remote")
        publisher.publish(batch)
        run.cluster.run(0.5)
        counted = run.total("edges_local") - before[0], run.total("edges_remote") - before[1]
        assert counted == walk.edges()
        assert sum(counted) or routing == "kbsp"
        resting = walk.way(0)[-1]
        assert resting.vertex == 0 or resting.pruned or routing == "kbsp"

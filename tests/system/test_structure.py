"""XPATH through five real brokers: what is delivered is what lxml says, wherever documents and subscriptions meet."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headgate.ops.bench.papers.bloom_brokers import show
from headgate.ops.bench.papers.bloom_repair import repair
from headgate.ops.bench.papers.bloom_sample import real_documents
from headgate.protocol.aio import Client, Subscription, connect
from tests.system.processes import Broker, headgate, running_broker, wait_until
from tests.system.test_membership import free_port

pytestmark = pytest.mark.slow


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[Broker]]:
    with ExitStack() as stack:
        started: list[Broker] = []
        first = f"127.0.0.1:{free_port()}"
        for number in range(5):
            (tmp_path / f"b{number}").mkdir()
            own = f"127.0.0.1:{free_port()}" if number else first
            words = ("--peer-listen", own, "--name", f"b{number}", "--replicas", "1", "--join", first)
            started.append(stack.enter_context(running_broker(tmp_path / f"b{number}", *words[: 8 if number else 6])))
        wait_until(lambda: "5 brokers form" in headgate("--server", started[0].address, "ring").stdout)
        time.sleep(3)
        yield started


def edges(brokers: list[Broker]) -> float:
    total = 0.0
    for broker in brokers:
        with urllib.request.urlopen(f"http://{broker.admin}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        names = "headgate_structure_edges_local_total", "headgate_structure_edges_remote_total"
        total += sum(float(line.split()[1]) for line in lines if line.startswith(names))
    return total


@pytest.mark.parametrize("replicas", [1, 2])
def test_deliveries_are_the_verdicts_of_lxml_and_edges_those_of_the_walk(replicas: int) -> None:
    """A share of what `make papers ARGS=bloom-brokers` shows with all documents."""
    sets = {name: texts[:25] for name, texts in real_documents().items() if name in ("feeds", "fpml", "reed")}
    if not sets:
        pytest.skip("no documents stand beside the repository")
    shown = asyncio.run(show(sets, replicas, 15, 1, 5, 2))
    assert shown.good, (shown, shown.otherwise)
    assert shown.due > 50 and shown.edges > 5


@pytest.mark.parametrize("replicas", [1, 2])
def test_all_documents_come_after_a_broker_that_holds_vertices_was_killed(replicas: int) -> None:
    """A share of what `make papers ARGS=bloom-repair` shows; of a stored stream all come, whenever they were stored."""
    found = asyncio.run(repair(replicas, 10, 1.0, 4))
    assert found.good, found


def test_a_stored_document_is_replayed_and_handed_out_by_its_structure(brokers: list[Broker]) -> None:
    """Two books that together have what is asked for pass every filter: the subscriber's library keeps them back, also
    of a durable subscription, and of one that was changed while it runs."""
    server = ("--server", brokers[0].address)
    assert headgate(*server, "schema", "put", "library", '{"durability": "stored"}').returncode == 0
    where, other = "XPATH '/bib/book[author][title]'", "XPATH '/bib/book[editor]'"
    books = "<author/><title/>", "<title/>", "<author/></book><book><title/>", "<title/><author/><editor/>", "<editor/>"

    document = "<bib><book><a/><b/><c/><editor/></book><d/><e/></bib>"

    async def publish(writer: Client, numbers: range) -> None:
        for number in numbers:
            document = f"<bib><book>{books[number % 5]}</book></bib>"
            await writer.publish("library", {"number": number}, document=document, mode="stored")

    async def take(subscription: Subscription, count: int) -> list[int]:
        found = []
        for _ in range(count):
            event = await asyncio.wait_for(anext(subscription), 20)
            found.append(event.attributes["number"])
            if subscription.durable:
                await event.ack()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(subscription), 0.5)
        return sorted(found)

    async def run() -> None:
        async with (
            await connect(brokers[2].address) as client,
            await connect(brokers[4].address) as reader,
            await connect(brokers[3].address) as writer,
        ):
            durable = await client.subscribe("library", where=where, durable="books")
            live = await reader.subscribe("library", where=where)
            await publish(writer, range(5))
            assert await take(durable, 2) == await take(live, 2) == [0, 3]
            changed = await asyncio.to_thread(headgate, *server, "durable", "set", "books", "--where", other)
            assert changed.returncode == 0, changed.stderr
            assert (await live.amend(where=other)).puts > 0
            await publish(writer, range(5, 10))
            assert await take(durable, 2) == await take(live, 2) == [8, 9]
            await reader.subscribe("shelves", where=other)
            await writer.publish("shelves", document="<first/>")  # whose answer says what filters are asked for
            way, before = await asyncio.to_thread(walked), edges(brokers)
            await writer.publish("shelves", document=document)
            await asyncio.to_thread(wait_until, lambda: edges(brokers) == before + way, 5)
            await publish(writer, range(10, 15))

    def walked() -> int:
        """The edges that `explain` prints on the way of an event, which are those that `tree` draws."""
        event = ("--json", "--event", json.dumps({"xml": document}))
        explained = json.loads(headgate(*server, "explain", "shelves", "--where", other, *event).stdout)
        (drawn,) = json.loads(headgate(*server, "tree", "shelves", *event).stdout)
        way = [row["clears"] for row in explained["walk"] if row["clears"] is not None]
        assert drawn["edges_local"] + drawn["edges_remote"] == len(way) > 0
        return len(way)

    asyncio.run(run())
    for words, wanted in ((("--from", "start"), [3, 4, 8, 9, 13, 14]), (("--durable", "books"), [13, 14])):
        condition = (*words, "--where", other)
        count = ("--count", str(len(wanted)))
        heard = headgate("--server", brokers[1].address, "sub", "library", *condition, "--json", *count)
        numbers = [json.loads(line)["attrs"]["number"] for line in heard.stdout.splitlines()]
        assert numbers == wanted, heard.stderr


def test_a_durable_subscription_that_was_changed_hands_out_what_it_was_selected_by(tmp_path: Path) -> None:
    """An event of before the change passes the filters of both conditions; that its document has what the former one
    asks for is still its reader's to say, also when the new one asks for nothing."""
    former, later = "XPATH '/bib/book[author][title]'", "XPATH '/bib/book[editor]'"
    before = (
        "<book><author/><title/></book>",
        "<book><author/></book><book><title/><editor/></book>",  # a false positive of the former condition
        "<book><author/><title/><editor/></book>",
    )
    with running_broker(tmp_path) as broker:
        server = ("--server", broker.address)

        def publish(first: int, *books: str) -> None:
            lines = [
                json.dumps({"topic": "library", "attrs": {"number": number}, "xml": f"<bib>{text}</bib>"})
                for number, text in enumerate(books, first)
            ]
            said = headgate(*server, "pub", "--jsonl", "-", "--mode", "stored", text="\n".join(lines))
            assert said.returncode == 0, said.stderr

        def change(condition: str) -> None:
            said = headgate(*server, "durable", "set", "books", "--where", condition, "--from", "now")
            assert said.returncode == 0, said.stderr

        assert headgate(*server, "schema", "put", "library", '{"durability": "stored"}').returncode == 0
        begun = headgate(*server, "sub", "library", "--where", former, "--durable", "books", "--timeout", "1")
        assert begun.returncode == 0, begun.stderr
        publish(0, *before)
        change(later)
        publish(3, "<book><editor/></book>", "<editor/>")
        change("")
        publish(5, "<other/>")
        heard = headgate(*server, "sub", "--durable", "books", "--json", "--count", "3", "--timeout", "20")
        assert [json.loads(line)["attrs"]["number"] for line in heard.stdout.splitlines()] == [2, 3, 5], heard.stderr
        assert "1 of structure" in heard.stderr
        left = headgate(*server, "durable", "show", "books", "--json")
        assert (json.loads(left.stdout)["waiting"], json.loads(left.stdout)["unacked"]) == (0, 0)

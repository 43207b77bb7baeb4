"""XPATH through five real brokers: what is delivered is what lxml says, wherever documents and subscriptions meet."""

from __future__ import annotations

import asyncio
import json
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import lxml.etree
import pytest

from headgate.matching.structure import parse_twig
from headgate.protocol.aio import Subscription, connect
from tests.system.processes import ROOT, Broker, headgate, running_broker, wait_until
from tests.system.test_membership import free_port

pytestmark = pytest.mark.slow

DATA = ROOT.parent / "shared" / "data" / "xml"
DOCUMENTS_EACH = 60
TWIGS = (
    *("/feed/entry", "channel/item[title]", "entry/author/name", "item/description", "/rss/channel/item/guid"),
    *("feed[title]/entry[link]", "entry/content", "nothing/here", "link[@rel]", "trade/tradeHeader", "@version"),
    *("FpML/trade", "swapStream[calculationPeriodAmount]", "notional/currency", "author", "/feed", "/rss", "title"),
)


def documents() -> list[bytes]:
    """Feeds and trades, as many of each; those that are no XML are left out."""
    found: list[bytes] = []
    for path in (DATA / "feeds" / "feedparser-feeds.tar.gz", DATA / "fpml.tar.gz"):
        some = []
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                stream = archive.extractfile(member) if member.isfile() else None
                if stream is not None:
                    some.append(stream.read())
        found += [one for one in some if element(one) is not None][:DOCUMENTS_EACH]
    return found


def element(document: bytes) -> lxml.etree._Element | None:
    try:
        return lxml.etree.fromstring(document, lxml.etree.XMLParser(resolve_entities=False, no_network=True))
    except lxml.etree.XMLSyntaxError:
        return None


@pytest.fixture(params=[1, 2])
def brokers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Broker]]:
    if not DATA.exists():
        pytest.skip(f"{DATA} is not here")
    with ExitStack() as stack:
        started: list[Broker] = []
        first = f"127.0.0.1:{free_port()}"
        for number in range(5):
            (tmp_path / f"b{number}").mkdir()
            own = f"127.0.0.1:{free_port()}" if number else first
            words = ("--peer-listen", own, "--name", f"b{number}", "--replicas", str(request.param), "--join", first)
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


def test_deliveries_are_the_verdicts_of_lxml(brokers: list[Broker]) -> None:
    found = documents()
    trees = [element(one) for one in found]
    wanted = {
        twig: [place for place, tree in enumerate(trees) if tree is not None and tree.xpath(parse_twig(twig).xpath())]
        for twig in TWIGS
    }
    assert sum(map(bool, wanted.values())) > len(TWIGS) / 2, "or nothing is shown"

    async def run() -> None:
        clients = [await connect(broker.address) for broker in brokers]
        subscriptions = {
            twig: await clients[place % 5].subscribe("library", where=f"XPATH '{twig}'")
            for place, twig in enumerate(TWIGS)
        }
        for place, document in enumerate(found):
            await clients[place % 5].publish("library", {"place": place}, document=document)
        for twig, subscription in subscriptions.items():
            got = []
            while len(got) < len(wanted[twig]):
                event = await asyncio.wait_for(anext(subscription), 20)
                got.append(event.attributes["place"])
            assert sorted(got) == wanted[twig], twig
        await asyncio.sleep(1.0)
        for subscription in subscriptions.values():
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(subscription), 0.01)
        for client in clients:
            await client.close()

    asyncio.run(run())
    assert edges(brokers) > len(found)


def test_a_stored_document_is_replayed_and_handed_out_by_its_structure(brokers: list[Broker]) -> None:
    """Two books that together have what is asked for pass every filter: the subscriber's library keeps them back, also
    of a durable subscription, and of one that was changed while it runs."""
    server = ("--server", brokers[0].address)
    assert headgate(*server, "schema", "put", "library", '{"durability": "stored"}').returncode == 0
    where, other = "XPATH '/bib/book[author][title]'", "XPATH '/bib/book[editor]'"
    books = "<author/><title/>", "<title/>", "<author/></book><book><title/>", "<title/><author/><editor/>", "<editor/>"

    async def publish(numbers: range) -> None:
        async with await connect(brokers[3].address) as client:
            for number in numbers:
                document = f"<bib><book>{books[number % 5]}</book></bib>"
                await client.publish("library", {"number": number}, document=document, mode="stored")

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
        async with await connect(brokers[2].address) as client, await connect(brokers[4].address) as reader:
            books = await client.subscribe("library", where=where, durable="books")
            live = await reader.subscribe("library", where=where)
            await publish(range(5))
            assert await take(books, 2) == await take(live, 2) == [0, 3]
            changed = await asyncio.to_thread(headgate, *server, "durable", "set", "books", "--where", other)
            assert changed.returncode == 0, changed.stderr
            assert (await live.amend(where=other)).puts > 0
            await publish(range(5, 10))
            assert await take(books, 2) == await take(live, 2) == [8, 9]
            await publish(range(10, 15))

    asyncio.run(run())
    for words, wanted in ((("--from", "start"), [3, 4, 8, 9, 13, 14]), (("--durable", "books"), [13, 14])):
        condition = (*words, "--where", other)
        count = ("--count", str(len(wanted)))
        heard = headgate("--server", brokers[1].address, "sub", "library", *condition, "--json", *count)
        numbers = [json.loads(line)["attrs"]["number"] for line in heard.stdout.splitlines()]
        assert numbers == wanted, heard.stderr

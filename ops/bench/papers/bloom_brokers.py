"""Real documents through five real brokers: what comes is what lxml says, over the edges that the walk has (BLOOM 4.5).

Every set of documents that stands beside the repository is published, document by document, each at another broker, to
subscriptions with twigs drawn from those sets, each at another broker. For each number of copies
(`HEADGATE_REPLICAS`) it is shown that

    deliveries   of each subscription are the documents of which lxml, asked by itself, says that they have the twig
    edges        that the brokers' metrics count for a publication are those of its walk (`headgate tree`), and those of
                 the ways to all vertices that the subscriptions rest at (`headgate explain --event`)
    messages     events between brokers, beside one message to each subscriber at another broker
"""

from __future__ import annotations

import argparse
import asyncio
import time
import urllib.request
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random

from rich.table import Table

from headgate.matching.structure import parse_twig
from headgate.ops.jsonlines import Line
from headgate.ops.walks import walks_of
from headgate.protocol.aio import Client, Subscription, connect
from headgate.protocol.limits import RECORD_LENGTH_MAX

from ..kit import Fleet, fleet
from ..wire import console
from .bloom_filtering import readable, tree_of
from .bloom_sample import real_documents, twigs_of_tree

__all__ = [
    "Shown",
    "add_arguments",
    "condition_of",
    "drawn_twigs",
    "edges_counted",
    "run",
    "show",
    "verdicts",
]

_XML = "application/xml"
_BROKERS = 5
_COUNTED = ("headgate_structure_edges_local_total", "headgate_structure_edges_remote_total")
_SENT = ("headgate_forwarded_events_total", "headgate_relayed_events_total")
_WAIT_SECONDS = 30.0
_FIRST = -1
"""The place of a document that is published so that INTEREST comes."""
_QUOTE = "'"
_MORE_BYTES = 1024
"""What an event has beside its document, at most."""
_QUIET_SECONDS = 1.0


@dataclass(slots=True)
class Shown:
    """What was found with one number of copies."""

    documents: int = 0
    too_large: int = 0
    """Documents that no event may hold."""
    due: int = 0
    """Pairs of a subscription and a document that has its twig, as lxml says."""
    missed: int = 0
    surplus: int = 0
    kept_back: int = 0
    """Deliveries that the subscribers' library handed to nobody."""
    walks: int = 0
    otherwise: list[str] = field(default_factory=list)
    """Walks that are not what the metrics counted."""
    edges: int = 0
    sent: int = 0
    """Events between brokers."""
    unicast: int = 0
    """Subscribers at another broker than the publisher, each counted for itself."""

    @property
    def good(self) -> bool:
        """Whether all is as it should be."""
        return bool(self.due and self.walks) and not (self.missed or self.surplus or self.otherwise)


@dataclass(slots=True)
class _Ear:
    """A subscription and what came for it."""

    twig: str
    home: int
    subscription: Subscription
    heard: list[int] = field(default_factory=list)

    async def listen(self) -> None:
        """Note the places of documents, until the subscription ends."""
        async for event in self.subscription:
            place = event.attributes["place"]
            if isinstance(place, int) and place != _FIRST:
                self.heard.append(place)


async def show(
    sets: dict[str, list[bytes]], replicas: int, twigs: int, subscribers: int, walks: int, seed: int
) -> Shown:
    """Publish all of these documents to so many twigs with so many subscribers each; `walks` documents are published
    alone, to compare their edges.
    """
    random = Random(f"{seed} brokers")
    asked = drawn_twigs(sets, twigs, random)
    every = [text for texts in sets.values() for text in texts if readable(text)]
    documents = [text for text in every if len(text) < RECORD_LENGTH_MAX - _MORE_BYTES]
    random.shuffle(documents)
    wanted = verdicts(asked, documents)
    shown = Shown(len(documents), len(every) - len(documents), subscribers * sum(map(len, wanted.values())))
    alone = dict.fromkeys(random.sample(range(len(documents)), min(walks, len(documents))))
    async with fleet(_BROKERS, options=("--replicas", str(replicas))) as cluster:
        clients = [await connect(address) for address in cluster.addresses]
        ears = [
            _Ear(twig, home, await clients[home].subscribe("library", where=condition_of(twig)))
            for place, twig in enumerate(asked)
            for home in ((place + more) % _BROKERS for more in range(subscribers))
        ]
        run = _publish(cluster, clients, documents, ears, alone, shown)
        await asyncio.gather(run, *(ear.listen() for ear in ears))
    for ear in ears:
        right = set(wanted[ear.twig])
        shown.missed += len(right.difference(ear.heard))
        shown.surplus += len(ear.heard) - len(right.intersection(ear.heard))
        shown.unicast += sum(place % _BROKERS != ear.home for place in right)
    shown.kept_back = sum(sum(ear.subscription.false_positives.values()) for ear in ears)
    return shown


async def _publish(
    cluster: Fleet,
    clients: Sequence[Client],
    documents: Sequence[bytes],
    ears: Sequence[_Ear],
    alone: Collection[int],
    shown: Shown,
) -> None:
    """Publish all documents, wait until all that is due has come, and no more of it; then all subscriptions end."""
    for client in clients:  # the answer says what filters are asked for: what goes before it has none
        await client.publish("library", {"place": _FIRST}, document="<first/>")
    conditions = dict.fromkeys(condition_of(ear.twig) for ear in ears)
    explained = [await clients[0].ask("explain", pattern="library", condition=one) for one in conditions]
    rests = {int(one["vertex"], 2) for one in explained}
    before = counted(cluster, _SENT)
    for place, text in enumerate(documents):
        await asyncio.sleep(0)
        client = clients[place % _BROKERS]
        if place in alone:
            await _compare(cluster, client, rests, text, place, shown)
        else:
            await client.publish("library", {"place": place}, document=text)
    until = time.monotonic() + _WAIT_SECONDS
    while sum(len(ear.heard) for ear in ears) < shown.due and time.monotonic() < until:
        await asyncio.sleep(_QUIET_SECONDS / 10)
    await asyncio.sleep(_QUIET_SECONDS)
    shown.sent = counted(cluster, _SENT) - before
    for client in clients:
        await client.close()


def condition_of(twig: str) -> str:
    """The condition that asks for a twig."""
    return f"XPATH '{twig.replace(_QUOTE, 2 * _QUOTE)}'"


def drawn_twigs(sets: dict[str, list[bytes]], count: int, random: Random) -> list[str]:
    """Twigs of all sets in turn, some of which no single document has."""
    trees = [tree_of(text for text in texts if readable(text)) for texts in sets.values()]
    asked: dict[str, None] = {}
    while len(asked) < count:
        tree = trees[len(asked) % len(trees)]
        asked[parse_twig(twigs_of_tree(random.choice(tree.below), random, random.randint(1, 4))).text] = None
    return list(asked)


def verdicts(twigs: Sequence[str], documents: Sequence[bytes]) -> dict[str, list[int]]:
    """Twig -> the documents that lxml finds it in; nothing of ours but the text of the XPath is used."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    trees = [etree.fromstring(text, parser).getroottree() for text in documents]
    xpaths = {twig: etree.XPath(parse_twig(twig).xpath()) for twig in twigs}
    return {twig: [place for place, tree in enumerate(trees) if xpath(tree) is True] for twig, xpath in xpaths.items()}


async def _compare(cluster: Fleet, client: Client, rests: set[int], text: bytes, place: int, shown: Shown) -> None:
    """Publish a document alone, and compare the edges that are counted with those of its walk."""
    walks, _ = await walks_of(client, "library", Line("library", {}, text, _XML))
    drawn = sum(sum(walk.edges()) for walk in walks)
    ways = {
        (one.vertex, following.vertex)
        for walk in walks
        for vertex in rests
        for one, following in zip(walk.way(vertex), walk.way(vertex)[1:], strict=False)
    }
    before = await _still(cluster)
    await client.publish("library", {"place": place}, document=text)
    edges = await _still(cluster, before, drawn)
    shown.walks += 1
    shown.edges += edges
    if not edges == drawn == len(ways):
        shown.otherwise.append(f"document {place}: {edges} edges counted, {drawn} drawn, {len(ways)} on ways")


async def _still(cluster: Fleet, before: int = 0, wanted: int | None = None) -> int:
    """The edges that all brokers together have counted since then, when that stays what it is."""
    until, last, since = time.monotonic() + _WAIT_SECONDS, -1, time.monotonic()
    while time.monotonic() < until:
        found = edges_counted(cluster) - before
        if found != last:
            last, since = found, time.monotonic()
        if time.monotonic() - since > (0.1 if wanted in (None, last) else 3 * _QUIET_SECONDS):
            break
        await asyncio.sleep(0.02)
    return last


def edges_counted(cluster: Fleet) -> int:
    """The edges that all brokers together have counted."""
    return counted(cluster, _COUNTED)


def counted(cluster: Fleet, names: Sequence[str]) -> int:
    """The sum of some metrics over all brokers."""
    total = 0.0
    for member in cluster.members:
        with urllib.request.urlopen(f"http://{member.admin}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        total += sum(float(line.split()[1]) for line in lines if line.startswith(tuple(names)))
    return int(total)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How much of it."""
    parser.add_argument("--bloom-twigs", type=int, default=75, help="twigs that are subscribed to, at five brokers")
    parser.add_argument("--bloom-subscribers", type=int, default=8, help="subscribers of each")
    parser.add_argument(
        "--bloom-walks", type=int, default=60, help="documents whose edges are compared with their walk"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the table; 1 when something is not as it should be."""
    sets = real_documents()
    if not sets:
        console().print("brokers: no documents stand beside the repository, so nothing is shown on them")
        return 0
    table = Table(title="BLOOM 4.5: real documents through five brokers", title_justify="left")
    rows: dict[str, Shown] = {}
    good = True
    for replicas in (1, 2):
        sizes = arguments.bloom_twigs, arguments.bloom_subscribers, arguments.bloom_walks
        shown = asyncio.run(show(sets, replicas, *sizes, arguments.seed))
        good = good and shown.good
        rows[f"replicas = {replicas}"] = shown
        for line in shown.otherwise[:5]:
            console().print(line)
    table.add_column("")
    for name in rows:
        table.add_column(name, justify="right")
    for name, values in _rows(list(rows.values())):
        table.add_row(name, *map(str, values))
    console().print(table)
    return 0 if good else 1


def _rows(all_shown: Sequence[Shown]) -> list[tuple[str, list[object]]]:
    return [
        ("documents", [one.documents for one in all_shown]),
        ("longer than an event may be", [one.too_large for one in all_shown]),
        ("deliveries due, as lxml says", [one.due for one in all_shown]),
        ("missed", [one.missed for one in all_shown]),
        ("delivered and not due", [one.surplus for one in all_shown]),
        ("kept back by the subscribers' library", [one.kept_back for one in all_shown]),
        ("publications whose edges were compared", [one.walks for one in all_shown]),
        ("of them otherwise than their walk", [len(one.otherwise) for one in all_shown]),
        ("edges of each", [f"{one.edges / max(1, one.walks):.1f}" for one in all_shown]),
        ("events between brokers", [one.sent for one in all_shown]),
        ("one message to each subscriber elsewhere", [one.unicast for one in all_shown]),
    ]

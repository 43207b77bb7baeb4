"""BLOOM, chapter 3: what filters cost and how often they err, each figure of the paper beside ours; and their index.

    3.8, 3.9      filtering against numbers of filters and their depth, beside evaluating XPath (lxml, in C)
    3.10 to 3.13  one comparison, and making a filter, against its length l and its hashes k
    3.14, 3.15    what filters take, beside documents and beside twigs
    3.16 to 3.19  false positives against l, k, the number of twigs and their depth, beside (1 - e^(-kn/l))^k
    index         10^2 to 10^6 filters on the feeds: the index, the plain test and lxml, in one run
    missed        random pairs of a document and a twig, XML and JSON: XPath finds it, no filter stops it
    publisher     documents a second, parsed alone and with their filter

Only ratios within a table mean anything. A false positive is of a **hash** when the document lacks an item of the twig:
those are what the estimate is about. Those of the **structure** no length removes, and they are counted apart.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from json import dumps
from math import log
from random import Random
from time import process_time
from typing import Any
from xml.etree import ElementTree

from rich.table import Table

from headgate.matching.structure import FilterIndex, PlainFilters, Twig, estimate, filter_of, parse_twig, unpack
from headgate.protocol.errors import LocalError
from headgate.protocol.structure import Check, Checks, Document, Finding, filter_columns, read_document, trees_of

from ..wire import console
from .bloom_sample import Dtd, Named, documents_of, dtds, feeds, real_documents, twigs_of, twigs_of_tree

__all__ = ["FIGURES", "add_arguments", "readable", "run", "structure_of", "tree_of", "twigs_of_tree"]

_XML = "application/xml"
_EVALUATED_MAX = 1000
"""Twigs that lxml evaluates: it takes as long for each of them."""

_UNDECLARED = re.compile(rb"&(?!amp;|lt;|gt;|quot;|apos;|#)")
"""An entity of a DTD that nobody loads: Python's parser alone refuses such a document."""

_LENGTHS = (4, 16, 64, 128, 256, 512, 1024)


@dataclass(slots=True)
class _Sample:
    """Documents, read and as sets of items, with the DTDs they are from."""

    trees: list[Dtd]
    texts: list[bytes]
    items: list[frozenset[str]]
    random: Random

    @property
    def pairs(self) -> int:
        """Distinct items in all documents together, the paper's n."""
        return len(frozenset().union(*self.items))


def _sample(seed: int, count: int) -> _Sample:
    trees, random = dtds(seed), Random(f"{seed} documents")
    texts = [text for tree in trees for text in documents_of(tree, count // len(trees), random)]
    random.shuffle(texts)
    return _Sample(trees, texts, [structure_of(read_document(text, _XML)) for text in texts], random)


def structure_of(document: Document) -> frozenset[str]:
    """Its items without values."""
    return frozenset(item for item in document.items() if item[0] != "v")


def _seconds(work: Callable[[], object], least: float = 0.05) -> float:
    """The best of three of a piece of work, repeated for long enough to be measured."""
    times, took = 1, 0.0
    while took < least:
        began = process_time()
        for _ in range(times):
            work()
        took = process_time() - began
        times *= 2
    best = took / (times // 2)
    for _ in range(2):
        began = process_time()
        for _ in range(times // 2):
            work()
        best = min(best, (process_time() - began) / (times // 2))
    return best


def _tree(text: bytes) -> Any:
    (tree,) = trees_of(text, _XML)
    return tree


def _evaluator(twigs: Iterable[Twig]) -> Callable[[Any], int]:
    from lxml import etree

    compiled = [etree.XPath(twig.xpath()) for twig in twigs]
    return lambda tree: sum(1 for xpath in compiled if xpath(tree))


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


# Time ----------------------------------------------------------------------------------------------------------------


def _figure_3_8(sample: _Sample) -> bool:
    """Two orders below evaluating XPath, once parsing is taken off."""
    texts, good = sample.texts[:200], True
    table = _table(
        "3.8: 200 documents, us a document", "filters", "parse", "filter", "compare", "XPath", "XPath / compare"
    )
    trees = [_tree(text) for text in texts]
    parse = _seconds(lambda: [read_document(text, _XML) for text in texts]) / 200
    making = _seconds(lambda: [filter_of(items, 256, 1) for items in sample.items[:200]]) / 200
    filters = [filter_of(items, 256, 1) for items in sample.items[:200]]
    for count in (100, 200, 300, 400):
        twigs = [parse_twig(text) for text in twigs_of(sample.trees, count, sample.random)]
        plain = _plain(twig.filter(256, 1) for twig in twigs)
        compare = _seconds(lambda plain=plain: [plain.match(one) for one in filters]) / 200  # type: ignore[misc]
        evaluate = _evaluator(twigs)
        xpath = _seconds(lambda evaluate=evaluate: [evaluate(tree) for tree in trees]) / 200  # type: ignore[misc]
        table.add_row(
            str(count), *(f"{one * 1e6:.1f}" for one in (parse, making, compare, xpath)), f"{xpath / compare:.0f}"
        )
        good = good and xpath > 20 * compare
    console().print(table)
    return good


def _plain(filters: Iterable[int]) -> PlainFilters[int]:
    plain: PlainFilters[int] = PlainFilters()
    for number, made in enumerate(filters):
        plain.add(number, made)
    return plain


def _figure_3_9(sample: _Sample) -> bool:
    """Flat against depth."""
    table = _table("3.9: 1,000 twigs, us a document", "depth", "compare", "XPath")
    filters = [filter_of(items, 256, 1) for items in sample.items[:50]]
    trees = [_tree(text) for text in sample.texts[:50]]
    took = []
    for depth in (1, 2, 3, 4, 5):
        twigs = [parse_twig(text) for text in twigs_of(sample.trees, 1000, sample.random, depth)]
        plain, evaluate = _plain(twig.filter(256, 1) for twig in twigs), _evaluator(twigs)
        took.append(_seconds(lambda plain=plain: [plain.match(one) for one in filters]) / 50)  # type: ignore[misc]
        xpath = _seconds(lambda evaluate=evaluate: [evaluate(tree) for tree in trees]) / 50  # type: ignore[misc]
        table.add_row(str(depth), f"{took[-1] * 1e6:.1f}", f"{xpath * 1e6:.0f}")
    console().print(table)
    return max(took) <= 1.6 * min(took)


def _figure_3_10(sample: _Sample) -> bool:
    """One comparison against l (24 to 32 us in the paper) and against k (flat); making a filter: flat, and linear."""
    table = _table("3.10 to 3.13: ns a comparison, us a filter", "l", "k", "comparison", "filter", "paper: comparison")
    twigs = [parse_twig(text) for text in twigs_of(sample.trees, 90, sample.random)]
    took: dict[tuple[int, int], tuple[float, float]] = {}
    for length, hashes in [*((length, 1) for length in _LENGTHS), *((256, hashes) for hashes in (2, 3, 4))]:
        plain = _plain(twig.filter(length, hashes) for twig in twigs)
        filters = [filter_of(items, length, hashes) for items in sample.items[:100]]
        compare = _seconds(lambda plain=plain, filters=filters: [plain.match(one) for one in filters]) / 9000  # type: ignore[misc]
        making = _seconds(lambda a=length, b=hashes: [filter_of(items, a, b) for items in sample.items[:100]]) / 100  # type: ignore[misc]
        took[length, hashes] = compare, making
        paper = {(4, 1): "24 us", (1024, 1): "32 us"}.get((length, hashes), "")
        table.add_row(str(length), str(hashes), f"{compare * 1e9:.1f}", f"{making * 1e6:.1f}", paper)
    console().print(table)
    growth = took[1024, 1][0] / took[64, 1][0]
    console().print(f"from l = 64 to 1,024 a comparison takes {growth:.2f} times as long (the paper: 1.33 from 4)")
    return growth <= 1.8 and took[1024, 1][1] <= 1.6 * took[4, 1][1]


# Space ---------------------------------------------------------------------------------------------------------------


def _figure_3_14(sample: _Sample) -> bool:
    """Bits for a rate of errors p at the best k: -n ln p / (ln 2)^2."""
    table = _table("3.14: bytes of filters beside those of documents", "p", "bytes a document", "share of XML", "paper")
    size = sum(map(len, sample.texts)) / len(sample.texts)
    for rate, paper in ((0.1, ""), (0.25, "5e-05 (3 GB of XML)"), (0.5, "")):
        taken = sum(_bytes(len(items), rate) for items in sample.items) / len(sample.items)
        table.add_row(str(rate), f"{taken:.1f}", f"{taken / size:.4f}", paper)
    console().print(table)
    return True


def _bytes(items: int, rate: float) -> float:
    return -items * log(rate) / log(2) ** 2 / 8


def _figure_3_15(sample: _Sample) -> bool:
    """The conservation rate R = (twigs - filters) / twigs falls with the number of DTDs."""
    table = _table("3.15: R = (twigs - filters) / twigs", "DTDs", "p = 0.25", "p = 0.5", "p = 0.75")
    rows = []
    for count in range(1, 10):
        texts = twigs_of(sample.trees[:count], 900, sample.random, 9)
        items = frozenset().union(*(parse_twig(text).items() for text in texts))
        size = sum(map(len, texts)) / len(texts)
        rows.append([1 - _bytes(len(items), rate) / size for rate in (0.25, 0.5, 0.75)])
        table.add_row(str(count), *(f"{one:.2f}" for one in rows[-1]))
    console().print(table)
    return all(rows[0][place] > rows[-1][place] for place in range(3))


# Errors --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Errors:
    """Of pairs of a document and a twig it does not have: those that pass, by why."""

    pairs: int
    hash: int
    structure: int
    missed: int

    @property
    def hash_rate(self) -> float:
        return self.hash / max(1, self.pairs)


def _errors(sample: _Sample, twigs: Sequence[Twig], length: int, hashes: int) -> _Errors:
    from lxml import etree

    found = _Errors(0, 0, 0, 0)
    asked = [(twig.items(), twig.filter(length, hashes), etree.XPath(twig.xpath())) for twig in twigs]
    for text, items in zip(sample.texts[:100], sample.items[:100], strict=True):
        made = filter_of(items, length, hashes)
        tree = _tree(text)
        for wanted, bits, xpath in asked:
            passes, has = not bits & ~made, wanted <= items
            if has and xpath(tree):
                found.missed += not passes
                continue
            found.pairs += 1
            found.hash += passes and not has
            found.structure += passes and has
    return found


def _figure_3_16(sample: _Sample) -> bool:
    """Hash errors within the estimate, at every l, k, number of twigs and depth; never a document missed."""
    twigs = [parse_twig(text) for text in twigs_of(sample.trees, 900, sample.random)]
    n, good = sample.pairs, True
    table = _table(
        f"3.16 to 3.19: false positives, n = {n}", "l", "k", "twigs", "depth", "hash", "structure", "estimate"
    )
    cases = [(length, 1, 900, 3) for length in (4, 16, 64, 128, 256)] + [(256, hashes, 900, 3) for hashes in (2, 3, 4)]
    cases += [(256, 1, count, 3) for count in (100, 500)] + [(256, 1, 900, depth) for depth in (1, 2, 4, 5)]
    for length, hashes, count, depth in cases:
        chosen = twigs[:count]
        if depth != 3:
            chosen = [parse_twig(text) for text in twigs_of(sample.trees, count, sample.random, depth)]
        errors, bound = _errors(sample, chosen, length, hashes), estimate(length, hashes, n)
        good = good and not errors.missed and errors.hash_rate <= bound * 1.1
        shown = (f"{errors.hash_rate:.4f}", f"{errors.structure / max(1, errors.pairs):.4f}", f"{bound:.4f}")
        table.add_row(str(length), str(hashes), str(count), str(depth), *shown)
    console().print(table)
    return good


# The index, and the publisher ----------------------------------------------------------------------------------------


def tree_of(texts: Iterable[bytes]) -> Named:
    """All feeds as one tree of names, so that twigs combine what no single one has."""
    root = Named("")

    def merge(node: Named, element: Any) -> None:
        name = element.tag.rpartition("}")[2]
        below = next((one for one in node.below if one.name == name), None)
        if below is None:
            below = Named(name)
            node.below.append(below)
        known = {one.name for one in below.below}
        names = {f"@{key.rpartition('}')[2]}": None for key in element.attrib}
        below.below += [Named(name) for name in names if name not in known]
        for child in element.iterchildren("*"):
            merge(below, child)

    for text in texts:
        for tree in trees_of(text, _XML):
            merge(root, tree)
    return root


def _index_rows(arguments: argparse.Namespace) -> bool:
    """At 10^5 twigs at least 20 times the plain test."""
    texts = [text for text in feeds() if readable(text)]
    documents = [read_document(text, _XML) for text in texts]
    if not documents:
        console().print("index: no feeds stand beside the repository, so nothing is measured on them")
        return True
    random, good = Random(arguments.seed), True
    merged = tree_of(texts)
    filters = [filter_of(structure_of(document), 1024, 1) for document in documents]
    trees = [_tree(text) for text in texts]
    headings = ("filters", "distinct", "index", "plain", "plain / index", "XPath", "XPath / index", "pass", "tested")
    table = _table(f"{len(documents)} feeds, us a document, l = 1,024", *headings)
    for count in arguments.bloom_filters:
        index: FilterIndex[int] = FilterIndex()
        plain: PlainFilters[int] = PlainFilters()
        twigs: list[Twig] = []  # the first ones: a million of them would fill the memory
        for number in range(count):
            twig = parse_twig(twigs_of_tree(random.choice(merged.below), random, 6))
            made = twig.filter(1024, 1)
            index.add(number, made)
            plain.add(number, made)
            if number < _EVALUATED_MAX:
                twigs.append(twig)
        some = filters if count <= 10_000 else random.sample(filters, 20)
        before = index.statistics()
        passed = sum(len(index.match(one)) for one in filters) / len(filters)
        tested = (index.statistics().tested - before.tested) / len(filters)
        looked = _seconds(lambda index=index: [index.match(one) for one in filters]) / len(filters)  # type: ignore[misc]
        compared = _seconds(lambda plain=plain, some=some: [plain.match(one) for one in some]) / len(some)  # type: ignore[misc]
        evaluate, few = _evaluator(twigs), trees[:40]
        xpath = _seconds(lambda e=evaluate, few=few: [e(tree) for tree in few]) / len(few) * count / len(twigs)  # type: ignore[misc]
        table.add_row(
            str(count),
            str(index.statistics().filters),
            *(f"{one * 1e6:.1f}" for one in (looked, compared)),
            f"{compared / looked:.1f}",
            f"{xpath * 1e6:.0f}",
            f"{xpath / looked:.0f}",
            f"{passed:.1f}",
            f"{tested:.0f}",
        )
        good = good and (count < 100_000 or compared >= 20 * looked)
    console().print(table)
    return good


def readable(text: bytes) -> bool:
    """Whether it is a document that both sides can read."""
    try:
        read_document(text, _XML)
    except LocalError:
        return False
    return bool(trees_of(text, _XML))


def _publisher_rows(sample: _Sample) -> bool:
    """With its filter a document costs at most 1.3 times what parsing it does."""
    headings = ("set", "documents", "bytes each", "parse alone", "with filter", "with / alone", "lxml's parse")
    table = _table("the publisher: documents a second", *headings)
    names, good = ["#structure/1024/1"], True
    for name, texts in {"sample": sample.texts[:200], **real_documents()}.items():
        texts = [text for text in texts if readable(text) and not _UNDECLARED.search(text)]
        if not texts:
            continue
        alone = _seconds(lambda texts=texts: [ElementTree.fromstring(text) for text in texts], 0.3)  # type: ignore[misc]
        both = _seconds(lambda texts=texts: [filter_columns(read_document(text, _XML), names) for text in texts], 0.3)  # type: ignore[misc]
        other = _seconds(lambda texts=texts: [trees_of(text, _XML) for text in texts], 0.3)  # type: ignore[misc]
        size = sum(map(len, texts)) // len(texts)
        rates = [f"{len(texts) / one:.0f}" for one in (alone, both)]
        table.add_row(name, str(len(texts)), str(size), *rates, f"{both / alone:.2f}", f"{len(texts) / other:.0f}")
        good = good and both <= 1.3 * alone
    console().print(table)
    return good


def _missed_rows(arguments: argparse.Namespace) -> bool:
    """None, whatever the documents and twigs: few names, so that half of the pairs match or nearly do."""
    random = Random(f"{arguments.seed} missed")
    table = _table(
        "random pairs of a document and a twig", "documents", "pairs", "XPath finds", "missed", "hash", "structure"
    )
    good = True
    for content_type in (_XML, "application/json"):
        counts = dict.fromkeys(Finding, 0)
        pairs = lost = 0
        while pairs < arguments.bloom_pairs:
            value = _small(random, 3)
            body = f"<r>{_as_xml(value)}</r>".encode() if content_type == _XML else dumps({"r": value}).encode()
            cells = filter_columns(read_document(body, content_type), ["#structure/128/1", "#values/128/1"])
            made = [unpack(cells[name], 128) if name in cells else -1 for name in ("#structure/128/1", "#values/128/1")]
            for _ in range(20):
                twig = parse_twig(random.choice(("", "/r/", "//")) + _small_twig(random, 3))
                finding = Checks([Check(twig.xpath(), tuple(twig.items() | twig.values()))]).find(body, content_type)
                asked = (twig.filter(128, 1), twig.values_filter(128, 1))
                passes = not any(one & ~(have or 0) for one, have in zip(asked, made, strict=True))
                pairs += 1
                lost += finding is Finding.TRUE and not passes
                if passes or finding is Finding.TRUE:
                    counts[finding] += 1
        shown = (pairs, counts[Finding.TRUE], lost, counts[Finding.HASH], counts[Finding.STRUCTURE])
        table.add_row(content_type, *map(str, shown))
        good = good and not lost and counts[Finding.TRUE] > pairs // 100
    console().print(table)
    return good


def _small(random: Random, depth: int) -> Any:
    """A document over few names, as JSON has it."""
    if not depth or random.random() < 0.3:
        return random.choice(("", "1", "x", 2, None, "it's"))
    names = random.sample("abcd", random.randint(0, 3))
    return {name: [_small(random, depth - 1) for _ in range(random.randint(1, 2))] for name in names}


def _as_xml(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(f"<{name}>{_as_xml(one)}</{name}>" for name, several in value.items() for one in several)
    return "" if value is None else str(value)


def _small_twig(random: Random, depth: int) -> str:
    name = random.choice("abcd")
    if depth and random.random() < 0.6:
        return name + "".join(f"[{_small_twig(random, depth - 1)}]" for _ in range(random.randint(1, 2)))
    return name + random.choice(("", "", "='1'", "='2'", '="it\'s"', "=''"))


FIGURES: dict[str, Callable[[_Sample], bool]] = {
    "3.8": _figure_3_8,
    "3.9": _figure_3_9,
    "3.10": _figure_3_10,
    "3.14": _figure_3_14,
    "3.15": _figure_3_15,
    "3.16": _figure_3_16,
    "publisher": _publisher_rows,
}
"""Figure, the first of those in one table -> what prints it, and says whether it is as it should be."""


_OTHERS: dict[str, Callable[[argparse.Namespace], bool]] = {"missed": _missed_rows, "index": _index_rows}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Sizes, for a quick look."""
    parser.add_argument("--bloom-documents", type=int, default=3680, help="documents of nine DTDs (BLOOM 3.3.1)")
    parser.add_argument(
        "--bloom-figures", nargs="*", choices=[*FIGURES, *_OTHERS], help="which of chapter 3; all if none"
    )
    parser.add_argument("--bloom-pairs", type=int, default=100_000, help="random pairs of `missed`, of XML and of JSON")
    parser.set_defaults(bloom_filters=(100, 1_000, 10_000, 100_000, 1_000_000))


def run(arguments: argparse.Namespace) -> int:
    """Print them; 1 when one is not as it should be."""
    sample = _sample(arguments.seed, arguments.bloom_documents)
    console().print(f"{len(sample.texts)} documents of 9 DTDs, {sample.pairs} items in all (the paper: 3,680 and 93)")
    wanted = arguments.bloom_figures or [*FIGURES, *_OTHERS]
    good = [name for name in wanted if (FIGURES[name](sample) if name in FIGURES else _OTHERS[name](arguments))]
    for name in wanted:
        if name not in good:
            console().print(f"{name}: not as it should be")
    return 0 if len(good) == len(wanted) else 1

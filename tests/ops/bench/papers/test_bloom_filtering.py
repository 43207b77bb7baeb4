"""BLOOM, chapter 3, in small: the figures are printed, and no document that has a twig is ever missed."""

from __future__ import annotations

import argparse
from random import Random

import pytest

from headgate.matching.structure import filter_of, parse_twig
from headgate.ops.bench.papers import bloom_filtering
from headgate.ops.bench.papers.bloom_sample import DTDS, documents_of, dtds, real_documents, twigs_of
from headgate.protocol.structure import Check, Checks, Finding, read_document

XML = "application/xml"


def missed(texts: list[bytes], twigs: list[str], length: int) -> tuple[int, int]:
    """How many pairs have the twig by XPath, and how many of those a filter of this length does not let through."""
    due = lost = 0
    made = [parse_twig(text) for text in twigs]
    asked = [(twig, Checks([Check(twig.xpath(), tuple(twig.items()))])) for twig in made]
    for text in texts:
        items = [item for item in read_document(text, XML).items() if item[0] != "v"]
        document = filter_of(items, length, 1)
        for twig, checks in asked:
            if checks.find(text, XML) is Finding.TRUE:
                due += 1
                lost += bool(twig.filter(length, 1) & ~document)
    return due, lost


def test_dtds_are_of_the_papers_sizes() -> None:
    """Table 3.1."""
    for tree in dtds(1):
        names, waiting = [], [tree.root]
        while waiting:
            node = waiting.pop()
            names.append(node.name)
            waiting += node.below
        attributes = sum(name[0] == "@" for name in names)
        assert (len(names) - attributes, attributes) == DTDS[tree.name]


def test_twigs_and_documents_of_a_seed_are_always_the_same() -> None:
    trees = dtds(3)
    twins = [[*documents_of(trees[0], 5, Random(1)), *twigs_of(trees, 20, Random(1))] for _ in range(2)]
    assert twins[0] == twins[1]
    assert all(parse_twig(text) for text in twigs_of(trees, 200, Random(2), 5))


def test_no_document_that_has_a_twig_is_missed() -> None:
    trees, random = dtds(2), Random(2)
    texts = [text for tree in trees for text in documents_of(tree, 3, random)]
    due, lost = missed(texts, twigs_of(trees, 60, random), 64)
    assert due > 20 and not lost


@pytest.mark.slow
def test_no_real_document_that_has_a_twig_is_missed() -> None:
    """The sets that stand beside the repository, each asked for twigs of its own names in all combinations."""
    sets = real_documents()
    if not sets:
        pytest.skip("no real documents stand beside the repository")
    for name, texts in sets.items():
        random = Random(name)
        few = [text for text in random.sample(texts, min(len(texts), 60)) if bloom_filtering.readable(text)]
        tree = bloom_filtering.tree_of(few)
        wanted = [bloom_filtering.twigs_of_tree(random.choice(tree.below), random, 4) for _ in range(25)]
        due, lost = missed(few, wanted, 1024)
        assert due and not lost, name


def test_the_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    bloom_filtering.add_arguments(parser)
    words = ["--bloom-documents", "18", "--bloom-figures", "3.14", "3.15"]
    arguments = parser.parse_args(words, argparse.Namespace(seed=1))
    assert bloom_filtering.run(arguments) == 0
    printed = capsys.readouterr().out
    assert "18 documents of 9 DTDs" in printed and "3.15: R = (twigs - filters) / twigs" in printed


def test_no_random_pair_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    bloom_filtering.add_arguments(parser)
    words = ["--bloom-documents", "9", "--bloom-figures", "missed", "--bloom-pairs", "400"]
    assert bloom_filtering.run(parser.parse_args(words, argparse.Namespace(seed=1))) == 0
    assert "random pairs" in capsys.readouterr().out


@pytest.mark.slow
def test_errors_are_within_the_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    """BLOOM 3.3.4."""
    parser = argparse.ArgumentParser()
    bloom_filtering.add_arguments(parser)
    words = ["--bloom-documents", "90", "--bloom-figures", "3.16"]
    assert bloom_filtering.run(parser.parse_args(words, argparse.Namespace(seed=1))) == 0
    assert "3.16 to 3.19" in capsys.readouterr().out

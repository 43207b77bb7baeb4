"""ops/bench/matching/matching.py: every table is printed, at toy size."""

from __future__ import annotations

import argparse
import re

import pytest

from headgate.ops.bench.matching import matching


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    matching.add_arguments(parser)
    return parser.parse_args([*words, "--sizes", "60", "--events", "20", "--batch", "10", "--rounds", "1"])


@pytest.mark.slow
@pytest.mark.parametrize("verb", list(matching.VERBS))
def test_each_verb_prints_its_table(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert matching.run(arguments(verb)) == 0
    shown = capsys.readouterr().out
    assert verb in shown and re.search(r"\d\.\d", shown), shown


def test_an_unknown_verb_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert matching.run(arguments("speed")) == 2
    assert "choose from topics" in capsys.readouterr().err


def test_the_defaults_are_small() -> None:
    parser = argparse.ArgumentParser()
    matching.add_arguments(parser)
    assert max(parser.parse_args([]).sizes) <= 10_000 and parser.parse_args([]).what == []

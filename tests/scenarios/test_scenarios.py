"""Stories of a cluster and of its logs leave the trace that is written below their commands.

A trace that is wrong after a change that was meant is written anew by `python -m tests.scenarios`, and read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.broker.simulator.scenarios import Script, rewritten

FILES = sorted(Path(__file__).parent.glob("*/*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_story_leaves_its_trace(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert rewritten(text) == text


def test_there_are_stories_of_each_kind() -> None:
    for kind in ("cluster", "log"):
        assert sum(file.parent.name == kind for file in FILES) >= 5


def test_an_old_trace_is_replaced_and_commands_stay() -> None:
    text = "# Alone.\nbrokers 1\nconnect ann broker-1\n----\nsomething else\n\nadvance 1\n----\n"
    new = "# Alone.\nbrokers 1\nconnect ann broker-1\n----\nann < welcome\n\nadvance 1\n----\n"
    assert rewritten(text) == new == rewritten(new)


@pytest.mark.parametrize(("line", "word"), [("fly broker-1", "fly"), ("disk broker-1 melts", "melts")])
def test_what_is_no_command_is_refused(line: str, word: str) -> None:
    script = Script()
    script.do("brokers 1")
    with pytest.raises(ValueError, match=word):
        script.do(line)

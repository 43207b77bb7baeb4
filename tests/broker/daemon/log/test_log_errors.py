"""Each reason not to start names the file, what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.broker.daemon.log import LogUnusable
from headgate.broker.daemon.log.errors import ForeignLog, ForeignWal, LogUnwritable, NoFile

PATH = Path("data/log.db")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LogUnusable(PATH, "is damaged", "make room"), ["data/log.db is damaged: make room"]),
        (ForeignLog(PATH, "bob", "ann"), ["data/log.db", "'bob'", "'ann'", "--name bob", "--data"]),
        (ForeignWal(PATH), ["data/log.db", "another log.db", "put back"]),
        (LogUnwritable(PATH, "readonly database"), ["data/log.db", "readonly database", "writable", "--data"]),
        (NoFile(PATH), ["data/log.db is a directory", "move that directory away", "--data"]),
    ],
)
def test_the_text_says_what_to_do(error: LogUnusable, words: list[str]) -> None:
    assert all(word in str(error) for word in words)
    assert error.path == PATH and error.problem and error.advice


def test_fields_are_kept() -> None:
    assert (ForeignLog(PATH, "bob", "ann").owner, ForeignLog(PATH, "bob", "ann").name) == ("bob", "ann")
    assert LogUnwritable(PATH, "why").reason == "why"

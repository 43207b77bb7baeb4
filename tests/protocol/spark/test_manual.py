"""The manual knows the code: every option with its default, every column, every error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.protocol.spark import errors
from headgate.protocol.spark.layout import RESERVED
from headgate.protocol.spark.options import KINDS, OPTIONS, Option
from headgate.protocol.spark.reading.decoding import _MAKERS

TEXT = (Path(__file__).resolve().parents[3] / "protocol" / "spark" / "MANUAL.md").read_text(encoding="utf-8")

TABLE = TEXT[TEXT.index("| option |") : TEXT.index("## What a row becomes")].strip()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_has_its_line_and_its_default(option: Option) -> None:
    (line,) = [line for line in TABLE.splitlines() if f"`{option.name}`" in line.split("|")[1]]
    _, _, default, use, meaning, _ = line.split("|")
    assert meaning.strip()
    assert use.strip() == option.use
    if option.default and option.use != "all":
        assert option.default in default


def test_the_manual_has_no_option_that_is_none() -> None:
    named = re.findall(r"`([\w.]+)`", "\n".join(line.split("|")[1] for line in TABLE.splitlines()))
    assert sorted(named) == sorted(option.name for option in OPTIONS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_is_named(kind: str) -> None:
    (start,) = [match.end() for match in re.finditer(rf"\* \*\*{kind}\*\*", TEXT)]
    entry = re.split(r"\n\* |\n\n", TEXT[start:])[0]
    assert sorted(set(re.findall(r"`(\w+)`", entry))) == sorted(_MAKERS[kind])


@pytest.mark.parametrize("name", RESERVED)
def test_every_reserved_column_is_explained(name: str) -> None:
    assert f"`{name}`" in TEXT[TEXT.index("## What a row becomes") : TEXT.index("## What a log gives")]


def test_every_code_is_explained() -> None:
    codes = {getattr(errors, name).code for name in errors.__all__}
    assert {code for code in codes if code not in TEXT} == set()

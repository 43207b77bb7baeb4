"""Conditions from the command line: words, a file, standard input."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from headgate.ops.conditions import read_condition
from headgate.ops.exits import UsageError


def test_words_files_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "watch.sql").write_text("symbol IN ('ΔΕΗ')", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("price > 1"))
    assert read_condition("price > 8") == "price > 8"
    assert read_condition(f"@{tmp_path / 'watch.sql'}") == "symbol IN ('ΔΕΗ')"
    assert read_condition("@-") == "price > 1"
    assert read_condition("") == ""


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--where: cannot read .*no: No such file"):
        read_condition(f"@{tmp_path / 'no'}")

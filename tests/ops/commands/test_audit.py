"""`audit`: says that it is not there yet, and fails."""

from __future__ import annotations

import pytest

from ops.cli import main


def test_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit"]) == 1
    assert "a later version" in capsys.readouterr().err

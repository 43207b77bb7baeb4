"""Writes the traces of all scenarios anew: `python -m tests.scenarios`; look at what `git diff` says of them."""

from __future__ import annotations

from pathlib import Path

from headgate.broker.simulator.scenarios import rewritten

for file in sorted(Path(__file__).parent.glob("*/*.txt")):
    file.write_text(rewritten(file.read_text(encoding="utf-8")), encoding="utf-8")

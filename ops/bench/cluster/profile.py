"""A profile of a broker's CPU time by layer: the sampling inside the broker, and the reading of the samples.

    python -m headgate.ops.bench.cluster.profile FILE -m headgate.ops.cli serve ...

runs the module behind -m as it would run without. SIGUSR1 begins the profile, SIGUSR1 ends it and writes the file.
In between, after every few milliseconds of its own CPU time, the broker notes in which of our files it is: samples,
not a tracer, which would slow small functions down threefold and so starve brokers that share a core. Built-in
functions and libraries count for whoever called them, and reading from sockets for what then happens to the bytes.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

__all__ = ["LAYERS", "OTHER", "layer_at", "layer_of", "main", "read"]

OTHER = "other"
_SAMPLE_SECONDS = 0.002

LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("matching", ("matching/",)),
    ("connections", ("protocol/aio/", "broker/daemon/")),
    ("codec", ("protocol/",)),
    ("whose keys: split and relay", tuple(f"broker/core/{room}/" for room in ("forwarding", "keyspace", "cluster"))),
    ("links to brokers", ("broker/core/links/",)),
    ("upkeep of ring and copies", tuple(f"broker/core/{room}/" for room in ("membership", "kv", "placement"))),
    ("the log", ("broker/core/log/",)),
    ("delivery to sessions", ("broker/core/",)),
)
"""Layer -> the files it is made of, the first that fits; what fits none is `other`."""


def main(words: list[str]) -> None:
    """Run a module under a profile that SIGUSR1 begins and ends."""
    place, dash, module, *arguments = words
    if dash != "-m":
        raise SystemExit("usage: python -m headgate.ops.bench.cluster.profile FILE -m MODULE ARGUMENTS")
    samples: Counter[str] = Counter()
    running = False

    def sample(number: int, frame: FrameType | None) -> None:
        samples[layer_at(frame)] += 1

    def told(number: int, frame: FrameType | None) -> None:
        nonlocal running
        running = not running
        signal.setitimer(signal.ITIMER_PROF, *((_SAMPLE_SECONDS,) * 2 if running else (0.0, 0.0)))
        if not running:
            # Written aside and moved, so that whoever waits for the file finds it whole.
            aside = Path(f"{place}.part")
            aside.write_text(json.dumps(samples), encoding="utf-8")
            os.replace(aside, place)

    signal.signal(signal.SIGPROF, sample)
    signal.signal(signal.SIGUSR1, told)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def read(files: Iterable[Path]) -> Counter[str]:
    """Samples by layer, all these profiles together."""
    total: Counter[str] = Counter()
    for file in files:
        total.update(json.loads(file.read_text(encoding="utf-8")))
    return total


def layer_at(frame: FrameType | None) -> str:
    """The layer of the innermost of our files that is being executed."""
    while frame is not None:
        layer = layer_of(frame.f_code.co_filename)
        if layer != OTHER:
            return layer
        frame = frame.f_back
    return OTHER


def layer_of(path: str) -> str:
    """The layer of a file."""
    parts = path.replace("\\", "/").split("/")
    roots = [place for place, part in enumerate(parts) if part in ("broker", "matching", "protocol")]
    short = "/".join(parts[roots[-1] :]) if roots else ""
    for layer, beginnings in LAYERS:
        if short.startswith(beginnings) and short:
            return layer
    return OTHER


if __name__ == "__main__":
    main(sys.argv[1:])

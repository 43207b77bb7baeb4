"""Where a broker's CPU time goes, by layer: a broker that profiles itself between two signals, and the reading of that.

    python -m ops.bench.cluster_profile FILE -m ops.cli serve ...

runs the module behind -m as it would run without. SIGUSR1 begins the profile, SIGUSR1 ends it and writes the file.
Time is that of the broker's thread on its core, not the clock's: brokers that share cores wait for one another, and
that is nobody's cost. Built-in functions count for whoever called them. What the thread used and no Python function
did is the event loop's own work: waiting, reading sockets, calling back.
"""

from __future__ import annotations

import cProfile
import marshal
import os
import runpy
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["LAYERS", "LOOP", "layer_of", "layers", "main", "read"]

LOOP = "event loop and reading"

LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("matching", ("matching/",)),
    ("FORWARD on the wire", ("protocol/peer_codec", "protocol/peer_messages")),
    ("connections", ("protocol/aio/", "broker/daemon/")),
    ("codec", ("protocol/",)),
    (
        "whose keys: split and relay",
        tuple(f"broker/core/{name}" for name in ("forwarding", "shelves", "keys", "usage", "cluster", "routing")),
    ),
    ("links to brokers", ("broker/core/peer",)),
    (
        "upkeep of ring and copies",
        tuple(
            f"broker/core/{name}"
            for name in ("chord", "ring", "keyed", "replicas", "mesh", "healing", "rendezvous", "letters", "identi")
        ),
    ),
    ("delivery to sessions", ("broker/core/",)),
)
"""Layer -> the files it is made of, the first that fits; what fits none is `other`."""

Stats = dict[tuple[str, int, str], tuple[int, int, float, float, dict[tuple[str, int, str], tuple[Any, ...]]]]


def main(words: list[str]) -> None:
    """Run a module under a profile that SIGUSR1 begins and ends."""
    place, dash, module, *arguments = words
    if dash != "-m":
        raise SystemExit("usage: python -m ops.bench.cluster_profile FILE -m MODULE ARGUMENTS")
    profile = cProfile.Profile(time.thread_time)
    began: list[float] = []

    def told(number: int, frame: FrameType | None) -> None:
        if not began:
            began.append(time.thread_time())
            profile.enable()
            return
        profile.disable()
        used = time.thread_time() - began[0]
        profile.create_stats()
        # Written aside and moved, so that whoever waits for the file finds it whole.
        aside = f"{place}.part"
        with open(aside, "wb") as file:
            marshal.dump((used, profile.stats), file)
        os.replace(aside, place)
        began.clear()

    signal.signal(signal.SIGUSR1, told)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def read(files: Iterable[Path]) -> dict[str, float]:
    """Seconds by layer, all these profiles together."""
    total: dict[str, float] = defaultdict(float)
    for file in files:
        used, stats = marshal.loads(file.read_bytes())
        for layer, seconds in layers(used, stats).items():
            total[layer] += seconds
    return total


def layers(used: float, stats: Stats) -> dict[str, float]:
    """Seconds by layer of one profile: functions by their files, built-in ones by their callers' files."""
    found: dict[str, float] = defaultdict(float)
    for (path, _, _), (_, _, own_seconds, _, callers) in stats.items():
        if path != "~":
            found[layer_of(path)] += own_seconds
            continue
        for (caller, _, _), (_, _, seconds, _) in callers.items():
            found[layer_of(caller)] += seconds
    found[LOOP] += max(0.0, used - sum(found.values()))
    return found


def layer_of(path: str) -> str:
    """The layer of a file."""
    parts = path.replace("\\", "/").split("/")
    roots = [place for place, part in enumerate(parts) if part in ("broker", "matching", "protocol")]
    short = "/".join(parts[roots[-1] :]) if roots else ""
    for layer, beginnings in LAYERS:
        if short.startswith(beginnings) and short:
            return layer
    return "other"


if __name__ == "__main__":
    main(sys.argv[1:])

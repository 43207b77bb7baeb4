"""`python -m headgate.ops.bench.papers [name] [options]`: one paper's tables, or all of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from . import (
    bloom_brokers,
    bloom_cube,
    bloom_filtering,
    bloom_repair,
    bloom_traffic,
    bloom_upkeep,
    delivery,
    node_placements,
    placements,
    replication,
    routing,
    state_dissemination,
)

__all__ = ["main"]

PAPERS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]] = {
    "bloom-brokers": (bloom_brokers.add_arguments, bloom_brokers.run),
    "bloom-filtering": (bloom_filtering.add_arguments, bloom_filtering.run),
    "bloom-cube": (bloom_cube.add_arguments, bloom_cube.run),
    "bloom-repair": (bloom_repair.add_arguments, bloom_repair.run),
    "dissemination": (state_dissemination.add_arguments, state_dissemination.run),
    "bloom-traffic": (bloom_traffic.add_arguments, bloom_traffic.run),
    "bloom-upkeep": (bloom_upkeep.add_arguments, bloom_upkeep.run),
    "delivery": (delivery.add_arguments, delivery.run),
    "nodes": (node_placements.add_arguments, node_placements.run),
    "placements": (placements.add_arguments, placements.run),
    "replication": (replication.add_arguments, replication.run),
    "routing": (routing.add_arguments, routing.run),
}
"""Name -> how its arguments are added, and how it runs."""


def main(words: Sequence[str] | None = None, **sizes: object) -> int:
    """Run what is named, or everything; the exit code is the worst of all. `sizes` take the place of defaults."""
    parser = argparse.ArgumentParser(prog="python -m headgate.ops.bench.papers", description=__doc__)
    parser.add_argument("paper", nargs="?", choices=sorted(PAPERS), help="which tables; all when not given")
    for add_arguments, _ in PAPERS.values():
        add_arguments(parser)
    arguments = parser.parse_args(words, argparse.Namespace(**sizes))
    chosen = [arguments.paper] if arguments.paper else sorted(PAPERS)
    return max(PAPERS[name][1](arguments) for name in chosen)


if __name__ == "__main__":
    sys.exit(main())

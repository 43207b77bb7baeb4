"""The simulator: host 2 of the Node. Virtual time, one heap, one seed; the production code inside, faults around it.

    python -m headgate.broker.simulator --seed 7                   one run: its digest and its verdict
    python -m headgate.broker.simulator --campaign 200             many seeds, one line for each that fails
    python -m headgate.broker.simulator --seed 7 --trace FILE      every input with its cause and effects, to read
    python -m headgate.broker.simulator --seed 7 --ablate dedupe   the same without one safeguard: it must fail

    python -m headgate.broker.simulator --nodes 5 --seed 7         a whole cluster, with its own faults
    python -m headgate.broker.simulator --log --seed 7             one that keeps logs, on disks that fail
    python -m headgate.broker.simulator ring --seeds 100           the ring of brokers alone

Rooms, from the ground up; each has a manual in its `__init__`:

    engine       the world: time, brokers, their links and disks
    workloads    what clients do, and what must come of it
    faults       what goes wrong
    checkers     what must never be, and what must be at the end
    scenarios    the four kinds of runs, put together from the other rooms, and their ablations: do checkers bite?

`command` is the command line of all of them; `limits` has every bound with its reason.

Re-exported: `main` (the command), `parsers` (its arguments).
"""

from .command import main, parsers

__all__ = ["main", "parsers"]

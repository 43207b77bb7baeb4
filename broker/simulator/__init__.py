"""The simulator: host 2 of the Node. Virtual time, one heap, one seed; the production code inside, faults around it.

    python -m headgate.broker.simulator --seed 7                   one run: its digest and its verdict
    python -m headgate.broker.simulator --campaign 200             many seeds, one line for each that fails
    python -m headgate.broker.simulator --seed 7 --trace FILE      every input and effect, to read
    python -m headgate.broker.simulator --seed 7 --ablate dedupe   the same without one safeguard: it must fail

    python -m headgate.broker.simulator --nodes 5 --seed 7         a whole cluster, with its own faults
    python -m headgate.broker.simulator --log --seed 7             one that keeps logs, on disks that fail
    python -m headgate.broker.simulator ring --seeds 100           the ring of brokers alone

Order of reading: `world` (time, and the twin of `daemon/driver.py`), `network`, `client`, `workload`, `faults`;
`history` (what must come out, worked out by a dumb twin), `checkers` (one class a promise), `ablations` (do they
bite?); `trace`, `run`, `report`, `command`. The ring alone is in `ring_*`. A cluster: `peer_network`, `cluster_world`,
`cluster_client`, `cluster_faults`, `cluster_history`, `cluster_checkers` (what clients see), `cluster_state` (what only
an oracle sees), `cluster_ablations`, `cluster_run`, `cluster_command`.

Re-exported: `main` (the command), `parsers` (its arguments), `run_seed`, `Options` and `Verdict` (one run, from tests).
"""

from .command import main, parsers
from .run import Options, Verdict, run_seed

__all__ = ["Options", "Verdict", "main", "parsers", "run_seed"]

"""Ablations of the cluster: without each safeguard some seed fails, and names the promise that is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.broker.simulator.scenarios import (
    BROKER_ABLATIONS,
    CLUSTER_ABLATIONS,
    DURABLE_ABLATIONS,
    LOG_ABLATIONS,
    RING_ABLATIONS,
    ClusterOptions,
    ClusterScenario,
    play,
)
from tests.support.keyed_run import KEYED_ABLATIONS

AMEND = {
    "amended-answer-behind": ("slow",),
    "amended-decided-once": ("crash", "pause", "link"),
    "amended-former-rests": ("crash", "pause", "link"),
}
"""Those of amendments: faults; many clients, for they are about events on their way at the point."""

FIND = {
    "local-filter": ClusterOptions(1, 5, 5.0, ablation="local-filter"),
    "candidates-checked": ClusterOptions(1, 5, 5.0, ablation="candidates-checked", placement="counting"),
    "use-known-before-suback": ClusterOptions(3, 5, 5.0, ablation="use-known-before-suback"),
    "edges-before-suback": ClusterOptions(1, 5, 5.0, ablation="edges-before-suback", structure="kbsp"),
    "ring-repeat-last": ClusterOptions(6, 8, 15.0, faults=("crash",), ablation="ring-repeat-last"),
    "withdrawn-at-once": ClusterOptions(14, 5, 8.0, ablation="withdrawn-at-once"),
    **{name: ClusterOptions(1, 5, 6.0, 16, faults, name, amend=True) for name, faults in AMEND.items()},
}
"""Quick ones; the rest in the campaign below."""


DELTA: dict[str, tuple[tuple[str, ...], int, float]] = {
    "own-reference": (("cut",), 3, 10.0),
    "forgotten-after-loss": (("cut",), 3, 10.0),
    "forgotten-after-drop": (("slow",), 3, 10.0),
    "delta-at-one-key": ((), 6, 10.0),
}
"""Those of conditions with DELTA: faults, brokers and seconds."""

SCHEDULED = {Safeguard.LISTS_BY_LEASE}
"""What chance hardly ever needs: tests/broker/core/forwarding/test_counting_gather.py says what goes wrong without."""

FIRST = {"delta-at-one-key": 8, "forgotten-after-drop": 12, "lapse": 28, "wait-without-keys": 119}
"""Where to begin to look for those that are long in coming."""

OF_ONE_BROKER = {Safeguard.RIGHTS_AT_READING}
"""Switched off in `tests/properties/test_rights.py`: nobody has rights in a simulation."""

RARE = {"forgotten-after-drop", "lapse", "losses-told", "ring-notify", "wait-without-keys"}
"""Caught by one seed in some dozens, and which one changes with every word that brokers say: `make ablations`."""


@pytest.mark.parametrize("name", sorted(FIND))
def test_a_run_without_it_fails_soon(name: str) -> None:
    """One of three seeds is enough: which one it is changes with every word that brokers say."""
    options, promise = FIND[name], "RingKept" if name.startswith("ring-") else ""
    seeds = range(options.seed, options.seed + 3)
    failures = (play(replace(options, seed=seed)).failure for seed in seeds)
    assert any(failure and failure.startswith(promise) for failure in failures)


def test_every_safeguard_is_switched_off_somewhere() -> None:
    ring = {f"ring-{name}" for name in RING_ABLATIONS}
    assert {
        *BROKER_ABLATIONS,
        *CLUSTER_ABLATIONS,
        *LOG_ABLATIONS,
        *DURABLE_ABLATIONS,
        *KEYED_ABLATIONS,
        *ring,
        *OF_ONE_BROKER,
    } >= SAFEGUARDS


def test_brokers_have_every_safeguard_but_the_one_that_is_switched_off() -> None:
    for name in ("", *CLUSTER_ABLATIONS):
        world = ClusterScenario(ClusterOptions(1, ablation=name)).world
        world.add().start()
        (node,) = world.nodes()
        assert SAFEGUARDS - node.config.safeguards == SAFEGUARDS & {name}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.rare if name in RARE else ())
        for name in sorted({*CLUSTER_ABLATIONS} - SCHEDULED)
    ],
)
def test_some_seed_fails_without_each(name: str) -> None:
    kinds: tuple[str, ...] = ("join", "leave") if name == "wait-after-gaining" else ("crash", "pause", "link", "join")
    nodes, seconds = 5, 12.0
    if name == "lapse":  # what stands still, and nothing else
        kinds, nodes, seconds = ("pause",), 3, 12.0
    if name == "cold-start-agreed":  # a start beside others that ends before a ring takes it in
        nodes = 3
    if name == "wait-without-keys":  # brokers that answer for nothing for a while
        kinds = ("link", "crash", "pause")
    placement = "counting" if name == "candidates-checked" else "anchored"
    if name.startswith("ring-"):  # a ring that bears a death
        kinds, nodes, seconds = ("join", "leave", "crash"), 8, 15.0
    if name in DELTA:
        kinds, nodes, seconds = DELTA[name]
    clients = 6
    if name in AMEND:
        kinds, nodes, seconds, clients = AMEND[name], 5, 6.0, 16
    structure = "kbsp" if name == "edges-before-suback" else ""
    said = (kinds, name, placement, name in DELTA, structure, name in AMEND)
    failures = (
        play(ClusterOptions(seed, nodes, seconds, clients, *said)).failure
        for seed in range(FIRST.get(name, 1), FIRST.get(name, 1) + 240)  # the rarest is found in one of 250
    )
    assert any(failures)

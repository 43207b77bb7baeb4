"""How many sockets clients can have."""

from __future__ import annotations

import resource

import pytest

from headgate.broker.daemon.descriptors import connections_possible
from headgate.broker.daemon.limits import DESCRIPTORS_RESERVED

INFINITY = resource.RLIM_INFINITY


class System:
    """The limits of a process that is not this one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, refuses: bool = False) -> None:
        self.limits = (soft, hard)
        self.refuses = refuses
        monkeypatch.setattr(resource, "getrlimit", lambda what: self.limits)
        monkeypatch.setattr(resource, "setrlimit", self.set)

    def set(self, what: int, limits: tuple[int, int]) -> None:
        if self.refuses:
            raise ValueError("not allowed to raise maximum limit")
        self.limits = limits


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "possible", "soft_after"),
    [
        (100_000, 100_000, 10_000, 10_000, 100_000),
        (1024, 100_000, 10_000, 10_000, 10_000 + DESCRIPTORS_RESERVED),
        (1024, 4096, 10_000, 4096 - DESCRIPTORS_RESERVED, 4096),
        (1024, INFINITY, 10_000, 10_000, 10_000 + DESCRIPTORS_RESERVED),
        (INFINITY, INFINITY, 10_000, 10_000, INFINITY),
        (64, 64, 10_000, 1, 64),
    ],
)
def test_the_soft_limit_is_raised_as_far_as_it_helps(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: int, possible: int, soft_after: int
) -> None:
    system = System(monkeypatch, soft, hard)
    assert connections_possible(wanted) == possible
    assert system.limits == (soft_after, hard)


def test_a_system_that_refuses_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(monkeypatch, 1024, 4096, refuses=True)
    assert connections_possible(10_000) == 1024 - DESCRIPTORS_RESERVED
    assert system.limits == (1024, 4096)

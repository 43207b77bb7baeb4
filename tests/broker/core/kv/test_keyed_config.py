"""What a keyed store is told when it is made."""

from __future__ import annotations

import pytest

from headgate.broker.core.kv import KvConfig, KvLimits
from headgate.broker.core.kv.limits import (
    FORMER_SECONDS,
    LEASE_SECONDS,
    LIVES_MAX,
    PROMOTE_SECONDS,
    SETTLE_SECONDS,
)


def test_leases_are_of_the_usual_length() -> None:
    assert KvConfig().lease_seconds == LEASE_SECONDS


@pytest.mark.parametrize("seconds", [0.0, -1.0, LEASE_SECONDS + 0.1])
def test_a_lease_that_others_would_not_wait_for_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="lease_seconds"):
        KvConfig(lease_seconds=seconds)


@pytest.mark.parametrize("life", [-1, LIVES_MAX])
def test_a_life_that_does_not_fit_into_the_number_of_a_put_is_refused(life: int) -> None:
    assert KvConfig(life=LIVES_MAX - 1).life == LIVES_MAX - 1
    with pytest.raises(ValueError, match=f"make it 0 to {LIVES_MAX - 1}"):
        KvConfig(life=life)


def test_the_spans_of_time_fit_together() -> None:
    assert SETTLE_SECONDS > LEASE_SECONDS
    limits = KvLimits()
    assert limits.retain_seconds > PROMOTE_SECONDS > LEASE_SECONDS
    assert limits.retain_seconds <= FORMER_SECONDS
    assert limits.put_seconds > 2 * (SETTLE_SECONDS + LEASE_SECONDS)

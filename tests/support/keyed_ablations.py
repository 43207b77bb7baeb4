"""Safeguards of the keyed store switched off, one at a time: each is done to a store that was just made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.broker.core.kv import Keyed

__all__ = ["ABLATIONS"]


def grants_not_waited_for(store: Keyed) -> None:
    store.siblings.others_until = lambda now: now


def no_wait_after_gaining(store: Keyed) -> None:
    store.ownership._confirm_from = lambda now: now


def leases_from_the_answer(store: Keyed) -> None:
    store.replicas._good_until = lambda asked_at, now, seconds: now + seconds
    store.leases._good_until = lambda asked_at, now: now + store.config.lease_seconds


def no_handover_at_fetch(store: Keyed) -> None:
    store.handover._hand_over = lambda newcomer, now: None


def promotion_without_a_replica(store: Keyed) -> None:
    store.ownership._go_on = store.ownership._make_ready


def no_top_up(store: Keyed) -> None:
    begin = store.siblings._begin

    def begin_empty(sibling: Any, piece: Any) -> None:
        begin(sibling, piece)
        sibling.stream.names.clear()

    store.siblings._begin = begin_empty


def lives_number_puts_alike(store: Keyed) -> None:
    store.puts._last_ticket = 0


def keys_handed_on_stay_whole(store: Keyed) -> None:
    store.ownership.former.came = lambda asker, stretch, now: None


def keys_handed_on_stay_whole_for_a_lease(store: Keyed) -> None:
    former = store.ownership.former
    whole = former.whole
    former.whole = lambda asker, now: whole(None, now)


def copies_that_somebody_took_stay_whole_for_a_lease(store: Keyed) -> None:
    whole = store.replicas.whole
    store.replicas.whole = lambda asker, now: whole(None, now)


def who_is_left_out_is_told_nothing(store: Keyed) -> None:
    store.siblings.counts = lambda identifier: True


def sleep_goes_unnoticed(store: Keyed) -> None:
    store.replicas.awake = lambda now: None


def siblings_not_waited_for(store: Keyed) -> None:
    store.siblings.wait_for = lambda items, sent, waiting: []


ABLATIONS: dict[str, Callable[[Keyed], None]] = {
    ablation.__name__: ablation
    for ablation in (
        grants_not_waited_for,
        no_wait_after_gaining,
        leases_from_the_answer,
        no_handover_at_fetch,
        promotion_without_a_replica,
        no_top_up,
        lives_number_puts_alike,
        keys_handed_on_stay_whole,
        keys_handed_on_stay_whole_for_a_lease,
        copies_that_somebody_took_stay_whole_for_a_lease,
        who_is_left_out_is_told_nothing,
        sleep_goes_unnoticed,
        siblings_not_waited_for,
    )
}
"""Name -> what it does to a store."""

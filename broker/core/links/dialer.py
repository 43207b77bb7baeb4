"""Which brokers to dial and when: addresses that a link is wanted to, and what waits to be said there.

An address is dialled when it is to be kept, or while something waits for it, and there is no link to the broker
there. After a failure it has a pause, which doubles from failure to failure and is drawn from its upper half, so that
brokers that start together do not dial together for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from headgate.protocol.messages import Control, Copy, Fetched, Letter

from ..effects import Dial, Effect
from ..timers import Timers
from .limits import (
    COMPLAINTS_MAX,
    DIALS_MAX,
    PENDING_PER_ADDRESS_MAX,
    PENDING_SECONDS_MAX,
    REDIAL_SECONDS_MAX,
    REDIAL_SECONDS_MIN,
)

__all__ = ["Dials", "Tellable"]

Tellable: TypeAlias = Letter | Control | Copy | Fetched


@dataclass(slots=True)
class _Target:
    """One address. `dialling` from the Dial until that link is open or over."""

    address: str
    dialling: bool = False
    failures: int = 0
    not_before: float = float("-inf")
    pending: deque[tuple[float, Tellable]] = field(default_factory=deque)


class Dials:
    """Dials the addresses that links are wanted to. `is_linked(address)`: there is a link to the broker there."""

    def __init__(self, effects: list[Effect], random: Random, timers: Timers, is_linked: Callable[[str], bool]) -> None:
        self._timers = timers
        self.wanted: dict[str, None] = {}
        self.own: dict[str, None] = {}
        self.dropped = 0
        self.enabled = False  # once others can reach us, and until we stop
        self._effects = effects
        self._random = random
        self._is_linked = is_linked
        self._targets: dict[str, _Target] = {}
        self._complaints: dict[str, str] = {}  # by address, why it was refused: said once

    def keep(self, addresses: Iterable[str], now: float) -> bool:
        """Links to these are wanted from now on, and to no others. Whether that is another word than before."""
        wanted = {address: None for address in addresses if address and address not in self.own}
        if wanted == self.wanted and wanted.keys() <= self._targets.keys():
            return False
        self.wanted = wanted
        for address in wanted:
            self._dial_if_due(self._target(address), now)
        return True

    def wait(self, address: str, message: Tellable, now: float) -> None:
        """Say this once there is a link; it may be lost."""
        if not address or address in self.own:
            return
        target = self._target(address)
        if target is None:
            self.dropped += 1
            return
        target.pending.append((now, message))
        if len(target.pending) > PENDING_PER_ADDRESS_MAX:
            target.pending.popleft()
            self.dropped += 1
        self._dial_if_due(target, now)
        self._set_timer(target)

    def take(self, address: str, now: float) -> list[Tellable]:
        """What waits for an address and is not too old: there is a link now."""
        self._complaints.pop(address, None)
        target = self._targets.get(address)
        if target is None:
            return []
        messages = [message for since, message in target.pending if since + PENDING_SECONDS_MAX > now]
        self.dropped += len(target.pending) - len(messages)
        target.pending.clear()
        target.failures = 0
        self._set_timer(target)
        return messages

    def over(self, address: str, now: float) -> None:
        """What was dialled is no link."""
        self.opened(address)
        self.broke(address, now)

    def broke(self, address: str, now: float) -> None:
        """There is no link to it any more: wait a little before the next dial."""
        target = self._targets.get(address)
        if target is not None:
            limit = min(REDIAL_SECONDS_MAX, 2 * REDIAL_SECONDS_MIN * 2 ** min(target.failures, 16))
            target.not_before = now + limit * self._random.uniform(0.5, 1.0)
            target.failures += 1
            self._set_timer(target)

    def opened(self, address: str) -> None:
        """What was dialled is a link."""
        target = self._targets.get(address)
        if target is not None:
            target.dialling = False
            self._set_timer(target)

    def is_own(self, address: str) -> None:
        """It is our own address: no other broker is there."""
        self.own[address] = None
        self.wanted.pop(address, None)
        self._targets.pop(address, None)
        self._timers.at(("dial", address), float("inf"))

    def is_news(self, address: str, complaint: str) -> bool:
        """Whether this was not said already about this address, dialled by us or not."""
        if self._complaints.pop(address, None) == complaint:
            self._complaints[address] = complaint
            return False
        while len(self._complaints) >= COMPLAINTS_MAX:
            del self._complaints[next(iter(self._complaints))]
        self._complaints[address] = complaint
        return True

    def begin(self, now: float) -> None:
        """Others can reach us: dial what waits for that."""
        self.enabled = True
        for address in list(self._targets):
            self.go_on(address, now)

    def end(self) -> None:
        """Dial no more."""
        self.enabled = False
        for target in self._targets.values():
            self._set_timer(target)

    def go_on(self, address: str, now: float) -> None:
        """Dial if it is due, or let go of what is not wanted."""
        target = self._targets.get(address)
        if target is None:
            return
        while target.pending and target.pending[0][0] + PENDING_SECONDS_MAX <= now:
            target.pending.popleft()
            self.dropped += 1
        if not self._dial_if_due(target, now) and not self._is_needed(target, now):
            del self._targets[address]
        else:
            self._set_timer(target)

    def _set_timer(self, target: _Target) -> None:
        deadline = float("inf")
        if self.enabled and target.pending:
            deadline = target.pending[0][0] + PENDING_SECONDS_MAX
        if self.enabled and not target.dialling and not self._is_linked(target.address):
            deadline = min(deadline, target.not_before)
        self._timers.at(("dial", target.address), deadline)

    def _target(self, address: str) -> _Target | None:
        target = self._targets.get(address)
        if target is None and (len(self._targets) < DIALS_MAX or address in self.wanted):
            target = self._targets[address] = _Target(address)
        return target

    def _is_needed(self, target: _Target, now: float) -> bool:
        return target.dialling or target.address in self.wanted or bool(target.pending) or target.not_before > now

    def _dial_if_due(self, target: _Target | None, now: float) -> bool:
        if target is None or target.dialling or not self.enabled or now < target.not_before:
            return False
        if self._is_linked(target.address):
            return False
        if target.address not in self.wanted and not target.pending:
            return False
        target.dialling = True
        self._effects.append(Dial(target.address))
        self._set_timer(target)
        return True

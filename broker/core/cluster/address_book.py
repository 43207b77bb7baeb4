"""Address book: addresses of other brokers: which are worth dialling, and which to remember.

known       a broker has, or a moment ago had, a link there: told by others (ROSTER), or our own
contacts    known once, kept over restarts: a broker that comes back without seeds finds its cluster again
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..limits import CONTACTS_KEPT_MAX, DEFAULT_LIMITS, STRANGER_SECONDS, Limits

__all__ = ["AddressBook"]


class AddressBook:
    """Remembers addresses of other brokers: which to dial, and which to keep over restarts."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._known_max = 4 * limits.mesh_brokers
        self.own = ""
        self.known: dict[str, float] = {}
        self.contacts: tuple[str, ...] = ()

    def remember(self, contacts: Sequence[Any]) -> None:
        """What an earlier life knew."""
        self.contacts = tuple(one for one in contacts if isinstance(one, str))[:CONTACTS_KEPT_MAX]

    def nobody(self) -> bool:
        """Whether this broker never heard of any other."""
        return not self.contacts and not self.known

    def met(self, address: str, now: float) -> bool:
        """There is a link there; True when there was one before."""
        before = address in self.known
        self.known[address] = now
        return before

    def forget_strangers(self, now: float) -> None:
        """Those that no broker had a link to for long."""
        for address in [one for one, heard in self.known.items() if heard + STRANGER_SECONDS < now]:
            del self.known[address]

    def told(self, addresses: Sequence[str], now: float) -> None:
        """Another broker's roster."""
        for address in addresses:
            if address != self.own and len(self.known) < self._known_max:
                self.known[address] = now

    def new_contacts(self, linked: Iterable[str]) -> list[str] | None:
        """What to keep over restarts, when that is more than is kept: who is here goes before who was."""
        contacts = tuple(one for one in dict.fromkeys((*linked, *self.contacts)) if one != self.own)
        contacts = contacts[:CONTACTS_KEPT_MAX]
        if set(contacts) == set(self.contacts):
            return None
        self.contacts = contacts
        return list(contacts)

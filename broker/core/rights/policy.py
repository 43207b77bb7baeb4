"""The policy: who there is, what each role may do, and so what each user may do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.matching import Pattern, Tree
from headgate.matching.tree import cost
from headgate.protocol.data import Batch
from headgate.protocol.errors import ErrorCode, Refused

from ..limits import RIGHTS_REMEMBERED_MAX
from .gates import Gate
from .narrowing import Narrowed, common, narrow
from .roles import Role

__all__ = ["Member", "Policy", "Rights"]


class Rights:
    """What a user of these roles may do: all of them together."""

    def __init__(self, roles: tuple[Role, ...]) -> None:
        self.roles = roles
        self.admin = any(role.admin for role in roles)
        self.audit = any(role.audit for role in roles)
        self._subscribe = tuple(grant for role in roles for grant in role.subscribe)
        self._no_subscribe = tuple(grant for role in roles for grant in role.no_subscribe)
        publish = tuple(grant for role in roles for grant in role.publish)
        self._readable = {grant.pattern.stream for grant in self._subscribe}
        self._known = self._readable | {grant.pattern.stream for grant in publish}
        self.publishes = bool(publish)
        self._outgoing = Gate(publish, tuple(grant for role in roles for grant in role.no_publish))
        self._incoming = Gate(self._subscribe, self._no_subscribe)
        self._names = tuple(_glob(name) for role in roles for name in role.durable)
        self.pace = self.limit("events_per_second"), self.limit("bytes_per_second")
        self.is_paced = any(self.pace)
        self._terms_max = self.limit("condition_terms")
        self._no_names = tuple(_glob(name) for role in roles for name in role.no_durable)

    def is_as(self, other: Rights | None) -> bool:
        """Whether these are the same rights, perhaps read anew."""
        return other is not None and self.roles == other.roles

    def narrow(self, asked: Pattern, condition: Tree | None) -> Narrowed:
        """What of that it may hear. Raises Refused."""
        if self._terms_max and condition is not None and (terms := cost(condition).terms) > self._terms_max:
            text = f"a condition of yours has at most {self._terms_max} terms, and this one has {terms}: a comparison "
            text += "is one, BETWEEN two, an IN list one; use several subscriptions, or have your role allow more"
            raise Refused(ErrorCode.LIMIT, f"{text} (condition_terms)")
        return narrow(asked, condition, self._subscribe, self._no_subscribe)

    def unpublishable(self, batch: Batch) -> list[int]:
        """The rows that it may not publish."""
        return self._outgoing.shut(batch)

    def unreadable(self, batch: Batch) -> list[int]:
        """The rows that it may not be given."""
        return self._incoming.shut(batch)

    def knows(self, stream: str) -> bool:
        """Whether it has to do with a stream."""
        return stream in self._known

    def reads(self, stream: str) -> bool:
        """Whether it may read something of a stream."""
        return stream in self._readable

    def publishes_to(self, topic: str) -> bool:
        """Whether it may publish anything there, whatever the attributes."""
        return self._outgoing.opens(topic)

    def check_durable(self, name: str) -> None:
        """Raises Refused unless it may have a durable subscription of that name."""
        allowed = any(one.fullmatch(name) for one in self._names)
        if not allowed or any(one.fullmatch(name) for one in self._no_names):
            raise Refused(ErrorCode.FORBIDDEN, f"your rights do not let you have a durable subscription {name!r}")

    def limit(self, kind: str) -> int:
        """The largest of its roles' limits of that name; 0 where one of them has none."""
        limits = [int(getattr(role, kind)) for role in self.roles]
        return 0 if 0 in limits else max(limits, default=0)

    def reads_all_of(self, pattern: Pattern) -> bool:
        """Whether it may read everything there."""
        if any(common(grant.pattern, pattern) is not None for grant in self._no_subscribe):
            return False
        return any(grant.where is None and common(grant.pattern, pattern) == pattern for grant in self._subscribe)


@dataclass(frozen=True, slots=True)
class Member:
    """A user: the names of its roles, and what proves who it is, each by a name that tells nothing of the secret."""

    roles: tuple[str, ...] = ()
    credentials: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Policy:
    """All users and all roles, as one reading of the files gives them."""

    users: Mapping[str, Member]
    roles: Mapping[str, Role]
    version: str = ""
    """The digest of both, the same at each broker of a cluster."""
    issuers: frozenset[str] = frozenset()
    """Credentials of users that are in no file: the keys that sign web tokens."""
    _rights: dict[tuple[str, ...], Rights] = field(default_factory=dict, repr=False, compare=False)

    def rights_of(self, user: str, roles: tuple[str, ...] | None = None) -> Rights | None:
        """What that user may do, or one of these roles; None when there is no such user."""
        if roles is None:
            member = self.users.get(user)
            if member is None:
                return None
            roles = member.roles
        names = tuple(name for name in dict.fromkeys(roles) if name in self.roles)
        rights = self._rights.get(names)
        if rights is None:
            if len(self._rights) >= RIGHTS_REMEMBERED_MAX:
                self._rights.clear()
            rights = self._rights[names] = Rights(tuple(self.roles[name] for name in names))
        return rights

    def holds(self, user: str, credential: str) -> bool:
        """Whether what a user showed is still good."""
        member = self.users.get(user)
        return credential in self.issuers or (member is not None and credential in member.credentials)

    @property
    def conditional(self) -> frozenset[str]:
        """The streams where rights have conditions: there brokers believe no match columns of publishers."""
        grants = [grant for role in self.roles.values() for grant in (*role.subscribe, *role.no_subscribe)]
        return frozenset(grant.pattern.stream for grant in grants if grant.where is not None)


def _glob(name: str) -> re.Pattern[str]:
    """A name in which * stands for anything; nothing else has a meaning."""
    return re.compile(".*".join(re.escape(part) for part in name.split("*")), re.DOTALL)

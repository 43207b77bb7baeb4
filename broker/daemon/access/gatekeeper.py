"""The gatekeeper: the files as a broker holds them, and the policy that follows from them at this moment."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from headgate.broker.core.rights import Member, Policy, RightsError, Role, read_roles

from .issuer import Issuer
from .users import AccessError, User, UsersFile, digest_of_token, read_toml, split_token
from .web_tokens import WebTokenRules, WebTokens

__all__ = ["Gatekeeper", "Reading"]


class Reading(NamedTuple):
    """The files as they were at one moment."""

    seen: tuple[tuple[int, int, int] | None, ...]
    users: dict[str, User]
    roles: dict[str, Role]
    by_token: dict[str, str]
    by_certificate: dict[str, str]
    version: str
    web_tokens: WebTokens | None = None


class Gatekeeper:
    """Users and roles, and keys of web tokens by which others name users; `users` and `policy` hold what was read last.

    Reading ten thousand users takes a second: a broker asks `is_stale`, lets a thread `read`, and puts that to `use`.
    """

    def __init__(self, users: Path, roles: Path, now: float, web: WebTokenRules | None = None) -> None:
        """Raises AccessError."""
        self._files = (users, roles) if web is None or web.file is None else (users, roles, web.file)
        self._web = web
        self.web_tokens: WebTokens | None = None
        self.issuer: Issuer | None = None
        """Where the keys are fetched; until they are, there are none."""
        if web is not None and isinstance(web.keys, str):
            self.issuer = Issuer(web.keys, time.monotonic())
            self.web_tokens = WebTokens(web, {})
        self._seen: tuple[tuple[int, int, int] | None, ...] = ()
        self.users: dict[str, User] = {}
        self.by_token: dict[str, str] = {}
        self.by_certificate: dict[str, str] = {}
        self.policy = Policy({}, {})
        self._ends = 0.0  # when the first token ends that is good now
        self.unknown_roles: tuple[str, ...] = ()
        self.use(self.read(), now)

    def is_stale(self) -> bool:
        """Whether a file is another one than when it was last looked at; that is said once."""
        seen, before = self._stamps(), self._seen
        self._seen = seen
        return seen != before

    def read(self) -> Reading:
        """All files, or none; nothing here changes. Raises AccessError."""
        seen = self._stamps()
        users, users_data = UsersFile(self._files[0]).read()
        table, roles_data = read_toml(self._files[1], "roles")
        try:
            roles = read_roles(table)
        except RightsError as error:
            raise AccessError(f"{self._files[1]}: {error}") from error
        by_token = {key: name for name, user in users.items() for key in user.tokens}
        by_certificate: dict[str, str] = {}
        for name, user in users.items():
            for one in user.certificates:
                if by_certificate.setdefault(one, name) != name:
                    raise AccessError(f"{self._files[0]}: {one} is a certificate of {name} and {by_certificate[one]}")
        digest = hashlib.sha256(hashlib.sha256(users_data).digest() + hashlib.sha256(roles_data).digest())
        web_tokens = None
        if self._web is not None:
            web_tokens, web_data = self._web.read()
            digest.update(web_data)
        return Reading(seen, users, roles, by_token, by_certificate, digest.hexdigest()[:12], web_tokens)

    def use(self, reading: Reading, now: float) -> None:
        """This is what holds from now on."""
        self._seen, self.users = reading.seen, reading.users
        if self.issuer is None:
            self.web_tokens = reading.web_tokens
        self.by_token, self.by_certificate = reading.by_token, reading.by_certificate
        known = {role for user in reading.users.values() for role in user.roles}
        self.unknown_roles = tuple(sorted(known - reading.roles.keys()))
        self._govern(now, reading.roles, reading.version)

    def keys_of(self, data: bytes) -> WebTokens:
        """What the issuer answered, read; nothing here changes. Raises AccessError."""
        assert self._web is not None
        return self._web.tokens_by(data)

    def use_keys(self, web_tokens: WebTokens | None, now: float) -> bool:
        """These keys were fetched, or none are good any more; whether the policy is another one."""
        assert self._web is not None
        before, self.web_tokens = self.policy.issuers, web_tokens or WebTokens(self._web, {})
        self._govern(now, self.policy.roles, self.policy.version)
        return self.policy.issuers != before

    def expire(self, now: float) -> bool:
        """Whether a token has ended since the policy was made, which is another one then."""
        if not self._ends or now < self._ends:
            return False
        self._govern(now, self.policy.roles, self.policy.version)
        return True

    def look(self, now: float) -> bool:
        """Do what there is to do, at once; whether the policy is another one. Raises AccessError."""
        if not self.is_stale():
            return self.expire(now)
        self.use(self.read(), now)
        return True

    def token_of(self, text: str, now: float) -> tuple[str, str] | None:
        """The user and the credential of a token; None when it is none, or over."""
        parts = split_token(text)
        user = None if parts is None else self.by_token.get(parts[0])
        if parts is None or user is None:
            return None
        token = self.users[user].tokens[parts[0]]
        is_good = token.hash == digest_of_token(parts[1]) and (not token.expires or token.expires > now)
        return (user, f"token:{parts[0]}") if is_good else None

    def certificate_of(self, proved: tuple[str, ...]) -> tuple[str, str] | None:
        """The user and the credential of a certificate that proves these names."""
        for name in proved:
            user = self.by_certificate.get(name)
            if user is not None:
                return user, f"certificate:{name}"
        return None

    def _stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_stamp(file) for file in self._files)

    def _govern(self, now: float, roles: Mapping[str, Role], version: str) -> None:
        members = {name: Member(tuple(user.roles), user.credentials(now)) for name, user in self.users.items()}
        issuers = frozenset() if self.web_tokens is None else self.web_tokens.credentials
        self.policy = Policy(members, roles, version, issuers)
        ends = [one.expires for user in self.users.values() for one in user.tokens.values() if one.expires > now]
        self._ends = min(ends, default=0.0)


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino

"""The file of users: TOML, which people may read and `headgate user` writes.

    [users.ann]
    password = "$argon2id$v=19$..."
    roles = ["trader"]
    certificates = ["email:ann@example.org"]

    [users.ann.tokens.k3xwq2ah]
    hash = "9f86d081884c7d65..."
    expires = 2027-01-01T00:00:00Z

What is kept of a secret does not give it back. The file is replaced as a whole, by one writer at a time, and only its
owner may read it.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import json
import os
import re
import secrets
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .limits import ACCESS_FILE_BYTES_MAX, TOKENS_PER_USER_MAX, USERS_MAX

__all__ = ["AccessError", "Token", "User", "UsersFile", "digest_of_token", "new_token", "read_toml", "split_token"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_TOKEN = re.compile(r"hg_([a-z2-7]{8})_([A-Za-z0-9_-]{43})")
_CERTIFICATE = re.compile(r"(dns|email|uri|cn):.{1,256}")
_ARGON = re.compile(r"\$argon2id\$v=19\$m=\d{1,7},t=\d{1,3},p=\d{1,2}\$[A-Za-z0-9+/]{11,64}\$[A-Za-z0-9+/]{16,128}")
_HASH = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[a-z2-7]{8}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


class AccessError(Exception):
    """A file of users or roles cannot be used; the text names it and says what to do."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a user: the SHA-256 of its secret part, and when it ends, in seconds since 1970 (0: never)."""

    hash: str
    expires: float = 0.0


@dataclass(slots=True)
class User:
    """One user. Without a password only tokens and certificates prove who it is."""

    password: str = ""
    roles: list[str] = field(default_factory=list)
    certificates: list[str] = field(default_factory=list)
    tokens: dict[str, Token] = field(default_factory=dict)

    @property
    def password_name(self) -> str:
        """The password as a credential: another one has another name."""
        return f"password:{hashlib.sha256(self.password.encode()).hexdigest()[:16]}"

    def credentials(self, now: float) -> frozenset[str]:
        """What proves who it is, each by a name, at that time."""
        names = [f"token:{one}" for one, token in self.tokens.items() if not token.expires or token.expires > now]
        names += [f"certificate:{one}" for one in self.certificates]
        return frozenset([*names, self.password_name] if self.password else names)


def new_token() -> tuple[str, str, str]:
    """A token, its id and the hash that is kept of it. 256 random bits need no slow hash."""
    number, secret = "".join(secrets.choice(_LETTERS) for _ in range(8)), secrets.token_urlsafe(32)
    return f"hg_{number}_{secret}", number, digest_of_token(secret)


def split_token(text: str) -> tuple[str, str] | None:
    """The id and the secret part; None for what is no token."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else (found[1], found[2])


def digest_of_token(secret: str) -> str:
    """What is kept of the secret part."""
    return hashlib.sha256(secret.encode()).hexdigest()


def read_toml(file: Path, what: str) -> tuple[dict[str, Any], bytes]:
    """A file and its bytes. Raises AccessError."""
    try:
        with file.open("rb") as stream:
            data = stream.read(ACCESS_FILE_BYTES_MAX + 1)
        if len(data) > ACCESS_FILE_BYTES_MAX:
            raise AccessError(f"{file} has more than {ACCESS_FILE_BYTES_MAX} bytes: that is no file of {what}")
        return tomllib.loads(data.decode()), data
    except OSError as error:
        advice = "make it with `headgate user add`" if what == "users" else "write one (RUNBOOK, Rights)"
        raise AccessError(f"cannot read the {what} {file}: {error.strerror}; {advice}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AccessError(f"{file} is not TOML: {error}") from error


class UsersFile:
    """Reads the file, and changes it as a whole."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> tuple[dict[str, User], bytes]:
        """All users, and the bytes that say so. Raises AccessError."""
        table, data = read_toml(self.file, "users")
        users = table.pop("users", {})
        if table or type(users) is not dict or len(users) > USERS_MAX:
            raise AccessError(f"{self.file} has tables [users.NAME], at most {USERS_MAX}, and nothing else")
        return {name: self._user(name, said) for name, said in users.items()}, data

    @contextmanager
    def changing(self) -> Iterator[dict[str, User]]:
        """The users, to be changed: they are written when the block ends well. Raises AccessError and OSError."""
        beside = self.file.with_name(f".{self.file.name}.lock")
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            users = self.read()[0] if self.file.exists() else {}
            yield users
            if len(users) > USERS_MAX:
                raise AccessError(f"there are at most {USERS_MAX} users")
            self._write(users)

    def _write(self, users: dict[str, User]) -> None:
        new = self.file.with_name(f".{self.file.name}.new")
        before = self.file.stat() if self.file.exists() else None
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(_text_of(users).encode())
            stream.flush()
            if before is not None:
                with suppress(PermissionError):  # the operator may write it; the broker's user has to read it
                    os.fchown(stream.fileno(), before.st_uid, before.st_gid)
                os.fchmod(stream.fileno(), before.st_mode & 0o777)
            os.fsync(stream.fileno())
        new.replace(self.file)

    def check_name(self, name: str) -> str:
        """The name of a user. Raises AccessError."""
        if not _NAME.fullmatch(name):
            raise AccessError(f"{name!r} is no name of a user: letters, digits and . _ @ -, at most 64, no sign first")
        return name

    def check_certificate(self, text: str) -> str:
        """What a certificate proves. Raises AccessError."""
        if not _CERTIFICATE.fullmatch(text):
            text = f"{text!r}: write what stands in the certificate, as dns:NAME, email:NAME, uri:NAME or cn:NAME"
            raise AccessError(text)
        return text

    def _user(self, name: str, said: Any) -> User:
        where = f"{self.file}, user {name!r}"
        self.check_name(name)
        if type(said) is not dict or set(said) - {"password", "roles", "certificates", "tokens"}:
            raise AccessError(f"{where}: there are password, roles, certificates and tokens, and nothing else")
        password, tokens = said.get("password", ""), said.get("tokens", {})
        if type(password) is not str or (password and not _ARGON.fullmatch(password)):
            raise AccessError(f"{where}: its password is no argon2id: `headgate user passwd {name}` writes one")
        roles, certificates = (said.get(key, []) for key in ("roles", "certificates"))
        for rows in (roles, certificates):
            if type(rows) is not list or not all(type(one) is str for one in rows):
                raise AccessError(f"{where}: roles and certificates are lists of texts")
        for one in certificates:
            self.check_certificate(one)
        if type(tokens) is not dict or len(tokens) > TOKENS_PER_USER_MAX:
            raise AccessError(f"{where}: tokens are tables, at most {TOKENS_PER_USER_MAX}")
        return User(password, roles, certificates, {key: _token(key, one, where) for key, one in tokens.items()})


def _token(key: str, said: Any, where: str) -> Token:
    known = type(said) is dict and not set(said) - {"hash", "expires"} and _ID.fullmatch(key)
    if not known or not _HASH.fullmatch(str(said.get("hash"))):
        raise AccessError(f"{where}: token {key!r} has a hash, and expires: `headgate token new` writes one")
    expires = said.get("expires")
    if expires is None:
        return Token(said["hash"])
    if type(expires) is not datetime.datetime or expires.tzinfo is None:
        raise AccessError(f"{where}: token {key!r} expires at a time with its zone, like 2027-01-01T00:00:00Z")
    return Token(said["hash"], expires.timestamp())


def _text_of(users: dict[str, User]) -> str:
    lines = ["# Who may speak to the brokers. `headgate user` and `headgate token` write this file; brokers watch it."]
    for name, user in sorted(users.items()):
        lines += ["", f"[users.{json.dumps(name)}]"]
        if user.password:
            lines.append(f"password = {json.dumps(user.password)}")
        lines.append(f"roles = {json.dumps(user.roles)}")
        if user.certificates:
            lines.append(f"certificates = {json.dumps(user.certificates)}")
        for key, token in sorted(user.tokens.items()):
            lines += [f"[users.{json.dumps(name)}.tokens.{key}]", f'hash = "{token.hash}"']
            if token.expires:
                lines.append(f"expires = {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(token.expires))}")
    return "\n".join(lines) + "\n"

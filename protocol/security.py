"""TLS for clients, and who they are: whom a client trusts, what it shows, and the SSLContext that is made of that.

An address that begins with `tls://` is spoken to over TLS, and so is any address once a file is named: `ca` says whose
certificates are trusted (else the system's), `cert` and `key` what this client shows to a broker that asks for one. The
name or number of the address has to be in the broker's certificate. `credentials_of` makes what HELLO says.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from os import PathLike, fspath
from ssl import SSLContext
from typing import NamedTuple, TypeAlias

from .errors import LocalError
from .limits import CREDENTIALS_LENGTH_MAX

__all__ = [
    "PLAIN",
    "SCHEME",
    "File",
    "SSLContext",
    "Tls",
    "TlsError",
    "Who",
    "credentials_of",
    "load_authority",
    "load_pair",
    "named_in",
    "reason_of_tls",
]

File: TypeAlias = str | PathLike[str]

SCHEME = "tls://"


class TlsError(ValueError):
    """A certificate, a key or an authority cannot be used; the text names the file and says why."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of one client, "" where it has none."""

    ca: str = ""
    cert: str = ""
    key: str = ""

    @classmethod
    def of(cls, ca: File | None, cert: File | None, key: File | None) -> Tls:
        """From what an application gave. Raises LocalError."""
        files = [fspath(one) if one else "" for one in (ca, cert, key)]
        if bool(files[1]) != bool(files[2]):
            raise LocalError("a certificate needs its key and a key its certificate: give tls_cert and tls_key")
        return cls(*files)

    def __bool__(self) -> bool:
        return any((self.ca, self.cert, self.key))

    def context(self) -> SSLContext:
        """What to dial brokers with. Raises LocalError."""
        context = ssl.create_default_context()
        try:
            if self.ca:
                context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                load_authority(context, self.ca)
            if self.cert:
                load_pair(context, self.cert, self.key)
        except TlsError as error:
            raise LocalError(str(error)) from error
        return context


PLAIN = Tls()


class Who(NamedTuple):
    """Who a client is, as `connect` takes it; "" where nothing is given."""

    user: str = ""
    password: str = ""
    token: str = ""

    def __repr__(self) -> str:
        return f"Who(user={self.user!r})"


def credentials_of(user: str | None, password: str | None, token: str | None) -> str:
    """What HELLO says of who this is; empty where nothing is given. Raises LocalError."""
    given = (user or "", password or "", token or "")
    if not all(isinstance(one, str) for one in given):
        raise LocalError("user, password and token are strings")
    user, password, token = given
    if token and (user or password):
        raise LocalError("a token says who this is: give a token, or user and password")
    if bool(user) != bool(password):
        raise LocalError("a user has a password and a password its user: give both, or a token")
    if ":" in user:
        raise LocalError("a user's name has no colon")
    said = f"token {token}" if token else f"password {user}:{password}" if user else ""
    if len(said.encode(errors="replace")) > CREDENTIALS_LENGTH_MAX:
        raise LocalError(f"credentials have at most {CREDENTIALS_LENGTH_MAX} bytes")
    return said


def named_in(credentials: str) -> Who:
    """What `credentials_of` was given, for another connection of the same client."""
    kind, _, said = credentials.partition(" ")
    if kind == "token":
        return Who(token=said)
    user, _, password = said.partition(":")
    return Who(user, password) if kind == "password" else Who()


def load_pair(context: SSLContext, cert: str, key: str) -> None:
    """Show this certificate from now on. Raises TlsError."""
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise TlsError(f"the certificate {cert} with the key {key} cannot be used: {_words(error)}") from error


def load_authority(context: SSLContext, ca: str) -> None:
    """Trust who is signed by these. Raises TlsError."""
    try:
        context.load_verify_locations(ca)
    except (OSError, ValueError) as error:
        raise TlsError(f"the authority {ca} cannot be used: {_words(error)}") from error


def reason_of_tls(error: Exception) -> str | None:
    """Why there is no connection over TLS; None for what has another reason."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message} (is --tls-ca the authority that signed it?)"
    if isinstance(error, ssl.SSLError):
        return f"no TLS connection: {error.reason or error} (does that broker have --tls-cert?)"
    return None


def _no_password() -> str:
    """Instead of a question at the terminal."""
    raise ValueError("the key is encrypted: write it without a password, readable for its owner alone")


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return "the key is not that of the certificate"
        return f"no PEM file, or a damaged one ({error.reason or error})"
    return getattr(error, "strerror", None) or str(error)

"""TLS for clients: whom a client trusts, what it shows, and the SSLContext that is made of that.

An address that begins with `tls://` is spoken to over TLS, and so is any address once a file is named: `ca` says whose
certificates are trusted (else the system's), `cert` and `key` what this client shows to a broker that asks for one. The
name or number of the address has to be in the broker's certificate.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from os import PathLike, fspath
from ssl import SSLContext
from typing import TypeAlias

from .errors import LocalError

__all__ = ["PLAIN", "SCHEME", "File", "SSLContext", "Tls", "TlsError", "load_authority", "load_pair", "reason_of_tls"]

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

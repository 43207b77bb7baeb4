"""TLS of the three ports: certificates of files, read again when the files change.

A listener has one SSLContext for as long as it listens. A new certificate is put into that context, so handshakes from
then on show it and no connection is cut; an authority that is new is trusted beside the former ones, and one that is
gone is forgotten at the next start.

Why a handshake failed is known to the side that found out, and to nobody else: loops end such a connection without the
alert and without a word to us. So the object that shakes hands (`SSLContext.sslobject_class`) says so itself.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headgate.protocol.security import TlsError, load_authority, load_pair

__all__ = ["Certificates", "names_of", "proved_by"]

_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2: forward secrecy, and ciphers that authenticate what they encrypt. TLS 1.3 has no others."""

_KINDS = {"DNS": "dns", "email": "email", "URI": "uri"}
_ASKED = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Certificates:
    """The pair and the authority of one port. Raises TlsError when made of files that cannot be used."""

    def __init__(self, cert: Path, key: Path, ca: Path | None, asked: str, version: str, dials: bool = False) -> None:
        self.cert = cert
        self._key, self._ca = key, ca
        self.failures = 0
        self.when_failed: Callable[[str], None] = lambda reason: None
        """Told why a handshake failed; the server sets it."""
        self.contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)]
        self.contexts[0].verify_mode = _ASKED[asked]
        self.contexts[0].sslobject_class = _observed(self._failed)
        if dials:
            # Brokers are called by their names, wherever they are reached: the Node compares the names.
            self.contexts.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            self.contexts[1].check_hostname = False
        for context in self.contexts:
            context.minimum_version = _VERSIONS[version]
            context.set_ciphers(_SUITES)
        self._seen: tuple[Any, ...] = ()
        self.expires = 0.0
        self.load()

    @property
    def listening(self) -> ssl.SSLContext:
        """For what is accepted."""
        return self.contexts[0]

    @property
    def dialling(self) -> ssl.SSLContext:
        """For what is dialled."""
        return self.contexts[1]

    def load(self) -> None:
        """Use what the files have now, for handshakes from now on. Raises TlsError, and goes on as before then."""
        self._seen = self._look()
        # First where nobody is shown it: half a change, a new certificate with the old key, must not be used.
        trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_pair(trial, str(self.cert), str(self._key))
        expires = _expiry(self.cert)
        if self._ca is not None:
            load_authority(trial, str(self._ca))
        for context in self.contexts:
            load_pair(context, str(self.cert), str(self._key))
            if self._ca is not None:
                load_authority(context, str(self._ca))
        self.expires = expires

    def _failed(self, reason: str) -> None:
        self.failures += 1
        self.when_failed(reason)

    def changed(self) -> bool:
        """Whether the files are others than when they were last read."""
        return self._look() != self._seen

    def _look(self) -> tuple[Any, ...]:
        return tuple(_stamp(one) for one in (self.cert, self._key, self._ca) if one is not None)


def _observed(failed: Callable[[str], None]) -> type[ssl.SSLObject]:
    """What shakes hands, and tells when and why that fails."""

    class Observed(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLCertVerificationError as error:
                failed(error.verify_message)
                raise
            except ssl.SSLError as error:
                failed((error.reason or "no reason given").replace("_", " ").lower())
                raise

    return Observed


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _expiry(cert: Path) -> float:
    from cryptography import x509  # brokers without TLS start without it

    try:
        return x509.load_pem_x509_certificate(cert.read_bytes()).not_valid_after_utc.timestamp()
    except (OSError, ValueError) as error:
        raise TlsError(f"the certificate {cert} cannot be read: {error}") from error


def names_of(certificate: dict[str, Any] | None) -> tuple[str, ...]:
    """The DNS names in what `getpeercert` tells of the other side."""
    return tuple(name for kind, name in (certificate or {}).get("subjectAltName", ()) if kind == "DNS")


def proved_by(certificate: dict[str, Any] | None) -> tuple[str, ...]:
    """What a certificate says of whose it is, as a file of users writes it; alternative names come first."""
    found = certificate or {}
    names = [(_KINDS.get(kind, ""), value) for kind, value in found.get("subjectAltName", ())]
    names += [("cn", value) for part in found.get("subject", ()) for kind, value in part if kind == "commonName"]
    return tuple(f"{kind}:{value}" for kind, value in names if kind and type(value) is str and "\0" not in value)

"""`headgate cert init`: an authority and a certificate for each broker, in one folder, for those who have none yet.

    DIR/ca.pem          whom everybody trusts; ca.key signs, and belongs on no broker
    DIR/NAME.pem .key   of the broker of that --name, for clients (--tls-cert) and brokers (--peer-tls-cert)
    DIR/client.pem .key for clients of brokers that ask for a certificate

The authority of a folder is kept when the command is given again: brokers are added, and those that are named are
given new certificates.
"""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..exits import DONE, UsageError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

__all__ = ["add_arguments", "run"]

_AUTHORITY_DAYS = 3650
_DAYS = 825
"""What systems accept of a certificate that lasts long."""

_CLIENT = "client"
_TAKEN = ("ca", _CLIENT, "localhost")
"""Names that no broker may have: their files, or what every certificate is good for, are others'."""

_HERE = ("localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `cert`."""
    parser.add_argument("action", choices=("init",), help="init: make an authority, and certificates of brokers")
    parser.add_argument("folder", metavar="DIR", type=Path, help="where the files are, or will be")
    parser.add_argument("--brokers", required=True, metavar="NAMES", help="the --name of each broker, with commas")
    parser.add_argument(
        "--hosts",
        default="",
        metavar="NAMES",
        help="more names and addresses by which clients reach them, with commas (localhost is in every certificate)",
    )
    parser.add_argument("--days", type=int, default=_DAYS, metavar="N", help="how long they last (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Make what is missing, and say what was made."""
    brokers, hosts = _split(arguments.brokers), _split(arguments.hosts)
    for name in (*brokers, *hosts):
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} is no name: it has letters, digits and . _ : - only")
    if not brokers or any(name in _TAKEN for name in brokers):
        raise UsageError(f"--brokers names each broker as its --name does, and none of {', '.join(_TAKEN)}")
    if not 1 <= arguments.days <= _AUTHORITY_DAYS:
        raise UsageError(f"--days {arguments.days}: from 1 to {_AUTHORITY_DAYS}")
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    authority, signer = _authority(folder)
    # A broker's name proves who it is to the others, so it stands in its own certificate alone.
    shared = [host for host in hosts if host not in brokers and not (folder / f"{host}.pem").exists()]
    for name in brokers:
        _write_pair(folder, name, (name, *shared, *_HERE), authority, signer, arguments.days)
    if not (folder / f"{_CLIENT}.pem").exists():
        _write_pair(folder, _CLIENT, (), authority, signer, arguments.days)
    pair = folder / brokers[0]
    ca = folder / "ca.pem"
    print(f"made in {folder}: ca.pem, {_CLIENT}.pem and {', '.join(f'{name}.pem' for name in brokers)}, and their keys")
    print(
        f"next: headgate serve --name {brokers[0]} --tls-cert {pair}.pem --tls-key {pair}.key "
        f"--peer-tls-cert {pair}.pem --peer-tls-key {pair}.key --peer-tls-ca {ca}"
    )
    print(f"and:  headgate status --server tls://127.0.0.1:7400 --tls-ca {ca}")
    print("take ca.key away to where no broker runs: who has it can make certificates of any name")
    return DONE


def _split(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _authority(folder: Path) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    """The one of the folder, or a new one. Raises UsageError."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    cert, key = folder / "ca.pem", folder / "ca.key"
    if not cert.exists():
        return _write_pair(folder, "ca", None, None, None, _AUTHORITY_DAYS)
    try:
        signer = load_pem_private_key(key.read_bytes(), None)
        found = x509.load_pem_x509_certificate(cert.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(f"{cert} is there, and its key {key} is not: bring it back, or take another folder") from error
    except (ValueError, TypeError) as error:
        raise UsageError(f"{cert} and {key} cannot be read: {error}") from error
    if not isinstance(signer, EllipticCurvePrivateKey) or signer.public_key() != found.public_key():
        raise UsageError(f"{key} is not the key of {cert}, or was not made by this command: take another folder")
    return found, signer


def _write_pair(
    folder: Path,
    name: str,
    proves: tuple[str, ...] | None,
    authority: x509.Certificate | None,
    signer: EllipticCurvePrivateKey | None,
    days: int,
) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    """A certificate that proves these names, signed; or, with None, one that signs others."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    title = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Headgate authority" if proves is None else name[:64])])
    signs = proves is None
    builder = (
        x509.CertificateBuilder()
        .subject_name(title)
        .issuer_name(title if authority is None else authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # a clock may be behind
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=signs, path_length=0 if signs else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key((signer or key).public_key()), critical=False)
        .add_extension(_usage(signs=signs), critical=True)
    )
    if proves is not None:
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if proves else [])]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    if proves:
        names = x509.SubjectAlternativeName([_general(one) for one in proves])
        builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(signer or key, SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write(folder / f"{name}.key", secret, 0o600)
    _write(folder / f"{name}.pem", certificate.public_bytes(Encoding.PEM), 0o644)
    return certificate, key


def _usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(file: Path, data: bytes, mode: int) -> None:
    """Whole or not at all: a broker may read it just now."""
    beside = file.with_name(f".{file.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
    beside.replace(file)

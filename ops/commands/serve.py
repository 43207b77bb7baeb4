"""`headgate serve`: a broker with the settings of the flags, the environment and the TOML file, in that order."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from ..exits import USAGE

__all__ = ["FLAGS", "add_arguments", "run"]

FLAGS: dict[str, tuple[str, str]] = {
    "listen": ("H:P", "where clients connect (default 127.0.0.1:7400)"),
    "peer_listen": ("H:P", "where brokers connect (default 127.0.0.1:7401)"),
    "admin": ("H:P", "metrics and health (default 127.0.0.1:7402)"),
    "data": ("DIR", "where the broker keeps what must survive (default ./headgate-data)"),
    "advertise": ("H:P", "what other brokers are told to dial (default: where this one listens)"),
    "join": ("H:P", "a broker of the cluster to join, or several"),
    "cluster": ("NAME", "the cluster that it is of (default headgate); others never link to it"),
    "name": ("NAME", "the broker's name (default: host and port)"),
    "log_level": ("LEVEL", "debug, info, warning or error (default info)"),
    "log_format": ("FORM", "json, console, or auto: console at a terminal (default)"),
    "loop": ("LOOP", "asyncio, uvloop, or auto: uvloop where it is installed (default)"),
    "connections_max": ("N", "client sockets at once"),
    "outbox_bytes": ("BYTES", "what may wait for one slow subscriber"),
    "outbox_bytes_total": ("BYTES", "what may wait for all of them"),
    "slow_consumer": ("POLICY", "over those bounds: drop the oldest events, or disconnect"),
    "replicas": ("N", "brokers that hold a copy of each key beside its owner (default 2)"),
    "log_copies": ("N", "disks that have a stored batch before it is acknowledged (default 2)"),
    "grace_seconds": ("SECONDS", "how long a session outlives its connection"),
    "tls_cert": ("FILE", "certificate for clients and the admin port, which then speak TLS"),
    "tls_key": ("FILE", "its key"),
    "tls_ca": ("FILE", "whose client certificates are let in"),
    "tls_client_certs": ("WHICH", "ask clients for certificates: none (default), optional or required"),
    "tls_version": ("VERSION", "the oldest that is spoken: 1.3 (default) or 1.2"),
    "peer_tls_cert": ("FILE", "certificate for other brokers, whose name is the broker's; then all need one"),
    "peer_tls_key": ("FILE", "its key"),
    "peer_tls_ca": ("FILE", "whose brokers are let in"),
    "users": ("FILE", "who may speak to this broker; `headgate user` and `headgate token` write it"),
    "roles": ("FILE", "what each role may do, in TOML"),
    "jwt_keys": (
        "FILE",
        "an issuer's keys of web tokens (JWT): a JWK set, or its https:// address; for --token of its users",
    ),
    "jwt_issuer": ("URL", "that issuer: what `iss` of a token is"),
    "jwt_audience": ("NAME", "for whom its tokens have to be: `aud`"),
    "jwt_algorithms": ("NAMES", "how they may be signed (default RS256, PS256, ES256, EdDSA)"),
    "jwt_roles_claim": ("NAME", "which claim has the names of roles (default roles; a path may be, like a.b)"),
    "insecure": ("", "listen for more than this machine without TLS and names"),
    "drain_seconds": ("SECONDS", "how long a stop waits for clients to take what is theirs"),
}
"""Setting -> what its value is called, and its help. The environment has each as HEADGATE_…, the file by its name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `serve`."""
    for setting, (metavar, text) in FLAGS.items():
        flag = f"--{setting.replace('_', '-')}"
        if setting == "join":
            parser.add_argument(flag, dest=setting, metavar=metavar, help=text, action="extend", nargs="+")
        elif not metavar:
            parser.add_argument(flag, dest=setting, help=text, action="store_const", const=True)
        else:
            parser.add_argument(flag, dest=setting, metavar=metavar, help=text)
    parser.add_argument(
        "--config", metavar="FILE", default=argparse.SUPPRESS, help="a TOML file of settings (HEADGATE_CONFIG)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    from headgate.broker.daemon import Settings, SettingsError, load_settings
    from headgate.broker.daemon import run as serve

    flags: dict[str, Any] = {setting: getattr(arguments, setting) for setting in FLAGS}
    file = getattr(arguments, "config", None) or os.environ.get("HEADGATE_CONFIG")

    def read() -> Settings:
        return load_settings(flags, Path(file) if file else None)

    try:
        settings = read()
    except SettingsError as error:
        print(f"headgate serve: {error}", file=sys.stderr)
        return USAGE
    return serve(settings, read)

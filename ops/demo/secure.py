"""`demo --secure`: an authority, certificates for the brokers, two users, and a role with a condition.

The feed's user publishes and administers; the desk's may read quotes of large volume, whatever it asks for. The proof
then expects of each subscription its own condition AND the right's, which no subscriber says.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from ..commands import cert
from .audience import Wish
from .orders import DURABLE, STREAM

__all__ = ["DESK_WHERE", "OPEN", "Realm", "made_realm", "owed"]

DESK_WHERE = "volume > 3000"

_ROLES = f"""
[roles.feed]
publish = [{{ pattern = "quotes" }}, {{ pattern = "{STREAM}" }}]
admin = true

[roles.desk]
subscribe = [{{ pattern = "quotes", where = "{DESK_WHERE}" }}, {{ pattern = "{STREAM}" }}]
durable = ["{DURABLE}"]
"""


@dataclass(frozen=True, slots=True)
class Realm:
    """What brokers and clients are started with; nothing where nobody is asked."""

    folder: Path | None = None
    tokens: dict[str, str] = field(default_factory=dict, repr=False)

    def of_broker(self, name: str) -> dict[str, str]:
        """Variables of a broker's environment."""
        if self.folder is None:
            return {}
        pair = {"CERT": str(self.folder / f"{name}.pem"), "KEY": str(self.folder / f"{name}.key")}
        tls = {f"HEADGATE_{kind}TLS_{part}": file for kind in ("", "PEER_") for part, file in pair.items()}
        files = {"USERS": self.folder / "users.toml", "ROLES": self.folder / "roles.toml"}
        return {
            **tls,
            "HEADGATE_PEER_TLS_CA": self._ca,
            **{f"HEADGATE_{key}": str(file) for key, file in files.items()},
        }

    def of_client(self, user: str) -> dict[str, Any]:
        """Arguments of `connect`."""
        return {} if self.folder is None else {"tls_ca": self._ca, "token": self.tokens[user]}

    def of_command(self, user: str) -> dict[str, str]:
        """Variables of a command's environment."""
        return {} if self.folder is None else {"HEADGATE_TLS_CA": self._ca, "HEADGATE_TOKEN": self.tokens[user]}

    @property
    def _ca(self) -> str:
        return str(self.folder and self.folder / "ca.pem")


OPEN = Realm()


def made_realm(folder: Path, brokers: Sequence[str]) -> Realm:
    """All that there has to be, in this folder."""
    from headgate.broker.daemon.access import Token, User, UsersFile, new_token

    arguments = argparse.Namespace(action="init", folder=folder, brokers=",".join(brokers), hosts="", days=1)
    with redirect_stdout(StringIO()):
        cert.run(arguments)
    (folder / "roles.toml").write_text(_ROLES, encoding="utf-8")
    tokens = {}
    with UsersFile(folder / "users.toml").changing() as users:
        for name in ("feed", "desk"):
            tokens[name], number, digest = new_token()
            users[name] = User(roles=[name], tokens={number: Token(digest)})
    return Realm(folder, tokens)


def owed(wish: Wish, secure: bool) -> Wish:
    """What a subscriber is owed: what it asked for, as far as it may have it."""
    if not secure:
        return wish
    where = f"({wish.where}) AND {DESK_WHERE}" if wish.where else DESK_WHERE
    return Wish(wish.name, wish.pattern, where)

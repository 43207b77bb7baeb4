"""What the daemon can be told, by flag, environment (HEADGATE_…) or TOML file, in that order of precedence.

The only file that knows pydantic. An unknown key is an error, not a shrug: a misspelt limit would be no limit.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from headgate.broker.core.config import CLUSTER_DEFAULT
from headgate.broker.core.limits import (
    LOG_COPIES_DEFAULT,
    OUTBOX_BYTES_DEFAULT,
    OUTBOX_BYTES_TOTAL_DEFAULT,
    SESSION_GRACE_SECONDS,
)

from .limits import CONNECTIONS_MAX_DEFAULT, DRAIN_SECONDS_DEFAULT

__all__ = ["Settings", "SettingsError", "load_settings", "split_address"]

_ANYWHERE = ("0.0.0.0", "::")
_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[^:\[\]\s]*)):(?P<port>\d{1,5})")


class SettingsError(Exception):
    """A setting is wrong; the text names it and says what it takes."""


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`. Raises ValueError that says how to write it."""
    found = _ADDRESS.fullmatch(text.strip())
    if not found or int(found["port"]) > 65_535:
        raise ValueError(f"{text!r} is not an address: write host:port, like 127.0.0.1:7400 or [::1]:7400")
    return found["six"] or found["host"] or "0.0.0.0", int(found["port"])


def _reachable(listening: str, host: str) -> str:
    """The same address, with a host that others can reach for `everywhere`."""
    own, port = split_address(listening)
    return f"{host}:{port}" if own in _ANYWHERE else listening


class Settings(BaseSettings):
    """Every setting with its default; RUNBOOK.md explains when to change which."""

    model_config = SettingsConfigDict(env_prefix="HEADGATE_", extra="forbid", frozen=True)

    listen: str = "127.0.0.1:7400"
    peer_listen: str = "127.0.0.1:7401"
    advertise: str = ""
    admin: str = "127.0.0.1:7402"
    data: Path = Path("headgate-data")
    join: Annotated[tuple[str, ...], NoDecode] = ()
    cluster: str = Field(default=CLUSTER_DEFAULT, min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:-]*$")
    name: str = Field(default="", max_length=128, pattern=r"^[A-Za-z0-9._:-]*$")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "console"] = "auto"
    loop: Literal["auto", "asyncio", "uvloop"] = "auto"
    connections_max: int = Field(default=CONNECTIONS_MAX_DEFAULT, ge=1, le=1_000_000)
    outbox_bytes: int = Field(default=OUTBOX_BYTES_DEFAULT, ge=64 * 1024)
    outbox_bytes_total: int = Field(default=OUTBOX_BYTES_TOTAL_DEFAULT, ge=64 * 1024)
    slow_consumer: Literal["drop", "disconnect"] = "drop"
    grace_seconds: float = Field(default=SESSION_GRACE_SECONDS, ge=0, le=3600)
    log_copies: int = Field(default=LOG_COPIES_DEFAULT, ge=1, le=8)
    drain_seconds: float = Field(default=DRAIN_SECONDS_DEFAULT, ge=0, le=3600)

    @field_validator("listen", "peer_listen", "admin")
    @classmethod
    def _address(cls, value: str) -> str:
        split_address(value)
        return value

    @field_validator("advertise")
    @classmethod
    def _advertised(cls, value: str) -> str:
        if value and split_address(value)[0] in _ANYWHERE:
            raise ValueError(f"{value!r} is where to listen, not where to be reached: write a name and a port")
        return value

    @field_validator("loop")
    @classmethod
    def _loop(cls, value: str) -> str:
        if value == "uvloop" and importlib.util.find_spec("uvloop") is None:
            raise ValueError("uvloop is not installed here: install it, or say auto or asyncio")
        return value

    @field_validator("join", mode="before")
    @classmethod
    def _addresses(cls, value: Any) -> Any:
        given = value.replace(",", " ").split() if isinstance(value, str) else value
        if not isinstance(given, list | tuple) or not all(isinstance(part, str) for part in given):
            raise ValueError(f"{value!r} is no list of addresses: write them like 'one:7401, two:7401'")
        # A flag that is given again and again may have several each time; an empty one is a mistake to be told.
        parts = [part for text in given for part in text.replace(",", " ").split() or [text]]
        for part in parts:
            split_address(part)
        return tuple(parts)

    @property
    def broker_name(self) -> str:
        """The name given, or host and port: two brokers of one machine must differ."""
        return self.name or f"{socket.gethostname()}:{split_address(self.listen)[1]}"

    @property
    def needs_peers(self) -> bool:
        """Somebody asked for a cluster, or for that address: without the listener the broker must not start."""
        return bool(self.join) or "peer_listen" in self.model_fields_set

    def peer_address(self, listening: str) -> str:
        """What other brokers are told, while the peer listener has this address."""
        return self.advertise or _reachable(listening, socket.gethostname())

    def client_address(self, listening: str) -> str:
        """What is told about where clients connect."""
        host = split_address(self.advertise)[0] if self.advertise else socket.gethostname()
        return _reachable(listening, host)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then the environment; the file is merged below them by `load_settings`."""
        return init_settings, env_settings


def load_settings(flags: dict[str, Any], file: Path | None = None) -> Settings:
    """Settings from flags (None: not given), environment and file (else HEADGATE_CONFIG). Raises SettingsError."""
    if file is None and os.environ.get("HEADGATE_CONFIG"):
        file = Path(os.environ["HEADGATE_CONFIG"])
    given = {name: value for name, value in flags.items() if value is not None}
    if file is not None:
        # pydantic takes a variable in either case, so the file must give way to both.
        environment = {name.upper() for name in os.environ}
        for name, value in _read(file).items():
            if name not in given and f"HEADGATE_{name}".upper() not in environment:
                given[name] = value
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from error


def _read(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            table = tomllib.load(stream)
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not TOML: {error}") from error
    table.pop("server", None)  # the clients' key: one file may serve both
    for name in table:
        if name not in Settings.model_fields:
            known = ", ".join(sorted(Settings.model_fields))
            raise SettingsError(f"{file}: unknown setting {name!r}; there are {known}")
    return table


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"]) or "settings"
        lines.append(f"{name}: {problem['msg'].removeprefix('Value error, ')}")
    return "; ".join(lines)

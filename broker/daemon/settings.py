"""What the daemon can be told, by flag, environment (HEADGATE_…) or TOML file, in that order of precedence.

The only file that knows pydantic. An unknown key of the file and an unknown HEADGATE_… name are errors, not a shrug: a
misspelt limit would be no limit. Every error is in words of ours and says where the value came from.
"""

from __future__ import annotations

import difflib
import importlib.util
import ipaddress
import os
import re
import socket
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from headgate.broker.core.config import CLUSTER_DEFAULT
from headgate.broker.core.limits import (
    LOG_COPIES_DEFAULT,
    OUTBOX_BYTES_DEFAULT,
    OUTBOX_BYTES_TOTAL_DEFAULT,
    REPLICAS_DEFAULT,
    REPLICAS_MAX,
    SESSION_GRACE_SECONDS,
)

from .access import ALGORITHMS, ALGORITHMS_DEFAULT, keys_address
from .limits import CONNECTIONS_MAX_DEFAULT, DRAIN_SECONDS_DEFAULT

__all__ = ["RELOADABLE", "Settings", "SettingsError", "load_settings", "split_address"]

_ANYWHERE = ("0.0.0.0", "::")
_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[^:\[\]\s]*)):(?P<port>\d{1,5})")


_PREFIX = "HEADGATE_"
_OF_CLIENTS = ("CONFIG", "SERVER", "WAIT", "PURE", "USER", "PASSWORD", "TOKEN")
"""HEADGATE_… names that are no settings of a broker, and may stand beside them."""

_OF_KUBERNETES = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP)\w*)?)")
"""What Kubernetes and `docker --link` set for a service that is called headgate, whether it is wanted or not."""

_LIKENESS_MIN = 0.6
"""How alike a misspelt name and a known one are, at the least, for the one to be offered for the other."""

RELOADABLE = ("drain_seconds", "log_level")
"""What can change while the broker runs; everything else waits for the next start."""


class SettingsError(Exception):
    """A setting is wrong; the text names it and says what it takes."""


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`. Raises ValueError that says how to write it."""
    found = _ADDRESS.fullmatch(text.strip())
    if not found or int(found["port"]) > 65_535:
        raise ValueError(f"{text!r} is not an address: write host:port, like 127.0.0.1:7400 or [::1]:7400")
    return found["six"] or found["host"] or "0.0.0.0", int(found["port"])


def _is_open(address: str) -> bool:
    """Whether others than this machine may reach it."""
    host = split_address(address)[0]
    try:
        return not ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host != "localhost"


def _reachable(listening: str, host: str) -> str:
    """The same address, with a host that others can reach for `everywhere`."""
    own, port = split_address(listening)
    return f"{host}:{port}" if own in _ANYWHERE else listening


class Settings(BaseSettings):
    """Every setting with its default; RUNBOOK.md explains when to change which."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="forbid", frozen=True)

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
    replicas: int = Field(default=REPLICAS_DEFAULT, ge=0, le=REPLICAS_MAX)
    log_copies: int = Field(default=LOG_COPIES_DEFAULT, ge=1, le=8)
    drain_seconds: float = Field(default=DRAIN_SECONDS_DEFAULT, ge=0, le=3600)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None
    tls_client_certs: Literal["none", "optional", "required"] = "none"
    tls_version: Literal["1.2", "1.3"] = "1.3"
    peer_tls_cert: Path | None = None
    peer_tls_key: Path | None = None
    peer_tls_ca: Path | None = None
    users: Path | None = None
    roles: Path | None = None
    jwt_keys: Path | str | None = None
    jwt_issuer: str = Field(default="", max_length=1024)
    jwt_audience: str = Field(default="", max_length=1024)
    jwt_algorithms: Annotated[tuple[str, ...], NoDecode] = ALGORITHMS_DEFAULT
    jwt_roles_claim: str = Field(default="roles", min_length=1, max_length=256)
    insecure: bool = False

    @field_validator("listen", "peer_listen", "admin")
    @classmethod
    def _address(cls, value: str) -> str:
        split_address(value)
        return value

    @field_validator("data", mode="before")
    @classmethod
    def _folder(cls, value: Any) -> Any:
        if not str(value).strip():  # a variable of the caller's that was empty; pydantic would take it for `.`
            raise ValueError("the name of the folder is empty: name one, or leave this out for ./headgate-data")
        return value

    @field_validator("advertise")
    @classmethod
    def _advertised(cls, value: str) -> str:
        if value and split_address(value)[0] in _ANYWHERE:
            raise ValueError(f"{value!r} is where to listen, not where to be reached: write a name and a port")
        return value

    @field_validator(
        *(
            "tls_cert",
            "tls_key",
            "tls_ca",
            "peer_tls_cert",
            "peer_tls_key",
            "peer_tls_ca",
            "users",
            "roles",
        ),
        mode="before",
    )
    @classmethod
    def _file(cls, value: Any) -> Any:
        return value if value is None or str(value).strip() else None

    @field_validator("jwt_keys", mode="before")
    @classmethod
    def _keys(cls, value: Any) -> Any:
        if not isinstance(value, str) or not value.strip():
            return value or None
        return keys_address(value) if "://" in value else Path(value)

    @model_validator(mode="after")
    def _whole(self) -> Settings:
        """Files of TLS that need each other."""
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ValueError("a certificate needs its key: give --tls-cert and --tls-key, or neither")
        if self.tls_client_certs != "none" and not (self.tls_cert and self.tls_ca):
            raise ValueError("--tls-client-certs needs --tls-ca, whose clients are let in, and --tls-cert")
        peers = (self.peer_tls_cert, self.peer_tls_key, self.peer_tls_ca)
        if any(peers) and not all(peers):
            raise ValueError(
                "brokers show each other certificates: give --peer-tls-cert, --peer-tls-key, --peer-tls-ca"
            )
        if all(peers) and not self.name:
            raise ValueError("with --peer-tls-cert a broker needs its --name: that is what its certificate proves")
        if bool(self.users) != bool(self.roles):
            raise ValueError("users have roles, and roles are of users: give --users and --roles, or neither")
        web = (self.jwt_keys, self.jwt_issuer, self.jwt_audience)
        if any(web) and not all(web):
            raise ValueError("a web token is of an issuer, for us: give --jwt-keys, --jwt-issuer and --jwt-audience")
        if self.jwt_keys and not self.users:
            raise ValueError("web tokens name roles: --jwt-keys needs --roles, and --users, which may be an empty file")
        for setting, missing in self._open_doors():
            raise ValueError(
                f"--{setting} {getattr(self, setting.replace('-', '_'))} is for more than this machine, and {missing}: "
                "give those, or say --insecure where the network itself lets nobody else in"
            )
        return self

    def _open_doors(self) -> Iterable[tuple[str, str]]:
        """The ports that others than this machine reach, and what is missing there; none when that is wanted."""
        if self.insecure:
            return
        named = self.users or self.tls_client_certs == "required"
        for setting, address in (("listen", self.listen), ("admin", self.admin)):
            if _is_open(address) and not (self.tls_cert and named):
                yield setting, "has no TLS (--tls-cert, --tls-key) or no names (--users, --roles)"
        if _is_open(self.peer_listen) and not self.peer_tls_cert:
            yield "peer-listen", "brokers show no certificates (--peer-tls-cert, --peer-tls-key, --peer-tls-ca)"

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

    @field_validator("jwt_algorithms", mode="before")
    @classmethod
    def _algorithms(cls, value: Any) -> Any:
        given = value.replace(",", " ").split() if isinstance(value, str) else value
        if not isinstance(given, list | tuple) or not given or not all(one in ALGORITHMS for one in given):
            raise ValueError(f"{value!r} is no list of algorithms that sign: there are {', '.join(ALGORITHMS)}")
        return tuple(given)

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
    # pydantic takes a variable in either case, so the file must give way to both.
    environment = {name.upper(): name for name in os.environ if name.upper().startswith(_PREFIX)}
    _check_environment(environment)
    sources = {name: environment.get(f"{_PREFIX}{name}".upper(), "") for name in Settings.model_fields}
    sources |= {name: f"--{name.replace('_', '-')}" for name in given}
    if file is not None:
        for name, value in _read(file).items():
            if not sources[name]:
                given[name], sources[name] = value, f"{name} in {file}"
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SettingsError(_explain(error, sources)) from error


def _check_environment(names: Iterable[str]) -> None:
    """A name that nobody reads was meant for something. Raises SettingsError."""
    known = [*(name.upper() for name in Settings.model_fields), *_OF_CLIENTS]
    wrong = []
    for name in sorted(names):
        own = name.removeprefix(_PREFIX)
        if own not in known and not _OF_KUBERNETES.fullmatch(own):
            likely = difflib.get_close_matches(own, known, 1, _LIKENESS_MIN)
            wrong.append(f"{name} is no setting: {f'is {_PREFIX}{likely[0]} meant?' if likely else 'take it away'}")
    if wrong:
        raise SettingsError("; ".join(wrong))


def _read(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            table = tomllib.load(stream)
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not TOML: {error}") from error
    for name in ("server", "wait"):  # the clients' keys: one file may serve both
        table.pop(name, None)
    for name in table:
        if name not in Settings.model_fields:
            known = ", ".join(sorted(Settings.model_fields))
            raise SettingsError(f"{file}: unknown setting {name!r}; there are {known}")
    return table


def _explain(error: ValidationError, sources: dict[str, str]) -> str:
    """Every wrong value: where it came from, what it is, and what it has to be."""
    lines = []
    for problem in error.errors():
        name = str(problem["loc"][0]) if problem["loc"] else "settings"
        lines.append(f"{sources.get(name) or name}: {_in_words(problem)}")
    return "; ".join(lines)


def _in_words(problem: Any) -> str:
    kind, value, context = problem["type"], problem["input"], problem.get("ctx", {})
    words = {
        "greater_than_equal": "{value!r} is too little: it is at least {ge}",
        "less_than_equal": "{value!r} is too much: it is at most {le}",
        "int_parsing": "{value!r} is no whole number",
        "int_type": "{value!r} is no whole number",
        "int_from_float": "{value!r} is no whole number",
        "float_parsing": "{value!r} is no number",
        "float_type": "{value!r} is no number",
        "finite_number": "{value!r} is no number to count with",
        "literal_error": "{value!r} is none of {expected}",
        "string_type": "{value!r} is no text: write it between quotes",
        "string_too_long": "a name has at most {max_length} characters",
        "string_too_short": "the name is empty",
        "string_pattern_mismatch": "{value!r} is no name: it has letters, digits and . _ : - only",
        "path_type": "{value!r} is no path",
        "extra_forbidden": "there is no such setting",
    }.get(kind)
    if words is None:
        return str(problem["msg"]).removeprefix("Value error, ")
    return words.format(value=value, **context)

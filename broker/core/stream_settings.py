"""Stream settings: what a schema says about a stream beside its attributes, read and checked in this one place.

durability         "memory" (default): delivered and forgotten. "stored": every batch is in the log of the broker
                   that accepted it before anybody sees it
audit              deliveries and the history of subscriptions are logged as well; that takes a stored stream
verify             match columns are derived from the records, whatever the publisher sent; as `audit` unless said
retention_seconds  what is older leaves the logs
retention_bytes    what is more, oldest first, leaves each log
placement          how subscriptions are put where events pass: "anchored" (default), or "counting"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.protocol.errors import ErrorCode, Refused

from .limits import RETENTION_BYTES_MIN, RETENTION_SECONDS_MIN

__all__ = ["DEFAULTS", "SETTINGS", "StreamSettings", "check_settings", "read_settings"]

_CHOICES = {"durability": ("memory", "stored"), "placement": ("anchored", "counting")}
_SWITCHES = ("audit", "verify")
_LEAST = {"retention_seconds": RETENTION_SECONDS_MIN, "retention_bytes": RETENTION_BYTES_MIN}

SETTINGS = (*_CHOICES, *_SWITCHES, *_LEAST)
"""The keys of a schema that are settings."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """See the head of this file; a retention of None is for ever."""

    durability: str = "memory"
    audit: bool = False
    verify: bool = False
    retention_seconds: float | None = None
    retention_bytes: float | None = None
    placement: str = "anchored"

    @property
    def stored(self) -> bool:
        """Whether events go to the log."""
        return self.durability == "stored"


DEFAULTS = StreamSettings()
"""Of a stream without a schema."""


def read_settings(schema: Any) -> StreamSettings:
    """The settings in a schema. What cannot be understood, because another version wrote it, counts as not said."""
    if type(schema) is not dict:
        return DEFAULTS
    said = {name: schema[name] for name in SETTINGS if name in schema and not _objection(name, schema[name])}
    audit = said.get("audit", False)
    said.setdefault("verify", audit)
    if audit:
        said["durability"] = "stored"
    return StreamSettings(**said)


def check_settings(schema: dict[str, Any]) -> None:
    """Raises Refused, saying what to write, unless the settings in a schema make sense."""
    for name in SETTINGS:
        objection = _objection(name, schema[name]) if name in schema else ""
        if objection:
            raise Refused(ErrorCode.BAD_REQUEST, f"{name} {objection}, not {schema[name]!r}")
    if schema.get("audit", False) and schema.get("durability", "stored") != "stored":
        text = "an audited stream keeps a log, so its durability is stored: "
        raise Refused(ErrorCode.BAD_REQUEST, text + "write that, leave durability out, or say audit false")
    kept = [name for name in _LEAST if schema.get(name) is not None]
    if kept and not read_settings(schema).stored:
        text = f"{kept[0]} is about a stored stream, and this one would be kept in memory"
        raise Refused(
            ErrorCode.BAD_REQUEST, f"{text}: say durability stored as well, or leave {kept[0]} out (null removes it)"
        )


def _objection(name: str, value: Any) -> str:
    """What such a value has to be, when this is none."""
    if name in _CHOICES:
        return "" if value in _CHOICES[name] else f"is {' or '.join(_CHOICES[name])}"
    if name in _SWITCHES:
        return "" if type(value) is bool else "is true or false"
    if value is None or (type(value) in (int, float) and _LEAST[name] <= value < float("inf")):
        return ""
    return f"is a number from {_LEAST[name]:.0f} on, or null"

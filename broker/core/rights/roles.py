"""Roles as people write them: tables of patterns and conditions, read and checked in this one place.

    [roles.trader]
    publish   = [{ pattern = "orders" }]
    subscribe = [{ pattern = "quotes", where = "desk = 'FX' AND price < 1000" }, { pattern = "orders" }]
    durable   = ["trader-*"]

    [roles.trader.deny]
    subscribe = [{ pattern = "quotes/TEST" }]

    [roles.operator]
    admin = true
    audit = true

An unknown key is an error: a misspelt denial would be none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.matching import MatchingError, Pattern, Tree, extensions, parse_condition, parse_pattern

from ..limits import ROLE_GRANTS_MAX, ROLES_MAX

__all__ = ["Grant", "RightsError", "Role", "read_roles"]

_GRANTS = ("publish", "subscribe")
_SWITCHES = ("admin", "audit")
_LIMITS = ("connections", "subscriptions", "condition_terms", "events_per_second", "bytes_per_second")


class RightsError(ValueError):
    """A role cannot be understood; the text names it and says what to write."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Events at this pattern that satisfy this condition."""

    pattern: Pattern
    where: Tree | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """What one role may do, and what it may not whatever else it may. A limit of 0 is none."""

    name: str
    publish: tuple[Grant, ...] = ()
    subscribe: tuple[Grant, ...] = ()
    durable: tuple[str, ...] = ()
    no_publish: tuple[Grant, ...] = ()
    no_subscribe: tuple[Grant, ...] = ()
    no_durable: tuple[str, ...] = ()
    admin: bool = False
    audit: bool = False
    connections: int = 0
    subscriptions: int = 0
    condition_terms: int = 0
    events_per_second: int = 0
    bytes_per_second: int = 0


def read_roles(table: Any) -> dict[str, Role]:
    """The roles of a whole file, `{"roles": {name: {...}}}`. Raises RightsError."""
    if type(table) is not dict or set(table) - {"roles"} or type(table.get("roles", {})) is not dict:
        raise RightsError("a file of roles has tables [roles.NAME] and nothing else")
    roles = table.get("roles", {})
    if len(roles) > ROLES_MAX:
        raise RightsError(f"there are at most {ROLES_MAX} roles, not {len(roles)}")
    return {name: _read_role(name, said) for name, said in roles.items()}


def _read_role(name: str, said: Any) -> Role:
    where = f"role {name!r}"
    if type(said) is not dict:
        raise RightsError(f"{where} is a table: write [roles.{name}]")
    denied = said.get("deny", {})
    if type(denied) is not dict:
        raise RightsError(f"{where}: deny is a table: write [roles.{name}.deny]")
    _check_keys(said, (*_GRANTS, *_SWITCHES, *_LIMITS, "durable", "deny"), where)
    _check_keys(denied, (*_GRANTS, "durable"), f"{where}, deny")
    for key in _SWITCHES:
        if type(said.get(key, False)) is not bool:
            raise RightsError(f"{where}: {key} is true or false, not {said[key]!r}")
    for key in _LIMITS:
        if type(value := said.get(key, 0)) is not int or value < 0:
            raise RightsError(f"{where}: {key} is a whole number from 1, or left out for no limit, not {value!r}")
    role = Role(
        name,
        publish=_grants(said, "publish", where),
        subscribe=_grants(said, "subscribe", where),
        durable=_names(said, where),
        no_publish=_grants(denied, "publish", f"{where}, deny"),
        no_subscribe=_grants(denied, "subscribe", f"{where}, deny"),
        no_durable=_names(denied, f"{where}, deny"),
        admin=said.get("admin", False),
        audit=said.get("audit", False),
        **{key: said.get(key, 0) for key in _LIMITS},
    )
    parts = (role.publish, role.subscribe, role.durable, role.no_publish, role.no_subscribe, role.no_durable)
    if sum(map(len, parts)) > ROLE_GRANTS_MAX:
        raise RightsError(f"{where} has more than {ROLE_GRANTS_MAX} rights: make several roles of it")
    return role


def _check_keys(said: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in said:
        if key not in known:
            raise RightsError(f"{where}: there is no {key!r}; there are {', '.join(known)}")


def _grants(said: Mapping[str, Any], key: str, where: str) -> tuple[Grant, ...]:
    rows = said.get(key, [])
    if type(rows) is not list:
        raise RightsError(f'{where}: {key} is a list, like [{{ pattern = "quotes", where = "price < 10" }}]')
    return tuple(_grant(row, f"{where}, {key}") for row in rows)


def _grant(row: Any, where: str) -> Grant:
    if type(row) is not dict:
        raise RightsError(f'{where}: a right is {{ pattern = "quotes" }}, not {row!r}')
    _check_keys(row, ("pattern", "where", "exact"), where)
    pattern, condition, exact = row.get("pattern"), row.get("where", ""), row.get("exact", False)
    if type(pattern) is not str or type(condition) is not str or type(exact) is not bool:
        raise RightsError(f"{where}: `pattern` and `where` are texts, `exact` is true or false, not {row!r}")
    try:
        tree = parse_condition(condition) if condition.strip() else None
        grant = Grant(parse_pattern(pattern, exact=exact), tree)
    except MatchingError as error:
        raise RightsError(f"{where}: {error}") from error
    if tree is not None and extensions(tree):
        raise RightsError(f"{where}: a right is decided by each event's attributes alone, without DELTA and XPATH")
    return grant


def _names(said: Mapping[str, Any], where: str) -> tuple[str, ...]:
    rows = said.get("durable", [])
    if type(rows) is not list or not all(type(row) is str and row for row in rows):
        raise RightsError(f'{where}: durable is a list of names, in which * stands for anything, like ["trader-*"]')
    return tuple(rows)

"""`headgate role`: what the file of roles says, read as a broker reads it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exits import DONE, REFUSED, UsageError
from ..tables import print_json, print_table

if TYPE_CHECKING:
    from headgate.broker.core.rights import Grant, Role

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `role`."""
    parser.add_argument(
        "action", choices=("check", "list"), help="check: say whether it can be read; list: what each role may do"
    )
    parser.add_argument("--roles", metavar="FILE", help="the file of roles (HEADGATE_ROLES)")
    parser.add_argument("--json", action="store_true", help="an object a role (list)")


def run(arguments: argparse.Namespace) -> int:
    """Read the file, and say what is wrong with it."""
    from headgate.broker.core.rights import RightsError, read_roles
    from headgate.broker.daemon.access import AccessError, read_toml

    name = arguments.roles or os.environ.get("HEADGATE_ROLES")
    if not name:
        raise UsageError("say which file has the roles: --roles FILE, or HEADGATE_ROLES")
    try:
        roles = read_roles(read_toml(Path(name), "roles")[0])
    except AccessError as error:
        print(f"headgate role: {error}", file=sys.stderr)
        return REFUSED
    except RightsError as error:
        print(f"headgate role: {name}: {error}", file=sys.stderr)
        return REFUSED
    if arguments.action == "check":
        print(f"{name} has {len(roles)} roles, and can be used", file=sys.stderr)
        return DONE
    if arguments.json:
        for role in roles.values():
            print_json(_row(role))
        return DONE
    print_table(("role", "may"), [(role.name, right) for role in roles.values() for right in _sentences(role)])
    return DONE


def _row(role: Role) -> dict[str, Any]:
    return {
        "role": role.name,
        "publish": [_grant(one) for one in role.publish],
        "subscribe": [_grant(one) for one in role.subscribe],
        "durable": list(role.durable),
        "deny": {
            "publish": [_grant(one) for one in role.no_publish],
            "subscribe": [_grant(one) for one in role.no_subscribe],
            "durable": list(role.no_durable),
        },
        "admin": role.admin,
        "audit": role.audit,
    }


def _sentences(role: Role) -> list[str]:
    rows = [f"{verb} {_grant(one)}" for verb in ("publish", "subscribe") for one in getattr(role, verb)]
    rows += [f"have durable {name}" for name in role.durable]
    rows += [f"not {verb} {_grant(one)}" for verb in ("publish", "subscribe") for one in getattr(role, f"no_{verb}")]
    rows += [f"not have durable {name}" for name in role.no_durable]
    if role.admin:
        rows.append("administer: schemas, subscriptions, status, ring, purge")
    if role.audit:
        rows.append("audit: read all logs")
    return rows or ["nothing"]


def _grant(grant: Grant) -> str:
    from headgate.matching import to_text

    exact = " (exact)" if grant.pattern.exact else ""
    return f"{grant.pattern}{exact}" + (f" WHERE {to_text(grant.where)}" if grant.where is not None else "")

"""`headgate token`: tokens of users. A new one is printed once, and nobody can read it off the file again."""

from __future__ import annotations

import argparse
import re
import sys
import time

from ..exits import DONE, REFUSED, UsageError
from ..tables import print_json, print_table
from .user import add_users_argument, users_file

__all__ = ["add_arguments", "run"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"(\d{1,9})([smhd])")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `token`."""
    parser.add_argument("action", choices=("new", "revoke", "list"), help="what to do")
    parser.add_argument(
        "name", nargs="?", default="", metavar="NAME", help="the user (new, list), or the token's id (revoke)"
    )
    add_users_argument(parser)
    parser.add_argument(
        "--expires", metavar="SPAN", default="", help="how long it is good: 30d, 12h, never (default 90d) (new)"
    )
    parser.add_argument("--json", action="store_true", help="an object a token (list)")


def run(arguments: argparse.Namespace) -> int:
    """Make a token, end one, or show which there are."""
    from headgate.broker.daemon.access import AccessError

    try:
        if arguments.action == "list":
            return _list(arguments)
        if not arguments.name:
            what = (
                "NAME: say whose it is" if arguments.action == "new" else "ID: say which; `headgate token list` knows"
            )
            raise UsageError(f"token {arguments.action} {what}")
        return _new(arguments) if arguments.action == "new" else _revoke(arguments)
    except AccessError as error:
        print(f"headgate token: {error}", file=sys.stderr)
        return REFUSED


def _new(arguments: argparse.Namespace) -> int:
    from headgate.broker.daemon.access import (
        TOKEN_DAYS_DEFAULT,
        TOKENS_PER_USER_MAX,
        AccessError,
        Token,
        UsersFile,
        new_token,
    )

    expires, now = _expiry(arguments.expires or f"{TOKEN_DAYS_DEFAULT}d"), time.time()
    file = UsersFile(users_file(arguments))
    token, number, digest = new_token()
    with file.changing() as users:
        user = users.get(arguments.name)
        if user is None:
            raise AccessError(f"there is no user {arguments.name} in {file.file}: `headgate user add` makes one")
        user.tokens = {one: known for one, known in user.tokens.items() if not known.expires or known.expires > now}
        if len(user.tokens) >= TOKENS_PER_USER_MAX:
            raise AccessError(f"{arguments.name} has {TOKENS_PER_USER_MAX} tokens: revoke one of them")
        user.tokens[number] = Token(digest, expires)
    until = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(expires)) if expires else "it is revoked"
    print(f"token {number} of {arguments.name}, good until {until}; it is shown this once:", file=sys.stderr)
    print(token)
    return DONE


def _revoke(arguments: argparse.Namespace) -> int:
    from headgate.broker.daemon.access import AccessError, UsersFile, split_token

    file = UsersFile(users_file(arguments))
    parts = split_token(arguments.name)
    number = arguments.name if parts is None else parts[0]
    with file.changing() as users:
        owner = next((name for name, user in users.items() if number in user.tokens), None)
        if owner is None:
            raise AccessError(f"there is no such token in {file.file}: `headgate token list` shows them all")
        del users[owner].tokens[number]
    print(f"revoked {number} of {owner}: its connections end within a second", file=sys.stderr)
    return DONE


def _list(arguments: argparse.Namespace) -> int:
    from headgate.broker.daemon.access import UsersFile

    now = time.time()
    rows = [
        {
            "token": number,
            "user": name,
            "expires": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(token.expires)) if token.expires else None,
            "good": not token.expires or token.expires > now,
        }
        for name, user in sorted(UsersFile(users_file(arguments)).read()[0].items())
        for number, token in sorted(user.tokens.items())
        if arguments.name in ("", name)
    ]
    if arguments.json:
        for row in rows:
            print_json(row)
        return DONE
    print_table(("token", "user", "expires", "good"), [(*row.values(),) for row in rows])
    return DONE


def _expiry(span: str) -> float:
    """When it ends; 0 for never. Raises UsageError."""
    if span == "never":
        return 0.0
    found = _SPAN.fullmatch(span)
    if found is None or not int(found[1]):
        raise UsageError(f"--expires {span}: a span like 90d, 12h, 30m or 45s, or never")
    return float(int(time.time() + int(found[1]) * _UNITS[found[2]]))

"""`headgate user`: the file of users that brokers watch. What is changed holds at running brokers within a second."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..exits import DONE, REFUSED, UsageError
from ..server import read_password
from ..tables import print_json, print_table

if TYPE_CHECKING:
    from headgate.broker.daemon.access import User, UsersFile

__all__ = ["add_arguments", "add_users_argument", "run", "users_file"]


def add_users_argument(parser: argparse.ArgumentParser) -> None:
    """`--users`."""
    parser.add_argument("--users", metavar="FILE", help="the file of users (HEADGATE_USERS)")


def users_file(arguments: argparse.Namespace) -> Path:
    """Which file it is. Raises UsageError."""
    file = arguments.users or os.environ.get("HEADGATE_USERS")
    if not file:
        raise UsageError("say which file has the users: --users FILE, or HEADGATE_USERS")
    return Path(file)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `user`."""
    parser.add_argument("action", choices=("add", "set", "rm", "list", "passwd"), help="what to do with the file")
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="the user")
    add_users_argument(parser)
    parser.add_argument(
        "--roles",
        metavar="ROLE",
        action="extend",
        nargs="+",
        help="what the user may do, as the file of roles says (add, set)",
    )
    parser.add_argument(
        "--certificate",
        metavar="KIND:NAME",
        action="extend",
        nargs="+",
        help="a client certificate that proves it, exactly: dns:NAME, email:NAME, uri:NAME or cn:NAME (add, set)",
    )
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="its first line is the password (or HEADGATE_PASSWORD has it); - reads standard input (add, passwd)",
    )
    parser.add_argument("--no-password", action="store_true", help="tokens or certificates alone prove who it is (add)")
    parser.add_argument("--json", action="store_true", help="an object a user (list)")


def run(arguments: argparse.Namespace) -> int:
    """Change the file, or show what it says."""
    from headgate.broker.daemon.access import AccessError, UsersFile

    file = UsersFile(users_file(arguments))
    if arguments.action != "list" and not arguments.name:
        raise UsageError(f"user {arguments.action} NAME: say which user")
    try:
        return _ACTIONS[arguments.action](file, arguments)
    except AccessError as error:
        print(f"headgate user: {error}", file=sys.stderr)
        return REFUSED


def _add(file: UsersFile, arguments: argparse.Namespace) -> int:
    from headgate.broker.daemon.access import AccessError, User, hash_password

    name = file.check_name(arguments.name)
    roles = _words(arguments.roles)
    certificates = [file.check_certificate(one) for one in arguments.certificate or ()]
    if not roles:
        raise UsageError("a user without roles may do nothing: say --roles ROLE")
    kept = "" if arguments.no_password else hash_password(_new_password(arguments))
    with file.changing() as users:
        if name in users:
            raise AccessError(f"there is a user {name} in {file.file} already: change it with set or passwd")
        users[name] = User(kept, roles, certificates)
    print(f"added {name}, with {', '.join(roles)}", file=sys.stderr)
    return DONE


def _set(file: UsersFile, arguments: argparse.Namespace) -> int:
    if not arguments.roles and not arguments.certificate:
        raise UsageError("say what is to be another: --roles or --certificate")
    with file.changing() as users:
        _known(file, users, arguments.name)
        user = users[arguments.name]
        user.roles = _words(arguments.roles) or user.roles
        if arguments.certificate:
            user.certificates = [file.check_certificate(one) for one in arguments.certificate]
        roles = ", ".join(user.roles)
    print(f"changed {arguments.name}, who has {roles}: it holds within a second", file=sys.stderr)
    return DONE


def _words(roles: list[str] | None) -> list[str]:
    return [role for word in roles or () for role in word.split(",") if role]


def _remove(file: UsersFile, arguments: argparse.Namespace) -> int:
    with file.changing() as users:
        _known(file, users, arguments.name)
        del users[arguments.name]
    print(f"removed {arguments.name}: its connections end within a second", file=sys.stderr)
    return DONE


def _password(file: UsersFile, arguments: argparse.Namespace) -> int:
    from headgate.broker.daemon.access import hash_password

    kept = hash_password(_new_password(arguments))
    with file.changing() as users:
        _known(file, users, arguments.name)
        users[arguments.name].password = kept
    print(f"changed: connections that {arguments.name} has by the old password end within a second", file=sys.stderr)
    return DONE


def _list(file: UsersFile, arguments: argparse.Namespace) -> int:
    for name, user in sorted(file.read()[0].items()) if arguments.json else ():
        has = {"password": bool(user.password), "tokens": len(user.tokens), "certificates": user.certificates}
        print_json({"user": name, "roles": user.roles, **has})
    if not arguments.json:
        print_table(
            ("user", "roles", "password", "tokens", "certificates"),
            [
                (name, ", ".join(user.roles), bool(user.password), len(user.tokens), ", ".join(user.certificates))
                for name, user in sorted(file.read()[0].items())
            ],
        )
    return DONE


def _known(file: UsersFile, users: dict[str, User], name: str) -> None:
    from headgate.broker.daemon.access import AccessError

    if name not in users:
        raise AccessError(f"there is no user {name} in {file.file}: `headgate user list` shows them all")


def _new_password(arguments: argparse.Namespace) -> str:
    """From the file, the environment, or whoever sits at the terminal. Raises UsageError."""
    from headgate.broker.daemon.access import PASSWORD_LENGTH_GOOD, PASSWORD_LENGTH_MAX

    given = getattr(arguments, "password_file", None)
    password = read_password(given) if given else os.environ.get("HEADGATE_PASSWORD", "")
    if not password and sys.stdin.isatty():
        password = getpass.getpass(f"password of {arguments.name}: ")
        if getpass.getpass("again: ") != password:
            raise UsageError("these are two passwords: try again")
    if not password:
        raise UsageError("say its password: --password-file FILE, or HEADGATE_PASSWORD")
    if len(password.encode()) > PASSWORD_LENGTH_MAX:
        raise UsageError(f"a password has at most {PASSWORD_LENGTH_MAX} bytes")
    if len(password) < PASSWORD_LENGTH_GOOD:
        text = f"this password is taken, and is easy to guess: {PASSWORD_LENGTH_GOOD} characters are better"
        print(f"headgate user: {text}", file=sys.stderr)
    return password


_ACTIONS = {"add": _add, "set": _set, "rm": _remove, "list": _list, "passwd": _password}

"""`headgate schema`: say what attributes a stream has, and how it is kept; read it back, list all, remove one."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headgate.protocol.errors import ErrorCode, Refused

from ..exits import DONE, REFUSED, UsageError
from ..purge import purge
from ..server import add_server_arguments, all_of, answer_of, converse
from ..tables import plain, print_json, print_table

__all__ = ["add_arguments", "run"]

_EXAMPLE = '{"attributes": {"price": {"type": "float", "min": 0, "max": 1000}}}'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `schema`."""
    add_server_arguments(parser)
    actions = parser.add_subparsers(dest="action", metavar="put|get|list|rm|learn", required=True)
    put = actions.add_parser("put", help=f"give a stream a schema, like {_EXAMPLE}", allow_abbrev=False)
    put.add_argument("stream", metavar="STREAM")
    put.add_argument("source", metavar="FILE|-|JSON", nargs="?", help="a file, - for standard input, or the schema")
    put.add_argument("--file", metavar="FILE", help="the same as FILE")
    text = "forget what it said before; otherwise keys and attributes that are not given stay, and null removes one"
    put.add_argument("--replace", action="store_true", help=text)
    for action, text in (("get", "print the schema of a stream"), ("rm", "remove the schema of a stream")):
        parser_of_action = actions.add_parser(action, help=text, allow_abbrev=False)
        parser_of_action.add_argument("stream", metavar="STREAM")
        if action == "rm":
            text = "remove what brokers have stored of it as well (those that are down keep theirs); takes some seconds"
            parser_of_action.add_argument("--purge", action="store_true", help=text)
    actions.add_parser("list", help="all schemas", allow_abbrev=False)
    text = "learn structure.map, by which events with documents find subscriptions with XPATH, and put it in force"
    learned = actions.add_parser("learn", help=text, allow_abbrev=False)
    learned.add_argument("stream", metavar="STREAM")
    text = "documents like those of the stream: .xml and .json are one each, any other has lines as `pub --jsonl` takes"
    learned.add_argument("--documents", metavar="FILE", nargs="+", required=True, help=text)
    learned.add_argument("--dry-run", action="store_true", help="print what it would do, and change nothing")
    for parser_of_action in actions.choices.values():
        parser_of_action.add_argument("--json", action="store_true", help="one line of JSON")
        add_server_arguments(parser_of_action)


def run(arguments: argparse.Namespace) -> int:
    """Put, get, list or remove."""
    if arguments.action == "list":
        _print_list(arguments, all_of(arguments, "schema.list", "stream"))
    elif arguments.action == "put":
        details = {"stream": arguments.stream, "schema": _read(arguments), "replace": arguments.replace}
        answer = answer_of(arguments, "schema.put", **details)
        _print_done(arguments, answer, _changes_text(answer))
    elif arguments.action == "learn":
        _learn(arguments)
    elif arguments.action == "rm":
        return _purge(arguments) if arguments.purge else _remove(arguments)
    else:
        answer = answer_of(arguments, "schema.get", stream=arguments.stream)
        if arguments.json:
            print_json(answer)
        else:
            print_json(answer["schema"], indent=2)
            for line in _defaults_lines(answer):
                print(line, file=sys.stderr)  # standard output is what `put` takes
    return DONE


def _learn(arguments: argparse.Namespace) -> None:
    from ..keymaps import Learned, learn, read_documents

    stream, documents = arguments.stream, list(read_documents(arguments.documents))

    async def talk(client: Any) -> Learned:
        try:
            schema = (await client.ask("schema.get", stream=stream))["schema"]
        except Refused as error:
            if error.code != ErrorCode.NOT_FOUND:
                raise
            schema = {}
        learned = await learn(client, stream, schema, documents)
        if not arguments.dry_run:
            await client.ask("schema.put", stream=stream, schema={"structure.map": learned.name}, replace=False)
        return learned

    learned = converse(arguments, talk)
    was, now = learned.busiest
    text = f"learned from {learned.documents} documents and {learned.subscriptions} subscriptions with XPATH:\n"
    text += f"  documents that begin at the busiest vertex: {was:.0%} -> {now:.0%}\n"
    was, now = learned.without_key
    text += f"  subscriptions that all documents come by: {was:.0%} -> {now:.0%}\n"
    text += "nothing was changed" if arguments.dry_run else f"stream {stream} has this map: subscriptions rest by it "
    text += "" if arguments.dry_run else "from now on, and those that are there when they subscribe anew"
    _print_done(arguments, asdict(learned), text)


def _changes_text(answer: dict[str, Any]) -> str:
    """What a put changed, a line a key, and what holds without being said."""
    changed = answer.get("changed", {})
    lines = [f"stream {answer['stream']} has its schema" + ("" if changed else ": nothing changed")]
    for key, one in changed.items():
        lines.append(f"  {key}: {_value_text(one['old'])} -> {_value_text(one['new'])}")
    return "\n".join(lines + _defaults_lines(answer))


def _value_text(value: Any) -> str:
    return "not set" if value is None else json.dumps(value)


def _defaults_lines(answer: dict[str, Any]) -> list[str]:
    declared = answer.get("defaults", {}).get("attributes", {})
    return [
        f"  attributes.{name}: precision {one['precision']:.15g}, because it says none; its ranges rest in such steps"
        for name, one in declared.items()
    ]


def _remove(arguments: argparse.Namespace) -> int:
    answer = answer_of(arguments, "schema.rm", stream=arguments.stream)
    text = f"stream {arguments.stream} has no schema any more"
    schema = answer["schema"]
    if schema.get("durability") == "stored" or schema.get("audit"):
        text += "; what is in its logs stays, and stays readable: `headgate schema rm --purge` removes that too"
    _print_done(arguments, answer, text)
    return DONE


def _purge(arguments: argparse.Namespace) -> int:
    stream = arguments.stream
    gone, left = converse(arguments, lambda client: purge(client, stream))
    text = f"stream {stream} has no schema any more, and {gone} entries of its logs are gone"
    if left:
        text += f"; {left} are left, because it was published to all the time: stop that, and say it again"
    _print_done(arguments, {"stream": stream, "gone": gone, "left": left}, text)
    return REFUSED if left else DONE


def _print_list(arguments: argparse.Namespace, answer: list[dict[str, Any]]) -> None:
    if arguments.json:
        print_json(answer)
        return
    rows = []
    for entry in answer:
        attributes = entry["schema"].get("attributes", {})
        defaults = entry.get("defaults", {}).get("attributes", {})
        settings = {name: value for name, value in entry["schema"].items() if name != "attributes"}
        rows.append(
            (
                entry["stream"],
                ", ".join(f"{name} {_declared(defaults.get(name, {}) | one)}" for name, one in attributes.items()),
                ", ".join(f"{name} {plain(value)}" for name, value in settings.items()),
            )
        )
    print_table(("stream", "attributes", "settings"), rows)


def _declared(attribute: dict[str, Any]) -> str:
    """An attribute's type, and its range and precision where it has them."""
    if attribute.get("min") is None and attribute.get("max") is None:
        return str(attribute["type"])
    low, high = (plain(attribute[end]) if attribute.get(end) is not None else "" for end in ("min", "max"))
    precision = attribute.get("precision")
    return f"{attribute['type']} {low}..{high}" + (f" by {precision:.15g}" if precision is not None else "")


def _print_done(arguments: argparse.Namespace, answer: Any, text: str) -> None:
    if arguments.json:
        print_json(answer)
    else:
        print(text, file=sys.stderr)


def _read(arguments: argparse.Namespace) -> dict[str, Any]:
    if (arguments.source is None) == (arguments.file is None):
        raise UsageError(f"schema put {arguments.stream}: give one FILE, - for standard input, or {_EXAMPLE}")
    source = arguments.source or arguments.file
    text, name = source, "the schema"
    if source == "-":
        text, name = sys.stdin.read(), "standard input"
    elif not source.lstrip().startswith("{"):
        name = source
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {source}: {getattr(error, 'strerror', None) or error}") from error
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise UsageError(f"{name}: a schema is an object, like {_EXAMPLE}")
    return schema

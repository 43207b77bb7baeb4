"""`headgate explain`: how the broker reads a subscription, where it lives, and what it says of a given event."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ..conditions import read_condition
from ..exits import DONE, UsageError
from ..jsonlines import read_attributes
from ..server import add_server_arguments, converse
from ..tables import brief, plain, print_json, print_map

__all__ = ["add_arguments", "read_event", "run"]

_EXAMPLE = '{"topic": "quotes/NYSE/OTE", "attrs": {"price": 8.45}}'
_EVENT_KEYS = frozenset({"topic", "attrs", "json"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `explain`."""
    add_server_arguments(parser)
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", help="as in `sub`")
    parser.add_argument("--where", metavar="SQL", default="", help="as in `sub`")
    parser.add_argument("--exact", action="store_true", help="as in `sub`")
    text = "explain that durable subscription instead: what it asks for, who keeps it, and how far it has come"
    parser.add_argument("--durable", metavar="NAME", help=text)
    parser.add_argument("--event", metavar="JSON", help=f"an event to try it on, like {_EXAMPLE}; - reads it")
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask and print."""
    if (arguments.pattern is None) == (arguments.durable is None):
        raise UsageError("explain wants a PATTERN, or --durable NAME")
    if arguments.durable is not None and (arguments.where or arguments.exact):
        raise UsageError("--durable NAME has its own condition: leave out --where and --exact")
    condition = read_condition(arguments.where)
    event = None
    if arguments.event is not None:
        event = read_event(sys.stdin.read() if arguments.event == "-" else arguments.event)

    async def talk(client: Any) -> dict[str, Any]:
        if arguments.durable is None:
            row: dict[str, Any] = {"pattern": arguments.pattern, "condition": condition, "exact": arguments.exact}
        else:
            row = await client.ask("durable", name=arguments.durable)
        details = {name: row[name] for name in ("pattern", "condition", "exact")}
        answer: dict[str, Any] = await client.ask("explain", **details, **({} if event is None else {"event": event}))
        if arguments.durable is None:
            return answer
        # A durable subscription is matched at the logs, and does not rest at a key of its condition.
        elsewhere = ("lives_on", "because", "shelf", "keys", "subid", "producers")
        return {name: value for name, value in answer.items() if name not in elsewhere} | {"durable": row}

    answer = converse(arguments, talk)
    if arguments.json:
        print_json(answer)
    else:
        _print(answer)
    return DONE


def read_event(text: str) -> dict[str, Any]:
    """The event of a JSON text: a line as `pub --jsonl` takes it, or an object of nothing but attributes."""
    try:
        members = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--event is not JSON: {error}") from error
    if not isinstance(members, dict):
        raise UsageError(f"--event is an object, like {_EXAMPLE}")
    if not members.keys() & _EVENT_KEYS:
        return {"attrs": read_attributes({"attrs": members})}
    event: dict[str, Any] = {"attrs": read_attributes(members)}
    if "topic" in members:
        event["topic"] = members["topic"]
    return event


def _print(answer: dict[str, Any]) -> None:
    reach = "this topic only" if answer["exact"] else "this topic and all below it"
    members = {
        "pattern": f"{answer['pattern']} ({reach})",
        "condition": brief(answer["condition"]) or "none: every event of these topics",
    }
    if "durable" in answer:
        members |= _place_of(answer["durable"])
    else:  # one name, or those of the owners of its keys
        members["lives on"] = f"{plain(answer['lives_on'])}: {answer['because']}"
    print_map(members | {name: answer[name] for name in ("shelf", "keys") if answer.get(name)})
    if answer.get("producers"):
        known, limit = answer["producers"]["known"], answer["producers"]["limit"]
        print(f"producers  {known:,} are remembered here, of {limit:,} at most: what one of them repeats is recognised")
    if answer.get("subid"):
        c1, c3 = answer["subid"]["c1"], answer["subid"]["c3"]
        print(f"subID      c1 {c1} (this broker), c2 its number here when it is made, c3 {c3} (attributes)")
    _print_delta(answer)
    if "delivered" not in answer:
        return
    print()
    rows = [(one["verdict"], one["predicate"]) for one in answer["predicates"]]
    if "topic_matches" in answer:
        rows.insert(0, ("true" if answer["topic_matches"] else "false", "the topic matches the pattern"))
    for verdict, text in rows:
        print(f"  {verdict:<7}  {plain(brief(text))}")
    print(f"\n{'delivered' if answer['delivered'] else 'not delivered'}: {_reason(answer)}")


def _print_delta(answer: dict[str, Any]) -> None:
    """What subscriptions with this DELTA were last sent, and what they get next."""
    for row in answer.get("delta", ()):
        who = f"{plain(row['client'])}, subscription {row['subscription']}, {plain(row['topic'])}"
        if row["last"] is None:
            print(f"delta      {who}: nothing yet, so the next event is delivered")
            continue
        last = " and ".join(
            f"{plain(name)} {value:.12g}" for name, value in zip(row["attributes"], row["last"], strict=True)
        )
        beyond = f"below {row['below']:.12g} or above {row['above']:.12g}"
        print(f"delta      {who}: last sent {last}, next {beyond}")
    if "delta" in answer and not answer["delta"]:
        print("delta      no client of this broker subscribes to just this: the first event of each topic is delivered")


def _place_of(row: dict[str, Any]) -> dict[str, Any]:
    """Where a durable subscription lives and how far it has come, in words."""
    logs = [f"{one['log']}: settled before {one['settled']}, looked at before {one['fed']}" for one in row["logs"]]
    told = {
        "lives on": f"{row['coordinator']}: it coordinates this name, in generation {row['generation']}",
        "kept by": row["keepers"],
        "logs": "; ".join(logs) or "none yet: nothing is stored in this stream",
        "waiting": f"{row['waiting']}, and {row['unacked']} handed out to {len(row['clients'])} clients",
    }
    sections = [
        f"{one['before']}: what matches {brief(one['condition']) or 'anything'} as well" for one in row["sections"]
    ]
    if sections:  # what changes of the condition left behind
        told["and before"] = "; ".join(sections)
    return told


def _reason(answer: dict[str, Any]) -> str:
    if answer.get("topic_matches") is False:
        return "the topic is not one of the pattern's"
    verdict = answer["verdict"]
    if verdict == "true" and not answer["delivered"]:
        return "this version serves no XPATH yet, and `sub` refuses such a condition"
    if verdict == "true" and "delta" in answer:
        return "the first time; after that, when it has moved from what was last delivered (DELTA)"
    if verdict == "unknown":
        reasons = dict.fromkeys(one["why"] for one in answer["predicates"] if one.get("why"))
        return f"the condition is unknown: {plain('; '.join(reasons))}" if reasons else "the condition is unknown"
    return f"the condition is {verdict}"

"""`headgate explain`: how the broker reads a subscription, where it lives, and what it says of a given event."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from headgate.protocol.structure import Check, Checks, Finding

from ..conditions import read_condition
from ..exits import DONE, UsageError
from ..jsonlines import Line, parse_line, read_attributes
from ..server import add_server_arguments, converse
from ..tables import brief, plain, print_json, print_map
from ..walks import walks_of

__all__ = ["add_arguments", "read_event", "run"]

_EXAMPLE = '{"topic": "quotes/NYSE/OTE", "attrs": {"price": 8.45}}'
_EVENT_KEYS = frozenset({"topic", "attrs", "json", "xml"})

_FINDINGS = {
    Finding.HASH: "the document lacks a name, a pair of names or a text",
    Finding.STRUCTURE: "the document has all of the names and pairs, in other places",
    Finding.NO_DOCUMENT: "there is no document, or none that can be read",
}


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
    event = line = None
    if arguments.event is not None:
        text = sys.stdin.read() if arguments.event == "-" else arguments.event
        event, line = read_event(text), _document_of(text)

    async def talk(client: Any) -> dict[str, Any]:
        if arguments.durable is None:
            row: dict[str, Any] = {"pattern": arguments.pattern, "condition": condition, "exact": arguments.exact}
        else:
            row = await client.ask("durable", name=arguments.durable)
        details = {name: row[name] for name in ("pattern", "condition", "exact")}
        answer: dict[str, Any] = await client.ask("explain", **details, **({} if event is None else {"event": event}))
        if line is not None and answer.get("checks"):
            _look_at(answer, line)
        if arguments.durable is None:
            if line is not None and "vertex" in answer:
                await _follow(client, answer, line)
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


def _document_of(text: str) -> Line | None:
    """The document of the event, if it has one."""
    members = json.loads(text)
    return parse_line(text, "any") if members.keys() & {"xml", "json"} else None


def _look_at(answer: dict[str, Any], line: Line) -> None:
    """What XPATH says of the document, which no broker reads."""
    asked = [one for one in answer["predicates"] if one["verdict"] == "later" and one["predicate"].startswith("XPATH")]
    for one, (xpath, items) in zip(asked, answer["checks"], strict=True):
        finding = Checks([Check(xpath, tuple(items))]).find(line.body, line.content_type)
        one["verdict"] = "true" if finding is Finding.TRUE else "false"
        if finding is not Finding.TRUE:
            one["why"] = _FINDINGS[finding]
            answer["verdict"] = "false" if answer["verdict"] == "true" else answer["verdict"]
    answer["delivered"] = answer["verdict"] == "true" and answer.get("topic_matches") is not False


async def _follow(client: Any, answer: dict[str, Any], line: Line) -> None:
    """The way of the event to the vertex where the subscription rests, or to where it is not let on."""
    walks, told = await walks_of(client, answer["stream"], line)
    told.tell_missing("explain")
    answer["walk"] = []
    for walk in walks:
        if walk.cube != answer["shelf"]:
            continue
        way = walk.way(int(answer["vertex"], 2))
        for visit, following in zip(way, [*way[1:], None], strict=True):
            answer["walk"].append(
                {
                    "vertex": walk.name(visit.vertex),
                    "broker": visit.broker,
                    "rest": visit.rest,
                    "clears": None if following is None else following.cleared,
                    "pruned": [bit for bit, _ in visit.pruned],
                }
            )


def _print_walk(answer: dict[str, Any]) -> None:
    for row in answer.get("walk", ()):
        end = f"clears bit {row['clears']}" if row["clears"] is not None else "goes no further on this way"
        if row["vertex"] == answer["vertex"]:
            end = f"meets the {row['rest']} that rest there" if row["rest"] else "nobody rests there yet"
        stopped = f"; not let over {plain(row['pruned'])}" if row["pruned"] else ""
        print(f"walk       {row['vertex']} on {row['broker']}: {end}{stopped}")


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
    _print_walk(answer)
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
    """Who decides DELTA, what subscriptions with just this were last sent, and what they get next."""
    if answer.get("dynamic") == "local":
        print("dynamic    local: the broker of each client decides, for it alone knows what the client was sent")
    for row in answer.get("delta", ()):
        who = f"{plain(row['client'])}, subscription {row['subscription']}, {plain(row['topic'])}"
        if row["last"] is None:
            print(f"delta      {who}: nothing yet, so the next event is delivered")
            continue
        last = " and ".join(
            f"{plain(name)} {value:.12g}" for name, value in zip(row["attributes"], row["last"], strict=True)
        )
        sides = (("below", row["below"]), ("above", row["above"]))  # RISE and FALL have one
        beyond = " or ".join(f"{side} {value:.12g}" for side, value in sides if value is not None)
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
    if "withheld" in answer:
        return plain(answer["withheld"])
    if verdict == "true" and not answer["delivered"]:
        return 'XPATH is about a document: give the event "xml" or "json"'
    if verdict == "true" and "delta" in answer:
        return "the first time; after that, when it has moved from what was last delivered (DELTA)"
    if verdict == "unknown":
        reasons = dict.fromkeys(one["why"] for one in answer["predicates"] if one.get("why"))
        return f"the condition is unknown: {plain('; '.join(reasons))}" if reasons else "the condition is unknown"
    wrong = [one["why"] for one in answer["predicates"] if one["verdict"] == "false" and one.get("why")]
    return f"the condition is {verdict}: {plain(wrong[0])}" if wrong else f"the condition is {verdict}"

"""Draws the parts of documents that code can draw: flows and rooms in ARCHITECTURE.md, brokers' messages in SPEC.md.

    python -m tests.support.house_map            rewrites them in place

Each stands between two marks, `<!-- NAME -->` and `<!-- /NAME -->`. `tests/test_docs.py` fails when they are not what
this file would write, so the page cannot say of the code what was true once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from headgate.broker.core import durable, node  # noqa: F401  (they import every room, and so every declaration)
from headgate.broker.core.messages import CONTROLS, LETTERS, STORE
from tests.support.tracer import FLOWS

__all__ = ["PAGE", "SPEC", "drawn", "parts", "spoken"]

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
SPEC = ROOT / "protocol" / "SPEC.md"

WALKS = {
    "PUBLISH": "An event in memory, one broker, one subscriber: from PUBLISH to DELIVER",
    "SUBSCRIBE-cluster": "A subscription, three brokers: from SUBSCRIBE to SUBACK",
    "stored-PUBLISH": "A stored event, three brokers, two copies: from PUBLISH to PUBACK",
    "durable-PUBLISH": "A stored event for a durable subscription, three brokers: from PUBLISH to HANDED",
    "durable-ACK": "An acknowledgement, three brokers, two copies of the cursor: from ACK to ACKED",
    "replay": "A page of a log: from READ_LOG to LOG_CHUNK",
}
HOUSES = ("broker/core", "matching", "protocol", "broker/daemon", "broker/simulator", "ops")


def drawn(page: str, of: Callable[[], Iterator[tuple[str, str]]] | None = None) -> str:
    """The page with its drawn parts as they should be."""
    for name, text in (of or parts)():
        page = re.sub(
            rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)",
            lambda found, text=text: f"{found[1]}\n{text}\n{found[2]}",  # type: ignore[misc]
            page,
            flags=re.DOTALL,
        )
    return page


def parts() -> Iterator[tuple[str, str]]:
    """(name, text) of every part that is drawn."""
    for name, title in WALKS.items():
        flow = FLOWS[name]()
        messages = int(flow.numbers["messages"])
        between = f", {messages} messages between brokers" if messages else ""
        yield name, f"**{title}** ({len(flow.files)} files{between})\n\n{walk(flow.files)}\n"
    yield "rooms", f"{rooms()}\n"


def spoken() -> Iterator[tuple[str, str]]:
    """(name, text) of every vocabulary that brokers speak, as a table for each."""
    for said in (LETTERS, CONTROLS, STORE):
        lines = ["| kind | message | fields |", "|---|---|---|"]
        for one in said:
            meaning = (one.message.__doc__ or "").split("\n")[0]
            fields = "<br>".join(f"`{name}`: {field.wanted}" for name, field in one.fields)
            lines.append(f"| {one.kind} | **{one.message.__name__}** {meaning} | {fields} |")
        yield said.envelope, "\n".join(lines) + "\n"


def walk(files: Iterable[str]) -> str:
    """The files by room, both in the order in which they are first passed."""
    by_room: dict[str, list[str]] = {}
    for file in files:
        room, _, name = file.rpartition("/")
        by_room.setdefault(room, []).append(f"`{name}`")
    return "\n".join(
        f"{number}. `{room}/`: {', '.join(names)}" for number, (room, names) in enumerate(by_room.items(), 1)
    )


def rooms() -> str:
    """A table of all rooms: how many files, and the first sentence of the manual."""
    lines = ["| room | files | what it does |", "|---|---:|---|"]
    for house in HOUSES:
        for face in sorted((ROOT / house).rglob("__init__.py")):
            room, manual = face.parent, ast.get_docstring(ast.parse(face.read_text(encoding="utf-8"))) or ""
            files = sum(1 for file in room.glob("*.py") if not file.name.startswith("__"))
            lines.append(f"| `{room.relative_to(ROOT).as_posix()}/` | {files} | {first_sentence(manual)} |")
    return "\n".join(lines)


def first_sentence(manual: str) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join(manual.split("\n\n", 1)[0].split())
    return re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0]


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SPEC.write_text(drawn(SPEC.read_text(encoding="utf-8"), spoken), encoding="utf-8")

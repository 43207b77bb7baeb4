"""Survey: which logs of a stream there are in the cluster, and who has them. One question of a client, for which its
broker asks all others what they have (`logs`).

    questions ----> next round ----> each broker is asked, page by page ----> all have answered, or cannot ----> answers

Surveys of one stream share a round. Who asks while one is under way waits for the next, because what it wants to know
may have happened since: so after a loss that a thousand subscribers hear of, each broker is asked twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headgate.protocol.data import LogKind
from headgate.protocol.errors import Refused

from ..deferred import Deferred
from ..limits import LOGS_PAGE_MIN
from .explain import ring_of
from .pages import page_of

if TYPE_CHECKING:
    from ..node import Node

__all__ = ["Surveys"]

_NAME = {"broker": str, "epoch": int, "kind": str, "stream": str}
"""What names a log in the answer to `logs`."""

Waiting = list[tuple[int, Deferred]]
"""How much of the answer each has already, and the place of the rest."""


@dataclass(slots=True)
class _Round:
    """What each broker has told; `open` are those that may have more to tell, `due` those of them to be asked."""

    stream: str | None
    kind: LogKind
    waiting: Waiting
    told: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    due: list[str] = field(default_factory=list)

    def take(self, broker: str, page: Any) -> None:
        """A broker has told a page of its logs, or why it does not."""
        if isinstance(page, list) and all(map(_is_named, page)):
            self.told.setdefault(broker, []).extend(page)
            if len(page) >= LOGS_PAGE_MIN:
                self.due.append(broker)
                return
        else:
            self.told.pop(broker, None)
        self.open.discard(broker)


def _is_named(row: Any) -> bool:
    return isinstance(row, dict) and all(type(row.get(name)) is kind for name, kind in _NAME.items())


class Surveys:
    """Asks every broker for its logs, for clients of this one; `ask_own` asks this one."""

    def __init__(self, node: Node, ask_own: Callable[[Node, str, dict[str, Any], float], Any]) -> None:
        self._node = node
        self._ask_own = ask_own
        self.asked: dict[tuple[str | None, LogKind], Waiting] = {}
        """What waits for its next round."""
        self.rounds: dict[tuple[str | None, LogKind], _Round] = {}
        """Those under way."""

    def survey(self, stream: str | None, kind: LogKind, after: int) -> Deferred:
        """The answer, from its row `after` on."""
        deferred = Deferred()
        self.asked.setdefault((stream, kind), []).append((after, deferred))
        return deferred

    @property
    def is_due(self) -> bool:
        """Whether `go_on` has something to do."""
        return any(key not in self.rounds for key in self.asked) or any(
            one.due or not one.open for one in self.rounds.values()
        )

    def go_on(self, now: float) -> None:
        """Begin rounds, ask on, and answer what is complete."""
        for key in [key for key in self.asked if key not in self.rounds]:
            one = self.rounds[key] = _Round(*key, self.asked.pop(key))
            one.due = [self._node.config.name, *(info.name for info in self._node.cluster.linked())]
            one.open |= set(one.due)
        for key, one in list(self.rounds.items()):
            due, one.due = one.due, []
            for broker in due:
                self._ask(one, broker, now)
            if not one.open:
                del self.rounds[key]
                self._say(one, now)

    def _ask(self, one: _Round, broker: str, now: float) -> None:
        node = self._node
        question: dict[str, Any] = {"kind": one.kind.name.lower(), "after": len(one.told.get(broker, ()))}
        if one.stream is not None:
            question["stream"] = one.stream
        try:
            if broker == node.config.name:
                answer = self._ask_own(node, "logs", question, now)
            else:
                answer = node.inquiries.ask(broker, "logs", question, now)
        except Refused as refused:
            answer = refused
        if isinstance(answer, Deferred):
            answer.tell = lambda page: one.take(broker, page)
        else:
            one.take(broker, answer)

    def _say(self, one: _Round, now: float) -> None:
        node = self._node
        rows = [{**row, "holder": broker} for broker, page in one.told.items() for row in page]
        rows.sort(key=lambda row: (*(row[name] for name in _NAME), row["holder"]))
        ring = ring_of(node, now)
        is_stored = False
        if one.stream is not None:
            settings = node.streams.settings_of(one.stream)
            is_stored = settings.audit or (one.kind == LogKind.EVENTS and settings.stored)
        facts = {
            "stored": is_stored,
            "copies": node.config.log_copies,
            "away": _away(ring, {row["broker"] for row in rows}, one.told.keys()),
            "brokers": {row["name"]: row["client_address"] for row in ring["brokers"] if row["state"] != "down"},
            "total": len(rows),
        }
        for after, deferred in one.waiting:
            deferred.say({**facts, "logs": page_of(rows[after:], node.config.limits.answer_rows)})


def _away(ring: dict[str, Any], writers: set[str], answered: Any) -> list[str]:
    """Who did not answer: of those in the ring, of those who were there once, of those who wrote logs.

    A broker that has forgotten another's name knows the address; then it is most likely one of those who wrote.
    """
    names = {row["name"] for row in (*ring["brokers"], *ring["away"])} - {""}
    unnamed = [row["address"] for row in ring["away"] if not row["name"]]
    forgotten = (writers - names).difference(answered)
    return sorted({*names.difference(answered), *forgotten, *unnamed[len(forgotten) :]})

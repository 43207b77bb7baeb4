"""What a broker answers about logs and producers: ASK verbs, as in `questions.py`. Most answers come from the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate.protocol.batch import Batch
from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.limits import CREDIT_MAX
from headgate.protocol.log_rows import LogKind, LogName, decode_row

from .later import Later
from .limits import ANSWER_IDS_MIN
from .log import HeldLog
from .pages import page_of

if TYPE_CHECKING:
    from .node import Node

__all__ = ["LOG_VERBS"]

_KINDS = {kind.name.lower(): int(kind) for kind in LogKind}
_WORDS = {kind: word for word, kind in _KINDS.items()}


def _logs(node: Node, arguments: dict[str, Any], now: float) -> Any:
    kind, stream, after = arguments.get("kind"), arguments.get("stream"), arguments.get("after", 0)
    if kind is not None and (type(kind) is not str or kind not in _KINDS):
        raise Refused(ErrorCode.BAD_REQUEST, f"logs: `kind` is one of {', '.join(_KINDS)}")
    if (stream is not None and type(stream) is not str) or type(after) is not int or after < 0:
        raise Refused(ErrorCode.BAD_REQUEST, "logs: `stream` is a name, and `after` how many of the list you have")
    wanted = [
        held
        for name, held in sorted(node.log.logs.items(), key=lambda item: item[0])
        if kind in (None, _WORDS[name.kind]) and stream in (None, name.stream)
    ]
    described = wanted[after : after + len(page_of(_describe(node, held, held.next) for held in wanted[after:]))]
    unsafe = [(held, held.next) for held in described if held.readable < held.next]
    if not unsafe:
        return [_describe(node, held, held.next) for held in described]
    later = Later()

    def told(refused: Refused | None, now: float) -> None:
        """Once all that was there is safe, the end is where reading ends: nothing before it is taken back."""
        later.say([_describe(node, held, held.next if refused else held.readable) for held in described])

    node.log.wait(unsafe, told, now)
    return later


def _describe(node: Node, held: HeldLog, end: int) -> dict[str, Any]:
    name = held.name
    return {
        "broker": name.broker,
        "epoch": name.epoch,
        "kind": _WORDS[name.kind],
        "stream": name.stream,
        "first": held.first,
        "next": end,
        "own": held.own,
        "open": held.own and name.epoch == node.log.epoch and node.log.vouched,
        "bytes": held.bytes,
        "first_time": held.first_time,
        "last_time": held.last_time,
    }


def _log_at(node: Node, arguments: dict[str, Any], now: float) -> Any:
    broker, epoch, kind, stream, time = (arguments.get(one) for one in ("broker", "epoch", "kind", "stream", "time"))
    if type(time) is not int or not 0 <= time <= CREDIT_MAX:
        raise Refused(ErrorCode.BAD_REQUEST, "log.at: `time` is microseconds since 1970")
    held = None
    if type(broker) is str and type(epoch) is int and type(kind) is str and type(stream) is str and kind in _KINDS:
        held = node.log.logs.get(LogName(broker, epoch, _KINDS[kind], stream))
    if held is None:
        text = "log.at: this broker has no such log; `logs` tells what it has: broker, epoch, kind and stream"
        raise Refused(ErrorCode.NOT_FOUND, text)
    later = Later()

    def found(value: Any, now: float) -> None:
        later.say({"position": held.next if value is None else max(value, held.first)})

    node.log.find_time(held.name, time, found)
    return later


def _producer_open(node: Node, arguments: dict[str, Any], now: float) -> Any:
    return node.producers.open_producer(arguments.get("producer"), arguments.get("epoch"), now)


def _producers(node: Node, arguments: dict[str, Any], now: float) -> Any:
    job, after = arguments.get("job"), arguments.get("after", "")
    return node.producer_lists.ask(job, after, arguments.get("begins", b""), arguments.get("unless", b""), now)


def _producers_forget(node: Node, arguments: dict[str, Any], now: float) -> Any:
    return node.producer_lists.forget(arguments.get("stream"), now)


def _producer_ids(node: Node, arguments: dict[str, Any], now: float) -> Any:
    producer, after = arguments.get("producer"), arguments.get("after", 0)
    if type(producer) is not str or type(after) is not int or not 0 <= after <= CREDIT_MAX:
        raise Refused(ErrorCode.BAD_REQUEST, "producer.ids: give a `producer`, and `after`: how many ids you have")
    node.log.check_room(0)
    later = Later()

    def found(value: Any, now: float) -> None:
        if value is None:
            text = (
                "rows of this producer cannot be read any more: the log is damaged there; ask a broker that has a copy"
            )
            later.say(Refused(ErrorCode.NOT_FOUND, text))
            return
        rows, following = value
        try:
            first, ids, is_cut = _ids(rows, after)
        except ProtocolViolation as error:
            later.say(Refused(ErrorCode.NOT_FOUND, f"a row of this producer cannot be read: {error.text}"))
            return
        upcoming = first + len(ids)
        later.say({"first": first, "ids": ids, "next": upcoming if is_cut or following is not None else None})

    node.log.find_ids(producer, after, found)
    return later


def _ids(rows: list[bytes], after: int) -> tuple[int, list[Any], bool]:
    """Ids of a producer's events in these rows, without a hole, the number of the first, and whether more follow.

    They begin at `after`, or behind it where this disk has nothing of that. Raises ProtocolViolation.
    """
    first, ids = after, list[Any]()
    for data in rows:
        row = decode_row(data)
        at = first + len(ids)
        if row.number + row.count <= at:  # the same events, in another log
            continue
        if not ids:
            first = at = max(at, row.number)
        if row.number > at or len(ids) >= ANSWER_IDS_MIN:
            return first, ids, True
        column = Batch("", row.count, b"", b"", {"ids": row.ids}).column("ids") or ()
        ids += column[at - row.number :]
    return first, ids, False


LOG_VERBS: dict[str, Callable[[Any, dict[str, Any], float], Any]] = {
    "logs": _logs,
    "log.at": _log_at,
    "producer.open": _producer_open,
    "producer.ids": _producer_ids,
    "producers": _producers,
    "producers.forget": _producers_forget,
}

"""What a broker answers about itself: ASK verbs, each a function from arguments to a value for people and scripts.

A verb raises Refused when it cannot answer. Values are plain maps and lists; fields may be added, never renamed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from headgate.matching import (
    ConditionError,
    MatchingError,
    XPath,
    attributes,
    check_topic,
    deltas,
    explain,
    extensions,
    parse_condition,
    parse_pattern,
    to_spark,
    to_text,
)
from headgate.protocol.data import Batch, LogKind, LogName, decode_row
from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.limits import CREDIT_MAX

from ..deferred import Deferred
from ..delivery import SETTINGS, ClientSession, Stream, check_settings
from ..keyspace import declared_domain
from ..limits import ANSWER_IDS_MIN, ANSWER_LENGTH_MAX, SCHEMA_ATTRIBUTES_MAX, SLOWEST_MAX
from ..log import HeldLog
from .access import USER
from .checks import checks_of, moves_of
from .cubes import cubes_of
from .explain import last_sent, lives_on, ring_of
from .inquiries import COORDINATED, INQUIRED
from .pages import page_of
from .schema_changes import changed_schema, changes_of, defaults_of

if TYPE_CHECKING:
    from ..node import Node

__all__ = [
    "LOG_VERBS",
    "VERBS",
    "answer_of",
    "ask",
]

# What a broker answers about logs and producers: ASK verbs, as in `questions.py`. Most answers come from the disk.

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
    rows = (_describe(node, held, held.next) for held in wanted[after:])
    described = wanted[after : after + len(page_of(rows, node.config.limits.answer_rows))]
    unsafe = [(held, held.next) for held in described if held.readable < held.next]
    if not unsafe:
        return [_describe(node, held, held.next) for held in described]
    deferred = Deferred()

    def told(refused: Refused | None, now: float) -> None:
        """Once all that was there is safe, the end is where reading ends: nothing before it is taken back."""
        deferred.say([_describe(node, held, held.next if refused else held.readable) for held in described])

    node.log.wait(unsafe, told, now)
    return deferred


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
        "open": held.own and name.epoch == node.log.epoch and node.log.recovered,
        "bytes": held.bytes,
        "first_time": held.first_time,
        "last_time": held.last_time,
    }


def _survey(node: Node, arguments: dict[str, Any], now: float) -> Any:
    kind, stream, after = arguments.get("kind", "events"), arguments.get("stream"), arguments.get("after", 0)
    if type(kind) is not str or kind not in _KINDS:
        raise Refused(ErrorCode.BAD_REQUEST, f"survey: `kind` is one of {', '.join(_KINDS)}")
    if (stream is not None and type(stream) is not str) or type(after) is not int or after < 0:
        raise Refused(ErrorCode.BAD_REQUEST, "survey: `stream` is a name, and `after` how many of the rows you have")
    return node.surveys.survey(stream, LogKind(_KINDS[kind]), after)


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
    deferred = Deferred()

    def found(value: Any, now: float) -> None:
        deferred.say({"position": held.next if value is None else max(value, held.first)})

    node.log.find_time(held.name, time, found)
    return deferred


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
    deferred = Deferred()

    def found(value: Any, now: float) -> None:
        if value is None:
            text = (
                "rows of this producer cannot be read any more: the log is damaged there; ask a broker that has a copy"
            )
            deferred.say(Refused(ErrorCode.NOT_FOUND, text))
            return
        rows, following = value
        try:
            first, ids, is_cut = _ids(rows, after)
        except ProtocolViolation as error:
            deferred.say(Refused(ErrorCode.NOT_FOUND, f"a row of this producer cannot be read: {error.text}"))
            return
        upcoming = first + len(ids)
        deferred.say({"first": first, "ids": ids, "next": upcoming if is_cut or following is not None else None})

    node.log.find_ids(producer, after, found)
    return deferred


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
    "survey": _survey,
    "log.at": _log_at,
    "producer.open": _producer_open,
    "producer.ids": _producer_ids,
    "producers": _producers,
    "producers.forget": _producers_forget,
}


_SCHEMA_TYPES = ("bool", "int", "float", "string")
_DOUBLE_MAX = math.nextafter(math.inf, 0.0)


def ask(node: Node, verb: str, arguments: dict[str, Any], now: float) -> Any:
    """The answer to a client's question, from the broker that it names with `at`, or from this one. Raises Refused."""
    if verb in COORDINATED and "at" not in arguments:
        arguments = {**arguments, "at": node.durables.coordinator_name(arguments.get("name"))}
    if verb in INQUIRED and arguments.get("at", node.config.name) != node.config.name:
        others = {name: value for name, value in arguments.items() if name != "at"}
        return node.inquiries.ask(arguments["at"], verb, others, now)
    return answer_of(node, verb, arguments, now)


def answer_of(node: Node, verb: str, arguments: dict[str, Any], now: float) -> Any:
    """This broker's own answer to one question. Raises Refused."""
    answer = VERBS.get(verb)
    if verb in COORDINATED:
        node.durables.coordinator.check_owner(arguments, now)
    if answer is None:
        raise Refused(ErrorCode.BAD_REQUEST, f"no such question: {verb}; there are {', '.join(sorted(VERBS))}")
    return answer(node, arguments, now)


def _status(node: Node, arguments: dict[str, Any], now: float) -> Any:
    return node.statistics(now).as_map()


def _ring(node: Node, arguments: dict[str, Any], now: float) -> Any:
    return ring_of(node, now)


def _brokers(node: Node, arguments: dict[str, Any], now: float) -> Any:
    """Names alone, for those who may not see the ring and ask all brokers about what is theirs."""
    ring = ring_of(node, now)
    return {
        "broker": ring["broker"],
        "brokers": [{key: one[key] for key in ("name", "state")} for one in ring["brokers"]],
    }


def _streams(node: Node, arguments: dict[str, Any], now: float) -> Any:
    """Those in use, and those that have a schema and were not used yet."""
    after, only = _after_name(arguments), _only_stream(arguments)
    names = sorted(
        name for name in {**node.streams.by_name, **node.streams.schemas} if name > after and only in (None, name)
    )
    rows = (
        {
            "stream": stream.name,
            "events": stream.events,
            "deliveries": stream.deliveries,
            "subscriptions": node.registry.resting(stream.name),
            "publishers": len(stream.publishers),
            "attributes": list(stream.index.attributes()),
            "schema": stream.name in node.streams.schemas,
            "durability": stream.settings.durability,
            "placement": stream.settings.placement,
            "audit": stream.settings.audit,
        }
        for stream in (_stream_of(node, name) for name in names)
    )
    return page_of(rows, node.config.limits.answer_rows)


def _stream_of(node: Node, name: str) -> Stream:
    """The stream of that name; one that is only declared is made for this answer, and not kept."""
    return node.streams.by_name.get(name) or Stream(name, settings=node.streams.settings_of(name))


def _subs(node: Node, arguments: dict[str, Any], now: float) -> Any:
    after = arguments.get("after", 0)
    if type(after) is not int:
        raise Refused(ErrorCode.BAD_REQUEST, "subs: `after` is the id of the last subscription that you have")
    only = _only_stream(arguments)
    rows = (
        {
            "id": identity,
            "subscription": subscription.number,
            "client": subscription.session.name,
            **({"user": subscription.session.user} if subscription.session.user else {}),
            "address": subscription.session.address,
            "stream": subscription.stream,
            "pattern": str(subscription.pattern),
            "exact": subscription.pattern.exact,
            "condition": subscription.condition,
            "connected": subscription.session.link is not None,
            "dropped": subscription.dropped,
            **_pace_of(subscription.session, subscription.number),
            "subid": node.registry.subid_of(identity),
        }
        for identity, subscription in node.subscribers.by_identity.items()
        if identity > after
        and only in (None, subscription.stream)
        and subscription.session.key in node.subscribers.by_key  # others' are told at their homes
        and subscription.session.subscriptions.get(subscription.number) is subscription  # no former version
    )
    return page_of(rows, node.config.limits.answer_rows)


def _durables(node: Node, arguments: dict[str, Any], now: float) -> Any:
    """The durable subscriptions that this broker coordinates, by name."""
    after = arguments.get("after", "")
    if type(after) is not str:
        raise Refused(ErrorCode.BAD_REQUEST, "durables: `after` is the name of the last one that you have")
    user = arguments.get(USER, "")
    rows = node.durables.coordinator.rows(after, now, user if type(user) is str else "")
    return page_of(rows, node.config.limits.answer_rows)


def _durable(node: Node, arguments: dict[str, Any], now: float) -> Any:
    return node.durables.coordinator.row(arguments.get("name"), now)


def _dead(node: Node, arguments: dict[str, Any], now: float) -> Any:
    return node.durables.coordinator.dead_of(arguments.get("name"))


DURABLE_VERBS: dict[str, Callable[[Any, dict[str, Any], float], Any]] = {
    "durables": _durables,
    "durable": _durable,
    "durable_set": lambda node, arguments, now: node.durables.coordinator.change(arguments, now),
    "durable_seek": lambda node, arguments, now: node.durables.coordinator.seek(arguments, now),
    "durable_rm": lambda node, arguments, now: node.durables.coordinator.remove(arguments.get("name"), now),
    "dead": _dead,
    "dead_replay": lambda node, arguments, now: node.durables.coordinator.replay_dead(arguments, now),
}


def _pace_of(session: ClientSession, number: int | None = None) -> dict[str, Any]:
    """Whether a client, or one of its subscriptions, keeps up, and what waits for it."""
    whole = session.outbox_events, session.outbox_bytes
    events, size = whole if number is None else session.waiting_of(number)
    return {
        "pace": session.pace if number is None else session.pace_of(number),
        "credit": max(0, session.allowed - session.sent),
        "waiting_events": events,
        "waiting_bytes": size,
    }


def _slowest(node: Node, arguments: dict[str, Any], now: float) -> Any:
    """The clients for whom most waits or was dropped; none of those that keep up and always did."""
    sessions = (one for one in node.subscribers.by_key.values() if one.outbox_events or one.drops)
    return [
        {
            "client": session.name,
            "address": session.address,
            "subscriptions": len(session.subscriptions),
            "dropped": session.drops,
            **_pace_of(session),
        }
        for session in nlargest(SLOWEST_MAX, sessions, key=lambda one: (one.outbox_bytes, one.drops))
    ]


def _explain(node: Node, arguments: dict[str, Any], now: float) -> Any:
    pattern_text, condition_text = arguments.get("pattern"), arguments.get("condition") or ""
    if type(pattern_text) is not str or type(condition_text) is not str:
        raise Refused(ErrorCode.BAD_REQUEST, "explain: give a `pattern`, and a `condition` if there is one")
    exact = arguments.get("exact", False) is True
    try:
        pattern = parse_pattern(pattern_text, exact=exact)
        condition = parse_condition(condition_text) if condition_text else None
    except ConditionError as error:
        raise Refused(ErrorCode.BAD_CONDITION, str(error)) from error
    except MatchingError as error:
        raise Refused(ErrorCode.BAD_PATTERN, str(error)) from error
    answer: dict[str, Any] = {
        "pattern": str(pattern),
        "exact": pattern.exact,
        "stream": pattern.stream,
        "condition": to_text(condition) if condition is not None else "",
        **lives_on(node, pattern, condition),
    }
    if node.streams.settings_of(pattern.stream).stored:
        answer["producers"] = {"known": len(node.producers), "limit": node.producers.limit}
    if condition is not None:
        answer["attributes"] = sorted(attributes(condition))
        answer |= {"checks": checks} if (checks := checks_of(condition)) else {}
        answer |= moves_of(condition, node.streams.schemas.get(pattern.stream))
        spark = to_spark(condition)
        answer |= {"spark": spark} if len(spark) <= ANSWER_LENGTH_MAX else {}  # control characters take six each there
    event = arguments.get("event")
    if condition is not None and deltas(condition):
        topic = event.get("topic") if type(event) is dict else None
        answer["dynamic"] = "local"
        answer["delta"] = last_sent(node, pattern, answer["condition"], topic if type(topic) is str else None)
    if event is not None:
        answer |= _verdicts(pattern, condition, event)
    return answer


def _verdicts(pattern: Any, condition: Any, event: Any) -> dict[str, Any]:
    if type(event) is not dict or type(event.get("attrs", {})) is not dict:
        raise Refused(ErrorCode.BAD_REQUEST, 'explain: an event is {"topic": …, "attrs": {…}}')
    result: dict[str, Any] = {}
    topic = event.get("topic")
    topic_matches = None
    if topic is not None:
        try:
            topic_matches = type(topic) is str and bool(check_topic(topic)) and pattern.matches(topic)
        except MatchingError as error:
            raise Refused(ErrorCode.BAD_TOPIC, str(error)) from error
        result["topic_matches"] = topic_matches
    verdict = "true"
    predicates = []
    if condition is not None:
        explanation = explain(condition, event.get("attrs", {}))
        verdict = explanation.verdict
        predicates = [
            {"predicate": leaf.text, "verdict": leaf.verdict} | ({"why": leaf.why} if leaf.why else {})
            for leaf in explanation.predicates
        ]
    result["predicates"] = predicates
    result["verdict"] = verdict
    is_served = condition is None or not any(isinstance(one, XPath) for one in extensions(condition))
    result["delivered"] = verdict == "true" and is_served and topic_matches is not False
    return result


def _schema_put(node: Node, arguments: dict[str, Any], now: float) -> Any:
    """What is given is merged into the schema there is, or takes its place (`replace`), once that is known."""
    stream, given, replace = _stream_name(arguments), arguments.get("schema"), arguments.get("replace", False)
    if type(given) is not dict or type(given.get("attributes", {})) not in (dict, type(None)):
        raise Refused(ErrorCode.BAD_REQUEST, 'a schema is {"attributes": {"price": {"type": "float", "min": 0}}}')
    if type(replace) is not bool:
        raise Refused(ErrorCode.BAD_REQUEST, "schema.put: `replace` is true or false")
    if node.publishers.knows(now):
        return _put_schema(node, stream, given, replace, now)
    deferred = Deferred()

    def put(shut_out: str, now: float) -> None:
        try:
            if shut_out:
                raise Refused(ErrorCode.UNAVAILABLE, f"this broker is in no cluster: {shut_out}")
            _put_schema(node, stream, given, replace, now).tell = deferred.say
        except Refused as error:
            deferred.say(error)

    node.publishers.when_known(put)
    return deferred


def _put_schema(node: Node, stream: str, given: dict[str, Any], replace: bool, now: float) -> Deferred:
    before = node.streams.schemas.get(stream)
    schema = changed_schema(stream, before, given, replace)
    _check_schema(schema)
    if stream not in node.streams.schemas and len(node.streams.schemas) >= node.config.limits.schemas:
        raise Refused(ErrorCode.LIMIT, f"this broker keeps at most {node.config.limits.schemas} schemas")
    answer = {**_schema_row(stream, schema), "changed": changes_of(before, schema)}
    return _write_schema(node, stream, schema, answer, now)


def _schema_row(stream: str, schema: Any) -> dict[str, Any]:
    """A stream, its schema, and what holds of it without being said."""
    return {"stream": stream, "schema": schema, "defaults": defaults_of(schema)}


def _check_schema(schema: dict[str, Any]) -> None:
    declared = schema.get("attributes", {})
    if len(declared) > SCHEMA_ATTRIBUTES_MAX:
        raise Refused(ErrorCode.LIMIT, f"a schema names at most {SCHEMA_ATTRIBUTES_MAX} attributes")
    for name, attribute in declared.items():
        _check_attribute(name, attribute)
    unknown = set(schema) - {"attributes", *SETTINGS}
    if unknown:
        text = f"unknown key {min(map(str, unknown))!r} in the schema; there are attributes, {', '.join(SETTINGS)}"
        raise Refused(ErrorCode.BAD_REQUEST, text)
    check_settings(schema)


def _write_schema(node: Node, stream: str, schema: Any, answer: Any, now: float) -> Deferred:
    """Answered when every broker has it. Raises Refused when this one could not keep it."""
    obstacle = node.registry.schemas.obstacle
    if obstacle:
        raise Refused(ErrorCode.NOT_STORED, f"nothing was changed, for this broker could not keep it: {obstacle}")
    deferred = Deferred()
    text = "the cluster could not take this, because brokers do not answer: try again in a moment"

    def written(done: bool, now: float) -> None:
        deferred.say(answer if done else Refused(ErrorCode.UNAVAILABLE, text))

    node.registry.schemas.write(stream, schema, written, now)
    return deferred


def _check_attribute(name: Any, attribute: Any) -> None:
    if type(attribute) is not dict or attribute.get("type") not in _SCHEMA_TYPES:
        text = f"attribute {name!r}: a type is one of {', '.join(_SCHEMA_TYPES)}"
        raise Refused(ErrorCode.BAD_REQUEST, text)
    unknown = set(attribute) - {"type", "min", "max", "precision"}
    if unknown:
        text = f"attribute {name!r}: unknown key {min(unknown)!r}; there are type, min, max and precision"
        raise Refused(ErrorCode.BAD_REQUEST, text)
    for key in ("min", "max", "precision"):
        bound = attribute.get(key)
        if bound is not None and (type(bound) not in (int, float) or not -_DOUBLE_MAX <= bound <= _DOUBLE_MAX):
            raise Refused(ErrorCode.BAD_REQUEST, f"attribute {name!r}: {key} is a number, and a finite one")
    low, high, precision = attribute.get("min"), attribute.get("max"), attribute.get("precision")
    if low is not None and high is not None and not low < high:
        raise Refused(ErrorCode.BAD_REQUEST, f"attribute {name!r}: min is below max")
    if precision is None:
        return
    if not precision > 0:
        raise Refused(ErrorCode.BAD_REQUEST, f"attribute {name!r}: precision is above 0, or left out")
    if low is not None and high is not None and declared_domain("", name, low, high, precision) is None:
        text = f"attribute {name!r}: from min to max are at most 2^48 steps of precision: take a larger one, or none"
        raise Refused(ErrorCode.BAD_REQUEST, text)


def _schema_get(node: Node, arguments: dict[str, Any], now: float) -> Any:
    stream = _stream_name(arguments)
    schema = node.streams.schemas.get(stream)
    if schema is None:
        raise Refused(ErrorCode.NOT_FOUND, f"stream {stream!r} has no schema; `headgate schema put` gives it one")
    return _schema_row(stream, schema)


def _schema_list(node: Node, arguments: dict[str, Any], now: float) -> Any:
    after = _after_name(arguments)
    schemas = sorted(node.streams.schemas.items())
    rows = (_schema_row(name, schema) for name, schema in schemas if name > after)
    return page_of(rows, node.config.limits.answer_rows)


def _schema_rm(node: Node, arguments: dict[str, Any], now: float) -> Any:
    answer = _schema_get(node, arguments, now)
    return _write_schema(node, answer["stream"], None, answer, now)


def _only_stream(arguments: dict[str, Any]) -> str | None:
    stream = arguments.get("stream")
    if stream is not None and type(stream) is not str:
        raise Refused(ErrorCode.BAD_REQUEST, "`stream` is the name of the only stream that you want to hear of")
    return stream


def _after_name(arguments: dict[str, Any]) -> str:
    after = arguments.get("after", "")
    if type(after) is not str:
        raise Refused(ErrorCode.BAD_REQUEST, "`after` is the name of the last stream that you have")
    return after


def _stream_name(arguments: dict[str, Any]) -> str:
    stream = arguments.get("stream")
    try:
        if type(stream) is not str or "/" in stream:
            raise Refused(ErrorCode.BAD_REQUEST, "a stream is the first level of a topic, like 'quotes'")
        check_topic(stream)
    except MatchingError as error:
        raise Refused(ErrorCode.BAD_TOPIC, str(error)) from error
    return stream


VERBS: dict[str, Callable[[Any, dict[str, Any], float], Any]] = {
    "status": _status,
    "ring": _ring,
    "brokers": _brokers,
    "streams": _streams,
    "subs": _subs,
    "slowest": _slowest,
    "explain": _explain,
    "cubes": cubes_of,
    "schema.put": _schema_put,
    "schema.get": _schema_get,
    "schema.list": _schema_list,
    "schema.rm": _schema_rm,
    **LOG_VERBS,
    **DURABLE_VERBS,
}

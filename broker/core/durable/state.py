"""The state of a durable subscription: its record and its cursor, as they are kept on k disks and joined.

Two states of one name are joined, in any order and any number of times, and nothing that either settled is owed again:
so brokers that lost sight of each other need no vote. What may be owed again after it was settled, by a seek, by a
change of the condition or by the replay of a dead letter, raises `rewinds`, and of two states the one with more of
them has the cursors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from headgate.matching import MatchingError, check_topic
from headgate.protocol.data import pack_value, unpack_value
from headgate.protocol.errors import ErrorCode, LocalError, ProtocolViolation, Refused
from headgate.protocol.limits import ATTRIBUTE_NAME_LENGTH_MAX, CONDITION_LENGTH_MAX, CREDIT_MAX, TOPIC_LENGTH_MAX

from ..keyspace import RING_SIZE
from ..limits import POSITIONS_MAX
from .limits import (
    ACK_WAIT_MAX,
    ACK_WAIT_MIN,
    BACKOFF_STEPS_MAX,
    DEAD_KEPT_MAX,
    DELAY_SECONDS_MAX,
    FORMERS_MAX,
    MAX_DELIVER_MAX,
    MAX_UNACKED_MAX,
    NAME_LENGTH_MAX,
    OWED_EVENTS_MAX,
    PLACES_MAX,
    REASON_LENGTH_MAX,
    SECTIONS_MAX,
    STATE_BYTES_MAX,
)
from .messages import Place
from .runs import Run, count_of, intersect, join_runs, runs_of, split_runs, subtract, union

__all__ = [
    "Cursor",
    "DeadLetter",
    "DurableState",
    "Former",
    "Options",
    "RECORD_FIELDS",
    "Section",
    "check_options",
    "check_settings",
    "decode_state",
    "encode_state",
    "join",
    "key_attribute",
    "parse_positions",
    "positions_text",
    "size_of_former",
    "with_record",
]

_FORMAT = 1
_KEYLESS = 6
"""Parts of a dead letter as it was written before keys were kept with them."""
_COUNTS_MAX = 2**32 - 1
_ITEMS_MAX = 262_144


class Section(NamedTuple):
    """Positions before these ends have to match this condition as well."""

    condition: str
    ends: dict[Place, int]


class Former(NamedTuple):
    """What a subscription asked for before a change: positions before these ends may have been handed out by it."""

    condition: str
    sections: tuple[Section, ...]
    ends: dict[Place, int]


class Cursor(NamedTuple):
    """Every position of a log before `upto` is settled (acknowledged, given up, or known not to match), but `owed`."""

    upto: int
    owed: tuple[Run, ...] = ()


class DeadLetter(NamedTuple):
    """An event that was given up: where it is, how often it was handed out, why, and when (microseconds since 1970).

    `key` is the hash of its key, where events of one key stay with one client.
    """

    place: Place
    position: int
    delivered: int
    reason: str
    time: int
    key: int = 0


@dataclass(slots=True)
class DurableState:
    """All that is kept of a durable subscription."""

    name: str
    version: int = 1
    removed: bool = False
    generation: int = 0
    stream: str = ""
    pattern: str = ""
    exact: bool = False
    condition: str = ""
    sharing: str = "exclusive"
    ack_wait: float = 30.0
    max_deliver: int = 0
    backoff: tuple[float, ...] = ()
    max_unacked: int = 1000
    dead_letter: str = ""
    created: int = 0
    """When it began, in microseconds since 1970; 0 where it began at the start of the logs."""
    starts: dict[Place, int] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    cursors: dict[Place, Cursor] = field(default_factory=dict)
    handed: dict[Place, int] = field(default_factory=dict)
    counts: dict[Place, dict[int, int]] = field(default_factory=dict)
    dead: tuple[DeadLetter, ...] = ()
    rewinds: int = 0
    """How often something settled was made owed again. Who creates a name anew over its tombstone begins with one more
    than that had."""
    former: tuple[Former, ...] = ()
    """Conditions of before, as far as something is owed behind which they may have handed out what is settled."""
    owner: str = ""
    """The user whose rights say what of it is fed; empty where nobody is named."""
    coordinator: int = 0
    """The broker whose generation this is: of two that took the same number, a disk knows one."""
    base: int = 0
    """The newest generation whose fence was complete when this was written: it has all that was confirmed before."""


_FIELDS = (
    *("version", "removed", "stream", "pattern", "exact", "condition", "sharing", "ack_wait", "max_deliver"),
    *("backoff", "max_unacked", "dead_letter", "created", "starts", "sections"),
)
"""As they are written; an owner and former conditions come behind all else, where there are any."""

RECORD_FIELDS = (*_FIELDS, "owner", "former")
"""What people set: an amendment changes these, and of two states the one of the newer version has them."""


def with_record(state: DurableState, record: DurableState) -> DurableState:
    """The cursors of the one with the record of the other."""
    return replace(state, **{name: getattr(record, name) for name in RECORD_FIELDS})


# --- Join -------------------------------------------------------------------------------------------------------------


def join(left: DurableState, right: DurableState) -> DurableState:
    """What is known of a name when both states are: commutative, associative, idempotent.

    Of different bases the larger one has all that was confirmed; what else the other one has was written by a
    coordinator that was fenced off, and nobody was told that it is kept. States of one base are joined.
    """
    record = max(left, right, key=lambda state: (state.base, _record_rank(state)))
    joined = replace(
        record,
        generation=max(left.generation, right.generation),
        coordinator=max((one.generation, one.coordinator) for one in (left, right))[1],
        handed=_larger(left.handed, right.handed),
    )
    if left.base != right.base:
        return joined
    joined.rewinds = max(left.rewinds, right.rewinds)
    if left.rewinds != right.rewinds:
        kept = max(left, right, key=lambda state: state.rewinds)
        return replace(joined, cursors=dict(kept.cursors), counts=dict(kept.counts), dead=kept.dead)
    joined.cursors = {
        place: _joined_cursor(left.cursors.get(place), right.cursors.get(place))
        for place in sorted({*left.cursors, *right.cursors})
    }
    joined.counts = _joined_counts(left, right, joined.cursors)
    joined.dead = newest_dead([*left.dead, *right.dead], DEAD_KEPT_MAX)
    return joined


def _record_rank(state: DurableState) -> tuple[int, bool, bytes]:
    return state.version, state.removed, pack_value([_plain(getattr(state, name)) for name in RECORD_FIELDS])


def _larger(left: Mapping[Place, int], right: Mapping[Place, int]) -> dict[Place, int]:
    return {place: max(left.get(place, 0), right.get(place, 0)) for place in sorted({*left, *right})}


def _joined_cursor(left: Cursor | None, right: Cursor | None) -> Cursor:
    """A position is owed when neither has settled it, and settled by the one that alone has come so far."""
    if left is None or right is None:
        only = left or right
        assert only is not None
        return only
    if left.upto > right.upto:
        left, right = right, left
    common = intersect(left.owed, right.owed)
    beyond = intersect(right.owed, [(left.upto, right.upto)])
    return Cursor(right.upto, tuple(union([*common, *beyond])))


def _joined_counts(
    left: DurableState, right: DurableState, cursors: Mapping[Place, Cursor]
) -> dict[Place, dict[int, int]]:
    counts: dict[Place, dict[int, int]] = {}
    for place in sorted({*left.counts, *right.counts}):
        ours, theirs = left.counts.get(place, {}), right.counts.get(place, {})
        owed = cursors[place].owed if place in cursors else ()
        known = [(position, position + 1) for position in sorted({*ours, *theirs})]
        kept = {
            position: max(ours.get(position, 0), theirs.get(position, 0))
            for start, stop in intersect(known, owed)
            for position in range(start, stop)
        }
        if kept:
            counts[place] = kept
    return counts


def newest_dead(dead: Iterable[DeadLetter], kept: int) -> tuple[DeadLetter, ...]:
    """The newest of them, one for each position, from old to new."""
    newest: dict[tuple[Place, int], DeadLetter] = {}
    for letter in dead:
        at = letter.place, letter.position
        if at not in newest or _dead_rank(newest[at]) < _dead_rank(letter):
            newest[at] = letter
    ranked = sorted(newest.values(), key=_dead_rank)
    return tuple(ranked[max(0, len(ranked) - kept) :])


def _dead_rank(letter: DeadLetter) -> tuple[int, DeadLetter]:
    return letter.time, letter


# --- Bytes ------------------------------------------------------------------------------------------------------------


def encode_state(state: DurableState) -> bytes:
    """The state as bytes. Raises LocalError when they are more than a state may have."""
    fields = [
        *([_FORMAT, state.name, state.generation, state.rewinds, state.coordinator, state.base]),
        *(_plain(getattr(state, name)) for name in _FIELDS),
        [[*place, cursor.upto, join_runs(cursor.owed)] for place, cursor in sorted(state.cursors.items())],
        _plain(state.handed),
        [[*place, list(_counted_runs(counts))] for place, counts in sorted(state.counts.items())],
        [[*letter.place, *letter[1:]] for letter in state.dead],
        *([state.owner] if state.owner or state.former else ()),
        *([_plain(state.former)] if state.former else ()),
    ]
    data = pack_value(fields)
    if len(data) > STATE_BYTES_MAX:
        raise LocalError(f"the state of {state.name!r} has {len(data)} bytes, more than {STATE_BYTES_MAX}")
    return data


def size_of_former(former: Former) -> int:
    """Bytes that it adds to a state."""
    return len(pack_value(_plain(former)))


def _plain(value: Any) -> Any:
    """Places by name in order, everything as lists, so that equal values are equal bytes."""
    if isinstance(value, dict):
        return [[*place, position] for place, position in sorted(value.items())]
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


def _counted_runs(counts: Mapping[int, int]) -> Iterator[int]:
    """Start, length and count of each run of positions that were handed out equally often."""
    for run in runs_of(sorted(counts)):
        for count, positions in groupby(range(*run), counts.__getitem__):
            among = list(positions)
            yield from (among[0], len(among), count)


def decode_state(data: bytes) -> DurableState:
    """The state in these bytes. Raises ProtocolViolation, and nothing else, when they are none."""
    parts = _list(unpack_value(data, bytes_max=STATE_BYTES_MAX, items_max=_ITEMS_MAX), "a state")
    former = parts.pop() if len(parts) == 12 + len(_FIELDS) else []
    owner = parts.pop() if len(parts) == 11 + len(_FIELDS) else ""
    _list(parts, "a state", 10 + len(_FIELDS))
    if parts[0] != _FORMAT:
        raise _wrong(f"a state of format {parts[0]!r}, which this version does not know")
    record = dict(zip(_FIELDS, parts[6 : 6 + len(_FIELDS)], strict=True))
    cursors, handed, counts, dead = parts[6 + len(_FIELDS) :]
    state = DurableState(
        name=_name(parts[1]),
        generation=_whole(parts[2], "a generation"),
        rewinds=_whole(parts[3], "rewinds"),
        coordinator=_whole(parts[4], "a broker", RING_SIZE - 1),
        base=_whole(parts[5], "a generation"),
        version=_whole(record["version"], "a version"),
        removed=_flag(record["removed"]),
        stream=_text(record["stream"], TOPIC_LENGTH_MAX),
        pattern=_text(record["pattern"], TOPIC_LENGTH_MAX),
        exact=_flag(record["exact"]),
        condition=_text(record["condition"], CONDITION_LENGTH_MAX),
        sharing=_sharing(record["sharing"]),
        ack_wait=_seconds(record["ack_wait"], ACK_WAIT_MIN, ACK_WAIT_MAX),
        max_deliver=_whole(record["max_deliver"], "max_deliver", MAX_DELIVER_MAX),
        backoff=tuple(_seconds(one, 0.0, DELAY_SECONDS_MAX) for one in _list(record["backoff"], "backoff")),
        max_unacked=_whole(record["max_unacked"], "max_unacked", MAX_UNACKED_MAX),
        dead_letter=_text(record["dead_letter"], TOPIC_LENGTH_MAX),
        created=_whole(record["created"], "a time"),
        starts=_places(record["starts"]),
        sections=tuple(_section(one) for one in _list(record["sections"], "sections")),
        cursors=dict(_cursors(cursors)),
        handed=_places(handed),
        owner=_text(owner, NAME_LENGTH_MAX),
        former=tuple(_former(one) for one in _list(former, "former conditions")),
    )
    state.counts = dict(_counts(counts, state.cursors))
    state.dead = tuple(_dead(one) for one in _list(dead, "dead letters"))
    if len(state.backoff) > BACKOFF_STEPS_MAX or len(state.sections) > SECTIONS_MAX or len(state.dead) > DEAD_KEPT_MAX:
        raise _wrong("more steps of a backoff, sections or dead letters than there may be")
    if len(state.former) > FORMERS_MAX or any(len(one.sections) > SECTIONS_MAX for one in state.former):
        raise _wrong("more former conditions, or sections of one, than there may be")
    return state


def _wrong(text: str) -> ProtocolViolation:
    return ProtocolViolation(f"not a state of a durable subscription: {text}")


def _list(value: Any, what: str, length: int | None = None) -> list[Any]:
    if type(value) is not list or length not in (None, len(value)):
        raise _wrong(f"{what} is a list" + ("" if length is None else f" of {length}"))
    return value


def _whole(value: Any, what: str, most: int = CREDIT_MAX) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise _wrong(f"{what} is a number from 0 to {most}")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong("a flag is true or false")
    return value


def _text(value: Any, most: int) -> str:
    if type(value) is not str or len(value) > most:
        raise _wrong(f"a text has at most {most} characters")
    return value


def _name(value: Any) -> str:
    if type(value) is not str or not is_name(value):
        raise _wrong(_NAME_RULE)
    return value


def _sharing(value: Any) -> str:
    if type(value) is not str or not _is_sharing(value):
        raise _wrong("sharing is exclusive, failover, shared or key:ATTRIBUTE")
    return value


def _seconds(value: Any, least: float, most: float) -> float:
    if type(value) is not float or not least <= value <= most:
        raise _wrong(f"a time is {least:g} to {most:g} seconds")
    return value


def _place(broker: Any, epoch: Any) -> Place:
    if type(broker) is not str or not 0 < len(broker) <= ATTRIBUTE_NAME_LENGTH_MAX:
        raise _wrong("a broker has a name")
    return Place(broker, _whole(epoch, "an epoch"))


def _by_place(value: Any, length: int) -> Iterator[tuple[Place, list[Any]]]:
    """The parts behind the place of each element, whose places ascend."""
    last: Place | None = None
    parts = _list(value, "logs")
    if len(parts) > PLACES_MAX:
        raise _wrong(f"there are at most {PLACES_MAX} logs, not {len(parts)}")
    for one in parts:
        broker, epoch, *rest = _list(one, "a log", 2 + length)
        place = _place(broker, epoch)
        if last is not None and place <= last:
            raise _wrong("logs ascend")
        last = place
        yield place, rest


def _places(value: Any) -> dict[Place, int]:
    return {place: _whole(position, "a position", POSITIONS_MAX) for place, (position,) in _by_place(value, 1)}


def _section(value: Any) -> Section:
    condition, ends = _list(value, "a section", 2)
    return Section(_text(condition, CONDITION_LENGTH_MAX), _places(ends))


def _former(value: Any) -> Former:
    condition, sections, ends = _list(value, "a former condition", 3)
    held = tuple(_section(one) for one in _list(sections, "sections"))
    return Former(_text(condition, CONDITION_LENGTH_MAX), held, _places(ends))


def _cursors(value: Any) -> Iterator[tuple[Place, Cursor]]:
    for place, (upto, owed) in _by_place(value, 2):
        if type(owed) is not bytes:
            raise _wrong("owed runs are bytes")
        runs = split_runs(owed)
        if runs and runs[-1][1] > _whole(upto, "a position", POSITIONS_MAX):
            raise _wrong("what is owed is before the end of the cursor")
        yield place, Cursor(_whole(upto, "a position", POSITIONS_MAX), tuple(union(runs)))


def _counts(value: Any, cursors: Mapping[Place, Cursor]) -> Iterator[tuple[Place, dict[int, int]]]:
    left = OWED_EVENTS_MAX
    for place, (flat,) in _by_place(value, 1):
        numbers = [_whole(number, "a count") for number in _list(flat, "counts")]
        if not numbers or len(numbers) % 3:
            raise _wrong("counts are runs of positions and how often each was handed out")
        runs = [(start, start + length) for start, length in zip(numbers[::3], numbers[1::3], strict=True)]
        times = numbers[2::3]
        if any(start >= stop for start, stop in runs) or any(a[1] > b[0] for a, b in pairwise(runs)):
            raise _wrong("counted positions ascend")
        if any(not 1 < count <= _COUNTS_MAX for count in times):
            raise _wrong("what is counted was handed out more than once")
        left -= count_of(runs)
        if left < 0 or subtract(runs, cursors.get(place, Cursor(0)).owed):
            raise _wrong(f"what is counted is owed, and at most {OWED_EVENTS_MAX} events are")
        yield place, {position: count for run, count in zip(runs, times, strict=True) for position in range(*run)}


def _dead(value: Any) -> DeadLetter:
    parts = _list(value, "a dead letter")
    if len(parts) == _KEYLESS:
        parts = [*parts, 0]
    broker, epoch, position, delivered, reason, time, key = _list(parts, "a dead letter", _KEYLESS + 1)
    return DeadLetter(
        _place(broker, epoch),
        _whole(position, "a position", POSITIONS_MAX),
        _whole(delivered, "a count"),
        _text(reason, REASON_LENGTH_MAX),
        _whole(time, "a time"),
        _whole(key, "a hash", 2**32 - 1),
    )


# --- Options ----------------------------------------------------------------------------------------------------------


class Options(NamedTuple):
    """What a SUBSCRIBE says of a durable subscription."""

    name: str
    start: str | dict[Place, int] = "now"
    """`now`, `start`, or a position for each log that is named."""
    takeover: bool = False
    window: int = 1000
    limit: int = 0
    """Events that the client takes in all, before it comes anew; 0 for any number."""
    settings: Mapping[str, Any] = {}
    """Fields of the record: those that were given, and no other."""


_NAME_RULE = f"the name of a durable subscription has 1 to {NAME_LENGTH_MAX} characters and no control characters"
_START_RULE = "begin at start, now, or positions such as ann@1763492000:120 with commas between"


def is_name(name: str) -> bool:
    """Whether a durable subscription may be called that."""
    return 0 < len(name) <= NAME_LENGTH_MAX and not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in name)


def check_options(options: Mapping[str, Any]) -> Options:
    """What the options of a SUBSCRIBE say. Raises Refused, and tells what would do; other options are not looked at."""
    name = options.get("durable")
    if type(name) is not str or not is_name(name):
        raise _refused(f"{_NAME_RULE}, not {name!r:.300}")
    takeover = options.get("takeover", False)
    if type(takeover) is not bool:
        raise _refused(f"takeover is true or false, not {takeover!r:.100}")
    start = options.get("from", "now")
    if type(start) is not str:
        raise _refused(f"{_START_RULE}, not {start!r:.100}")
    return Options(
        name,
        start if start in ("now", "start") or _is_number(start) else parse_positions(start),
        takeover,
        _given_whole(options, "window", 1, MAX_UNACKED_MAX) if "window" in options else 1000,
        _given_whole(options, "limit", 0, CREDIT_MAX, " (0: no limit)") if "limit" in options else 0,
        check_settings(options),
    )


def check_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The delivery settings among these options as fields of the record: those that are there. Raises Refused."""
    given: dict[str, Any] = {}
    if "sharing" in options:
        sharing = options["sharing"]
        if type(sharing) is not str or not _is_sharing(sharing):
            raise _refused(
                f"sharing is exclusive, failover, shared, or key:ATTRIBUTE with the name of an attribute, "
                f"not {sharing!r:.300}"
            )
        given["sharing"] = sharing
    if "ack_wait" in options:
        given["ack_wait"] = _given_seconds("ack_wait", options["ack_wait"], ACK_WAIT_MIN, ACK_WAIT_MAX)
    if "max_deliver" in options:
        given["max_deliver"] = _given_whole(options, "max_deliver", 0, MAX_DELIVER_MAX, " (0: no limit)")
    if "backoff" in options:
        steps = options["backoff"]
        if type(steps) not in (list, tuple) or len(steps) > BACKOFF_STEPS_MAX:
            raise _refused(f"backoff is a list of up to {BACKOFF_STEPS_MAX} times in seconds, not {steps!r:.100}")
        given["backoff"] = tuple(_given_seconds("a step of backoff", step, 0.0, DELAY_SECONDS_MAX) for step in steps)
    if "max_unacked" in options:
        given["max_unacked"] = _given_whole(options, "max_unacked", 1, MAX_UNACKED_MAX)
    if "dead_letter" in options:
        given["dead_letter"] = _given_topic(options["dead_letter"])
    return given


def key_attribute(sharing: str) -> str:
    """The attribute whose values stay with one client each; empty when events are not shared by key."""
    return sharing[4:] if sharing.startswith("key:") else ""


def parse_positions(text: str) -> dict[Place, int]:
    """A position for each log, as in `ann@1763492000:120,bob@1763492007:7`. Raises Refused."""
    positions: dict[Place, int] = {}
    for part in map(str.strip, text.split(",")):
        log, _, position = part.rpartition(":")
        broker, _, epoch = log.rpartition("@")
        if not (0 < len(broker) <= ATTRIBUTE_NAME_LENGTH_MAX and _is_number(epoch) and _is_number(position)):
            raise _refused(f"{part!r:.300} is no place to begin: {_START_RULE}")
        if int(position) > POSITIONS_MAX or int(epoch) > CREDIT_MAX:
            raise _refused(f"{part!r:.300} is no place to begin: positions go up to {POSITIONS_MAX}")
        positions[Place(broker, int(epoch))] = int(position)
    if len(positions) > PLACES_MAX:
        raise _refused(f"a durable subscription begins in at most {PLACES_MAX} logs, not {len(positions)}")
    return positions


def parse_place(text: str, logs: Mapping[Place, int]) -> dict[Place, int]:
    """The same, and a number alone where the stream has one log. Raises Refused."""
    if not _is_number(text):
        return parse_positions(text)
    if int(text) > POSITIONS_MAX:
        raise _refused(f"{text} is no place to begin: positions go up to {POSITIONS_MAX}")
    if len(logs) > 1:
        places = ",".join(f"{place.broker}@{place.epoch}:{text}" for place in sorted(logs))
        raise _refused(f"the stream has {len(logs)} logs: say where to begin in each, as in {places}"[:2000])
    return {place: int(text) for place in logs}


def positions_text(positions: Mapping[Place, int]) -> str:
    """The text that `parse_positions` reads."""
    return ",".join(f"{broker}@{epoch}:{position}" for (broker, epoch), position in sorted(positions.items()))


def _refused(text: str) -> Refused:
    return Refused(ErrorCode.BAD_REQUEST, text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 17


def _is_sharing(sharing: str) -> bool:
    if sharing in ("exclusive", "failover", "shared"):
        return True
    attribute = key_attribute(sharing)
    return 0 < len(attribute.encode("utf-8", "replace")) <= ATTRIBUTE_NAME_LENGTH_MAX and is_name(attribute)


def _given_whole(options: Mapping[str, Any], name: str, least: int, most: int, more: str = "") -> int:
    value = options[name]
    if type(value) is not int or not least <= value <= most:
        raise _refused(f"{name} is a number from {least}{more} to {most}, not {value!r:.100}")
    return value


def _given_seconds(name: str, value: Any, least: float, most: float) -> float:
    if type(value) not in (int, float) or not least <= value <= most:
        raise _refused(f"{name} is {least:g} to {most:g} seconds, not {value!r:.100}")
    return float(value)


def _given_topic(value: Any) -> str:
    if type(value) is not str:
        raise _refused(f"dead_letter is a topic, not {value!r:.100}")
    if value:
        try:
            check_topic(value)
        except MatchingError as error:
            raise _refused(f"dead_letter is a topic: {error}") from error
    return value

"""Letters on the wire: what the membership machine says, as plain lists, and back again with every shape checked.

The wire knows nothing of the ring: a Letter there has a kind and a list. One table says for each kind which message
it is and what its fields are; whatever does not fit is a ProtocolViolation, and the link that brought it ends. Lists
of members are bounded, identifiers are 64 bits, and nobody but a successor list may name artificial members.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Letter as WireLetter

from .chord_config import MESH_MAX
from .chord_messages import (
    Agree,
    Busy,
    Fenced,
    Gone,
    Greet,
    Letter,
    Look,
    Meet,
    Notify,
    Open,
    Ping,
    Pong,
    Propose,
    Query,
    Ringed,
    Seen,
    Shrunk,
    State,
)
from .identifiers import RING_SIZE
from .members import Member

__all__ = ["from_wire", "to_wire"]

_ADDRESS_LENGTH_MAX = 300
_COUNTER_MAX = 2**63


def _member(value: Any) -> Member:
    if type(value) is not list or len(value) != 4:
        raise ProtocolViolation("a member is [identifier, incarnation, padding, address]")
    identifier, incarnation, padding, address = value
    fits = type(identifier) is int and 0 <= identifier < RING_SIZE
    fits = fits and type(incarnation) is int and 0 <= incarnation < _COUNTER_MAX
    fits = fits and type(padding) is int and 0 <= padding < MESH_MAX
    if not fits or type(address) is not str or len(address) > _ADDRESS_LENGTH_MAX:
        raise ProtocolViolation("a member is [identifier, incarnation, padding, address]")
    return Member(identifier, incarnation, padding, address)


def _real(value: Any) -> Member:
    member = _member(value)
    if member.artificial or not member.address:
        raise ProtocolViolation("an artificial member writes and reads no letters")
    return member


def _perhaps(value: Any) -> Member | None:
    return None if value is None else _member(value)


def _members(value: Any) -> tuple[Member, ...]:
    if type(value) is not list or len(value) > MESH_MAX:
        raise ProtocolViolation(f"a list of members has at most {MESH_MAX}")
    return tuple(_member(one) for one in value)


def _list(value: Any) -> tuple[Member, ...]:
    members = _members(value)
    if not members:
        raise ProtocolViolation("a successor list is never empty")
    return members


def _real_members(value: Any) -> tuple[Member, ...]:
    members = _members(value)
    for member in members:
        if member.artificial or not member.address:
            raise ProtocolViolation("an artificial member has no place in this list")
    return members


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _COUNTER_MAX:
        raise ProtocolViolation("a question has a number")
    return value


_FIELDS: tuple[tuple[type[Any], tuple[Callable[[Any], Any], ...]], ...] = (
    (Query, (_number,)),
    (State, (_number, _perhaps, _list)),
    (Busy, (_number,)),
    (Ping, (_number,)),
    (Pong, (_number,)),
    (Notify, ()),
    (Gone, (_real,)),
    (Fenced, ()),
    (Look, (_number,)),
    (Seen, (_number, _list, _real_members)),
    (Greet, (_real_members,)),
    (Ringed, ()),
    (Meet, ()),
    (Propose, (_real_members,)),
    (Agree, (_real_members,)),
    (Open, (_real_members,)),
    (Shrunk, (_real_members, _real_members)),
)
"""By kind, which is the place in this table: the message and what each of its fields must be."""

_KIND: dict[type[Any], int] = {message: kind for kind, (message, _) in enumerate(_FIELDS)}


def to_wire(letter: Letter) -> WireLetter:
    """What travels."""
    kind = _KIND[type(letter.body)]
    body = [_plain(getattr(letter.body, name)) for name in type(letter.body).__slots__]
    return WireLetter(list(letter.sender), None if letter.recipient is None else list(letter.recipient), kind, body)


def from_wire(wire: WireLetter) -> Letter:
    """The letter that travelled. Raises ProtocolViolation."""
    if not 0 <= wire.kind < len(_FIELDS):
        raise ProtocolViolation(f"no letter has kind {wire.kind}")
    message, fields = _FIELDS[wire.kind]
    if len(wire.body) != len(fields):
        raise ProtocolViolation(f"{message.__name__} has {len(fields)} fields, not {len(wire.body)}")
    body = message(*(check(value) for check, value in zip(fields, wire.body, strict=True)))
    return Letter(_real(wire.sender), None if wire.recipient is None else _real(wire.recipient), body)


def _plain(value: Any) -> Any:
    if isinstance(value, Member):
        return list(value)
    if isinstance(value, tuple):
        return [list(member) for member in value]
    return value

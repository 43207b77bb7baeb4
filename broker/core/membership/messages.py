"""What brokers say to each other about the ring, and what the membership machine asks of its host.

Everything travels in a Letter, which names the life (member, with incarnation) of the sender and of the recipient. A
broker that gets a letter for a former life of its own answers Gone. What they are on the wire is in `letters.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Letter as WireLetter

from ..effects import Note
from ..keyspace import RING_SIZE
from .config import MESH_MAX
from .members import Member, SuccessorList

__all__ = [
    "Agree",
    "Body",
    "Busy",
    "ChordEffect",
    "ChordInput",
    "Fenced",
    "Gone",
    "Greet",
    "Heard",
    "Letter",
    "Look",
    "Lost",
    "Meet",
    "Notify",
    "Open",
    "Owning",
    "Ping",
    "Pong",
    "Post",
    "Propose",
    "Query",
    "Reborn",
    "Ringed",
    "Seen",
    "Shrunk",
    "State",
    "Tick",
    "from_wire",
    "to_wire",
]


@dataclass(slots=True)
class Query:
    """Tell me your pointers; I shall act on them. Answered by State, Busy, Gone or Fenced."""

    number: int


@dataclass(slots=True)
class State:
    """My pointers, as they were when I answered."""

    number: int
    predecessor: Member | None
    successors: SuccessorList


@dataclass(slots=True)
class Busy:
    """I live, but a step of my own is under way and my pointers are undefined: ask again later."""

    number: int


@dataclass(slots=True)
class Ping:
    """Do you live? Carries no pointers, so it is answered always."""

    number: int


@dataclass(slots=True)
class Pong:
    """I live."""

    number: int


@dataclass(slots=True)
class Notify:
    """You are my successor: perhaps I am your predecessor."""


@dataclass(slots=True)
class Gone:
    """You wrote to a life that is over, or to one that is no member of a ring."""

    member: Member


@dataclass(slots=True)
class Fenced:
    """I declared you dead. You cannot stay as you are; come back in a new incarnation."""


@dataclass(slots=True)
class Look:
    """Show me your list; I only look around, and never act on it. Answered always, by members of a ring."""

    number: int


@dataclass(slots=True)
class Seen:
    """What a Look saw; hints are any members that may be nearer to somewhere."""

    number: int
    successors: SuccessorList
    hints: tuple[Member, ...] = ()


@dataclass(slots=True)
class Shrunk:
    """The ring is too small to be one: these are left of it, those died. We all go back to the mesh, at once."""

    left: tuple[Member, ...]
    dead: tuple[Member, ...]


@dataclass(slots=True)
class Greet:
    """I am in no ring; these are the brokers I hear from."""

    known: tuple[Member, ...]


@dataclass(slots=True)
class Ringed:
    """Answer to Greet: I am in a ring. Join it through me."""


@dataclass(slots=True)
class Meet:
    """There is another ring, and the sender is in it."""


@dataclass(slots=True)
class Propose:
    """Let us open a ring of exactly these members."""

    view: tuple[Member, ...]


@dataclass(slots=True)
class Agree:
    """I do nothing else until you say Open, or until a while has passed."""

    view: tuple[Member, ...]


@dataclass(slots=True)
class Open:
    """All of them agreed: the ring is open."""

    view: tuple[Member, ...]


Body = (
    Query | State | Busy | Ping | Pong | Notify | Gone | Fenced | Look | Seen | Greet | Ringed | Meet
    | Propose | Agree | Open | Shrunk
)  # fmt: skip


@dataclass(slots=True)
class Letter:
    """A message with both ends. The recipient is None when only an address is known."""

    sender: Member
    recipient: Member | None
    body: Body


@dataclass(slots=True)
class Heard:
    """Input: a letter came."""

    letter: Letter


@dataclass(slots=True)
class Tick:
    """Input: the deadline that `next_deadline` named has come."""


@dataclass(slots=True)
class Post:
    """Effect: carry this letter to that address. It may be lost; nothing else may happen to it."""

    address: str
    letter: Letter


@dataclass(slots=True)
class Lost:
    """Effect: this member was declared dead here. Whoever holds its replicas may promote them."""

    member: Member


@dataclass(slots=True)
class Reborn:
    """Effect: this broker is another member from now on. Keep the incarnation over restarts before posting more."""

    member: Member


@dataclass(slots=True)
class Owning:
    """Effect: keys in (after, member] are ours; all of them when both are one; `serving` says whether to answer yet."""

    after: Member
    member: Member
    serving: bool


ChordInput = Heard | Tick
ChordEffect = Post | Lost | Reborn | Owning | Note


# Letters on the wire: what the membership machine says, as plain lists, and back again with every shape checked.
#
# The wire knows nothing of the ring: a Letter there has a kind and a list. One table says for each kind which message
# it is and what its fields are; whatever does not fit is a ProtocolViolation, and the link that brought it ends. Lists
# of members are bounded, identifiers are 64 bits, and nobody but a successor list may name artificial members.

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

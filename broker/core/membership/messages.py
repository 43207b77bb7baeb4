"""What brokers say to each other about the ring, and what the membership machine asks of its host.

Everything travels in a Letter, which names the life (member, with incarnation) of the sender and of the recipient. A
broker that gets a letter for a former life of its own answers Gone. Lists of members are bounded, and none but a
successor list may name artificial members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from headgate.protocol.messages import Letter as WireLetter

from ..effects import Note
from ..messages import LETTERS, declared, listed, nullable, record, whole
from .config import MESH_MAX
from .members import NUMBER_MAX, Member

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

Number = Annotated[int, whole(NUMBER_MAX)]
ENTRY = record(Member)
LIVING = record(Member, lambda member: not member.artificial and bool(member.address))
Successors = Annotated[tuple[Member, ...], listed(ENTRY, MESH_MAX, 1)]
Members = Annotated[tuple[Member, ...], listed(LIVING, MESH_MAX)]


@LETTERS.message(0)
@dataclass(slots=True)
class Query:
    """Tell me your pointers; I shall act on them. Answered by State, Busy, Gone or Fenced."""

    number: Number


@LETTERS.message(1)
@dataclass(slots=True)
class State:
    """My pointers, as they were when I answered."""

    number: Number
    predecessor: Annotated[Member | None, nullable(ENTRY)]
    successors: Successors


@LETTERS.message(2)
@dataclass(slots=True)
class Busy:
    """I live, but a step of my own is under way and my pointers are undefined: ask again later."""

    number: Number


@LETTERS.message(3)
@dataclass(slots=True)
class Ping:
    """Do you live? Carries no pointers, so it is answered always."""

    number: Number


@LETTERS.message(4)
@dataclass(slots=True)
class Pong:
    """I live."""

    number: Number


@LETTERS.message(5)
@dataclass(slots=True)
class Notify:
    """You are my successor: perhaps I am your predecessor."""


@LETTERS.message(6)
@dataclass(slots=True)
class Gone:
    """You wrote to a life that is over, or to one that is no member of a ring."""

    member: Annotated[Member, LIVING]


@LETTERS.message(7)
@dataclass(slots=True)
class Fenced:
    """I declared you dead. You cannot stay as you are; come back in a new incarnation."""


@LETTERS.message(8)
@dataclass(slots=True)
class Look:
    """Show me your list; I only look around, and never act on it. Answered always, by members of a ring."""

    number: Number


@LETTERS.message(9)
@dataclass(slots=True)
class Seen:
    """What a Look saw; hints are any members that may be nearer to somewhere."""

    number: Number
    successors: Successors
    hints: Members = ()


@LETTERS.message(16)
@dataclass(slots=True)
class Shrunk:
    """The ring is too small to be one: these are left of it, those died. We all go back to the mesh, at once."""

    left: Members
    dead: Members


@LETTERS.message(10)
@dataclass(slots=True)
class Greet:
    """I am in no ring; these are the brokers I hear from."""

    known: Members


@LETTERS.message(11)
@dataclass(slots=True)
class Ringed:
    """Answer to Greet: I am in a ring. Join it through me."""


@LETTERS.message(12)
@dataclass(slots=True)
class Meet:
    """There is another ring, and the sender is in it."""


@LETTERS.message(13)
@dataclass(slots=True)
class Propose:
    """Let us open a ring of exactly these members."""

    view: Members


@LETTERS.message(14)
@dataclass(slots=True)
class Agree:
    """I do nothing else until you say Open, or until a while has passed."""

    view: Members


@LETTERS.message(15)
@dataclass(slots=True)
class Open:
    """All of them agreed: the ring is open."""

    view: Members


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
    """Effect: this member was declared dead here. A broker that holds copies of its keys may take them over."""

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


@dataclass(slots=True)
class _Ends:
    sender: Annotated[Member, LIVING]
    recipient: Annotated[Member | None, nullable(LIVING)]


_ENDS = declared(_Ends)


def to_wire(letter: Letter) -> WireLetter:
    """What travels."""
    kind, body = LETTERS.write(letter.body)
    return WireLetter(list(letter.sender), None if letter.recipient is None else list(letter.recipient), kind, body)


def from_wire(wire: WireLetter) -> Letter:
    """The letter that travelled. Raises ProtocolViolation."""
    body = LETTERS.read(wire.kind, wire.body)
    ends = _ENDS.read([wire.sender, wire.recipient])
    return Letter(ends.sender, ends.recipient, body)

"""What brokers say to each other about the ring, and what the membership machine asks of its host.

Everything travels in a Letter, which names the life (member, with incarnation) of the sender and of the recipient. A
broker that gets a letter for a former life of its own answers Gone. What they are on the wire is in `letters.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .effects import Note
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

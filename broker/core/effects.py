"""Everything a Node can ask of its host. Effects are carried out in order; none has an answer but a later input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protocol.messages import Message

__all__ = ["Close", "Dial", "Effect", "Note", "Send", "Store"]


@dataclass(slots=True)
class Send:
    """Say this on that link. The link may be gone by now; then nothing happens."""

    link: int
    message: Message


@dataclass(slots=True)
class Close:
    """Give the link up; what was sent on it may go out first, for a moment."""

    link: int


@dataclass(slots=True)
class Dial:
    """Connect to the broker at this address: PeerUp or DialFailed answers."""

    address: str


@dataclass(slots=True)
class Store:
    """Keep a small record over restarts; None forgets it."""

    key: str
    value: Any


@dataclass(slots=True)
class Note:
    """Something an operator may want to read, with its facts; `routine` ones are for whoever looks closely, and
    `alarming` ones for whoever reads only warnings.

    The core never logs; a host does.
    """

    event: str
    facts: dict[str, Any]
    routine: bool = False
    alarming: bool = False


Effect = Send | Close | Dial | Store | Note

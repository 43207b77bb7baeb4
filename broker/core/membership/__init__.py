"""FACE of membership."""

from . import messages
from .config import ChordConfig
from .invariant import Pointers, Snapshot, consequences, ideal_complaints, invariant
from .machine import Chord
from .members import Member, SuccessorList, adopted, member_of
from .messages import (
    ChordEffect,
    ChordInput,
    Heard,
    Letter,
    Lost,
    Notify,
    Owning,
    Post,
    Reborn,
    State,
    Tick,
    from_wire,
    to_wire,
)
from .ring import Joining, Ring

__all__ = [
    "Chord",
    "ChordConfig",
    "ChordEffect",
    "ChordInput",
    "Heard",
    "Joining",
    "Letter",
    "Lost",
    "Member",
    "Notify",
    "Owning",
    "Pointers",
    "Post",
    "Reborn",
    "Ring",
    "Snapshot",
    "State",
    "SuccessorList",
    "Tick",
    "adopted",
    "consequences",
    "from_wire",
    "ideal_complaints",
    "invariant",
    "member_of",
    "messages",
    "to_wire",
]

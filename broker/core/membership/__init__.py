"""Decides which brokers there are and in which order they stand on the ring: Chord as a pure machine.

A broker asks its neighbours on the ring at intervals, declares a neighbour dead that does not answer, lets newcomers in
between, and says which arc of the ring is its own.

**Contract.** A broker has one `Chord`. Inputs are `ChordInput`: a letter came (`Heard`), or the deadline has come
(`Tick`). `handle` returns `ChordEffect`: post a `Letter` (`Post`), a member was declared dead (`Lost`), our arc changed
(`Owning`), we go on under a new incarnation (`Reborn`), a note for people. Nothing is called back. `ChordConfig` holds
the timeouts. `to_wire` and `from_wire` translate letters; `messages` declares what a letter may say.

**Theory.** Up to four brokers (`ChordConfig.list_length`) are a *mesh*: each greets all others. From five on they are a
*ring* (`Ring`) in the form of Chord that Zave proved: a predecessor, a list of r successors that is always full
(`SuccessorList`; r is the list length), and three steps, join, stabilize and rectify. The answer to a query is a
`State`, a `Notify` says "I am before you". A broker enters by `Joining`: an iterative lookup of its place, then a copy
of its predecessor's list. Now and then a member asks whether there is a second ring, and if so moves over, so that
halves of a network merge.

A `Member` (`member_of`) is one *incarnation* of a broker. A member that does not answer is declared dead and stays
dead; a broker that was only slow finds that out, and comes back under a new incarnation, never as the old member; the
proof assumes this.

**The oracle of the simulator**: the `Pointers` of all members, and successor lists that are on their way, make a
`Snapshot`. `invariant` checks what must hold of a snapshot at any moment, `consequences` what follows from it,
`ideal_complaints` what holds when nothing changes any more. `adopted` puts the successor lists of two members together;
every step uses it.

Order of reading: `members`, `messages`, `machine` (the two roles), `mesh`, `ring`, `lookup`, `merge`, `identity`,
`invariant`, `config`.
"""

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
    "to_wire",
]

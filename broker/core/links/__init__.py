"""Keeps one link to each broker that is wanted, sends control before events, and accounts for every event that is lost.

**Contract.** Other rooms call `Peers`: `keep` the addresses that links are wanted to, `tell` an address a control
message (at once, or as soon as there is a link), `send_events` under the credit of the other side, `acknowledge` events
that came. `handle` takes the host's inputs about links. `PeerInfo` is another broker in one of its incarnations; it
stays the same object while links come and go. Messages of other brokers, and the begin and end of links, go to
`PeerHooks`.

**Theory.** A link is made in four steps: two greetings, then two CREDITs. Two brokers may dial each other at the same
time. The dialler's CREDIT says which of the connections is kept: by one rule, so both sides keep the same one, and
nothing was sent on the other. On one link nothing is lost and order is kept. When it breaks, it is unknown how much of
what was sent arrived. Events that were never sent are handed back. Events that were sent wait in a ledger for the count
with which the next link begins. If none comes within `LOSS_SECONDS_MAX`, all of them count as lost: perhaps too many,
never too few.

The greetings alone decide who may link: the same cluster, the same settings, another name, no older incarnation.

Order of reading: `greeting` (who is who, and who may link), `link_table` (how a link comes about and ends), `dialer`
(which brokers to dial, and when), `flow` (events, credit, the ledger), `peers` (which calls the others), `limits`.
"""

from .greeting import PeerHooks, PeerInfo
from .limits import LOSS_SECONDS_MAX
from .peers import Peers

__all__ = [
    "LOSS_SECONDS_MAX",
    "PeerHooks",
    "PeerInfo",
    "Peers",
]

"""Keeps one link to each broker that is wanted, sends control before events, and accounts for every event that is lost.

**Contract.** `Peers` is the whole room: `keep` the addresses that links are wanted to, `tell` an address a control
message (at once, or as soon as there is a link), `send_events` under the credit of the other side, `acknowledge` what
came. It takes the host's inputs about links (`handle`). `PeerInfo` is another broker in one of its incarnations; it
stays the same object while links come and go. What other brokers say, and that links begin and end, goes to
`PeerHooks`.

**Theory.** A link is made in four steps (two greetings, two CREDITs); the dialler's CREDIT decides, so two brokers that
dial each other keep the same link, and nothing is sent on the one that is closed. On one link nothing is lost and order
is kept. When it breaks, it is unknown how much of what was sent arrived: what was never sent is handed back, and the
rest waits in a ledger for the count that the next link begins with. Without one within `LOSS_SECONDS_MAX` all of it
counts as lost: perhaps too much, never too little.

Who may link is decided by the greetings alone: the same cluster, the same settings, another name, no older incarnation.

Order of reading: `greeting` (who is who, and who may link), `link_table` (how a link comes about and ends), `dialer`
(which brokers to dial, and when), `flow` (events, credit, the ledger), `peers` (the door), `limits`.
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

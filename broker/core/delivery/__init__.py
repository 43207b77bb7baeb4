"""Delivers batches to this broker's own clients: streams and their settings, sessions, plans, outboxes and credit.

    Streams        one `Stream` for each name: its index, its publishers, what they should send (interest), its counts
    Dissemination  a batch and its index's answer -> who gets which rows: a `Plan` for each row, one portion a session
    Subscribers    sessions (`ClientSession`), their subscriptions (`Subscription`), outboxes, credit and gaps

**A batch's way.** `Dissemination.carry` matches a batch and gathers it with others of its turn; `settle` sorts the
rows by session and puts each session's portion into its outbox, from where it goes out as far as credit and the
connection allow. `plans_of` and `relay` are the same two steps for a batch that is matched here in part, or whose
events got their numbers at another broker.

**Contract.** Events of one stream reach a session in the order of `carry` and `relay`. An event that was matched for a
session is sent on its link, waits in its outbox, or is counted in a GAP of the session. The count in a GAP is never too
low. It can be too high only after a connection broke. Outboxes are bounded by bytes, one by one and all together;
`slow_consumer` says who pays. What may be said at once is an effect (`Send`). Two timers are set here: `DRAINING`,
outboxes go on when other inputs had their turn, and `GRACE`, when the first session without a connection ends.

**Vocabulary.** A *plan* is the sessions that get one event, with the numbers of their subscriptions. A *lane* is a plan
that a topic alone decides, remembered. *Held* is a subscription whose client says that it takes no more for now.

`StreamSettings` is what a schema says about a stream beside its attributes: `read_settings` reads it, `check_settings`
refuses what makes no sense, and `SETTINGS` are its keys. `stream_of` gives the stream of a column of topics.

Order of reading: `streams`, `dissemination`, `subscribers`.
"""

from . import dissemination, streams
from .dissemination import Dissemination
from .streams import SETTINGS, Plan, Stream, Streams, StreamSettings, check_settings, read_settings, stream_of
from .subscribers import DRAINING, GRACE, ClientSession, Subscribers, Subscription

__all__ = [
    "ClientSession",
    "DRAINING",
    "Dissemination",
    "GRACE",
    "Plan",
    "SETTINGS",
    "Stream",
    "StreamSettings",
    "Streams",
    "Subscribers",
    "Subscription",
    "check_settings",
    "dissemination",
    "read_settings",
    "stream_of",
    "streams",
]

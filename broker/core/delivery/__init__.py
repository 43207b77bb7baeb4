"""Delivers batches to this broker's own clients: streams and their settings, sessions, plans, outboxes and credit.

    Streams        one `Stream` for each name: its index, its publishers, the columns they should send, its counts
    Dissemination  makes a `Plan` for each row of a batch (who gets it) from the index's answer, one portion a session
    Suppression    decides for each row which members of a `Carrier` (subscriptions with DELTA) it is delivered to
    Subscribers    sessions (`ClientSession`), their subscriptions (`Subscription`), outboxes, credit and gaps

**A batch's way.** `Dissemination.carry` matches a batch and gathers it with others of its turn; `settle` sorts the rows
by session and puts each session's portion into its outbox, from where it goes out as far as credit and the connection
allow. In a cluster the same is done in two calls. `plans_of` makes the plans of a batch of which this broker matches a
part: its filter leaves out the subscriptions that another broker matches. `relay` delivers rows whose plans are known
and whose events are numbered already, such as the matches that another broker sent for our clients.

**Contract.** Events of one stream reach a session in the order of `carry` and `relay`. An event that was matched for a
session is sent on its link, waits in its outbox, or is counted in a GAP of the session. The count in a GAP is never too
low. It can be too high only after a connection broke. Outboxes are bounded in bytes, one by one and all together;
`slow_consumer` says what happens to a session over the bound; of a subscription that conflates only the newest event of
each topic waits (`conflation.py`). Messages to clients are effects (`Send`). Two timers are set here: at `DRAINING`
outboxes go on, after other inputs had their turn; at `GRACE` the first session that was too long without a connection
ends.

**Vocabulary.** A *plan* is the sessions that get one event, with the numbers of their subscriptions. A *lane* is the
remembered plan of a topic, where topics alone decide. A subscription is *held* when its client said that it takes no
more for now.

`StreamSettings` is what a schema says about a stream beside its attributes: `read_settings` reads it, `check_settings`
refuses settings that contradict each other, and `SETTINGS` are its keys. `stream_of` gives the stream of a column of
topics, `cut` some rows of a portion.

An *amended* subscription has several *versions* for a while: `Amendment` decides event by event whether its client gets
it (`Version`). A plan that is not decided before it is known which row it is for is `Undecided`.

Order of reading: `streams`, `dissemination`, `subscribers`, `dynamic`, `amending`.
"""

from . import dissemination, streams
from .amending import Amendment, Version
from .dissemination import Dissemination
from .dynamic import Carrier, Suppression, Undecided
from .streams import SETTINGS, Plan, Stream, Streams, StreamSettings, check_settings, read_settings, stream_of
from .subscribers import DRAINING, GRACE, ClientSession, Subscribers, Subscription, cut

__all__ = [
    "Amendment",
    "Carrier",
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
    "Suppression",
    "Undecided",
    "Version",
    "check_settings",
    "cut",
    "dissemination",
    "read_settings",
    "stream_of",
    "streams",
]

"""Every bound of the core, each with its reason; the rooms `kv` and `links` have their own.

`Limits` is handed to a Node with its `NodeConfig`. The constants are spans of time that follow from each other, what
brokers rely on of each other, and what is not to be chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.protocol.limits import BATCH_EVENTS_MAX

from .keyspace import MESH_BROKERS_MAX

__all__ = [
    "ALONE_SECONDS",
    "AMENDED_EVENTS_MAX",
    "AMEND_SECONDS",
    "AMEND_VERSIONS_MAX",
    "ANEW_SECONDS",
    "ANSWER_IDS_MIN",
    "ANSWER_LENGTH_MAX",
    "ASKS_PER_SESSION_MAX",
    "AUDIT_ACK_SECONDS",
    "AUDIT_SECONDS",
    "CHECKPOINT_SECONDS",
    "CLOCKS_APART_SECONDS",
    "CONTACTS_KEPT_MAX",
    "CONFLATED_EVENTS_MIN",
    "COPY_RETRY_SECONDS",
    "COPY_STUCK_SECONDS",
    "DEFAULT_LIMITS",
    "ERROR_TEXT_LENGTH_MAX",
    "FEED_IDLE_SECONDS",
    "FEED_PAUSE_SECONDS",
    "FENCE_STARTS_MAX",
    "FORWARD_HOPS_MAX",
    "GATHERED_BYTES_MAX",
    "GATHERED_EVENTS_MAX",
    "INQUIRY_LENGTH_MAX",
    "INQUIRY_SECONDS_MAX",
    "LAST_SENT_MAX",
    "KEY_BITS_DEFAULT",
    "KEY_BITS_MIN",
    "LOG_COPIES_DEFAULT",
    "LOGS_PAGE_MIN",
    "LOG_FILTERS_MAX",
    "Limits",
    "NEWS_ASKED_SECONDS",
    "NEWS_SECONDS",
    "OPENING_ROUNDS_MAX",
    "ORPHAN_SECONDS",
    "PLAIN_COLUMNS_MAX",
    "RIGHTS_REMEMBERED_MAX",
    "RIGHTS_TOPICS_MAX",
    "TOKENS_LOOK_SECONDS",
    "ROLES_MAX",
    "ROLE_GRANTS_MAX",
    "PACES_TIDIED_MIN",
    "PACE_BURST_SECONDS",
    "OUTBOX_BYTES_DEFAULT",
    "OUTBOX_BYTES_TOTAL_DEFAULT",
    "POSITIONS_MAX",
    "PRODUCERS_LISTED_MAX",
    "PRODUCER_ENDS_MAX",
    "PRODUCER_NAME_LENGTH_MAX",
    "PUBLISHED_STREAMS_MAX",
    "READS_PER_SESSION_MAX",
    "REFRESH_BYTES",
    "REFRESH_GROWTH",
    "REFRESH_PAUSE_SECONDS",
    "REFRESH_SECONDS",
    "REMEMBERED_TEXT_LENGTH_MAX",
    "REPLICAS_DEFAULT",
    "REPLICAS_MAX",
    "RETENTION_BYTES_MIN",
    "RETENTION_PAUSE_SECONDS",
    "RETENTION_SECONDS_MIN",
    "ROSTER_SECONDS",
    "ROUTE_HOPS_MAX",
    "SCHEMA_ATTRIBUTES_MAX",
    "SESSION_GRACE_SECONDS",
    "STILL_SECONDS",
    "SLOWEST_MAX",
    "SMALL_BATCH_EVENTS_MAX",
    "STORE_SECONDS_MAX",
    "STRANGER_SECONDS",
    "TOPIC_OVERHEAD_BYTES",
    "VOUCH_SECONDS_MAX",
    "WAITING_RETRY_SECONDS",
    "WAITING_SECONDS_MAX",
    "WATERMARK_SECONDS",
    "WHOLE_BYTES_MAX",
]

SESSION_GRACE_SECONDS = 10.0
"""How long a session outlives its connection: enough for a client's reconnect, short enough to forget the dead."""

REMEMBERED_TEXT_LENGTH_MAX = 200
"""Of a refusal's text that is kept for a client that may not have heard it: a window of them stays below 100 KiB."""

ERROR_TEXT_LENGTH_MAX = 8_000
"""Characters of a refusal. An error text quotes what was wrong; a client's text of 64 KiB, with every character
escaped, would not fit the frame that an ERROR may have."""

ANSWER_IDS_MIN = 4_096
"""Ids of events in one answer, if there are so many; with the last row that is taken whole it has less than twice as
many, and a list within an answer may have 16,384 elements."""

ANSWER_LENGTH_MAX = 192 * 1024
"""Characters of the rows of one ANSWER as Python writes them: at four bytes each three quarters of a CONTROL, in which
it comes from another broker."""

PUBLISHED_STREAMS_MAX = 1_000
"""Streams of one session whose publishers hear of interest; the oldest is forgotten, and told again when it comes."""

GATHERED_BYTES_MAX = 2 * 1024 * 1024
"""Records and topics of one turn that are spread together: one subscriber may get all of them in a frame of twice that.
More of them falls out of the processor's cache and was measured to be slower."""

SMALL_BATCH_EVENTS_MAX = 16
"""Batches up to this are matched with others of their turn: a match costs some microseconds however few events it is
of, and columns of larger ones are better left where they are."""

GATHERED_EVENTS_MAX = 8192
"""Events of one turn that are spread together. With a thousand subscribers eight of them share what a DELIVER costs;
four times fewer were measured to take half as long again."""

TOPIC_OVERHEAD_BYTES = 600
"""What one remembered topic costs beside its letters, in all three places together: measured about that."""

OUTBOX_BYTES_DEFAULT = 64 * 1024 * 1024
"""What waits for one slow subscriber before the oldest is dropped: seconds of an ordinary stream."""

OUTBOX_BYTES_TOTAL_DEFAULT = 512 * 1024 * 1024
"""What waits for all slow subscribers together; above it a session that queues drops of its own first."""

CONFLATED_EVENTS_MIN = 64
"""Events that wait for a session before they are gone through for what newer ones have behind them; and then again when
there are twice as many as were left."""

SCHEMA_ATTRIBUTES_MAX = 256
"""As many as a batch may have match columns."""

WHOLE_BYTES_MAX = 512 * 1024
"""Records that all go the same way and are joined for it: what is copied once is read from the cache by everyone."""

REPLICAS_DEFAULT = 2
"""Siblings that hold what lives at a key beside its owner: two brokers may die at once and nothing is lost."""

KEY_BITS_DEFAULT = 8
"""Bits of a key of the cube: 256 vertices, four for each of 64 brokers. More would buy no routing, and double the
entries that a subscription leaves."""

KEY_BITS_MIN = 4
"""The fewest: 16 vertices, as the least of the paper's networks."""

REPLICAS_MAX = 8
"""The most that the papers try, which count the owner as one more: every write waits for all of them."""

ROUTE_HOPS_MAX = 64
"""Hops of one message for a key. A settled ring of a million brokers needs some ten; more is a circle."""

ROSTER_SECONDS = 1.0
"""How often a broker tells one other which brokers it knows: a newcomer is known to twenty brokers within seconds."""

STRANGER_SECONDS = 30.0
"""How long a broker that none has a link to is still dialled: longer than a restart."""

CONTACTS_KEPT_MAX = 64
"""Addresses of other brokers kept over restarts: as many as there may be links."""

ORPHAN_SECONDS = 60.0
"""How long what belongs to a broker that cannot be reached is kept: longer than a restart or a pause usually takes."""

ANEW_SECONDS = 1.0
"""How soon a broker that was away puts again what is its own: when links to the others are there as well."""

REFRESH_SECONDS = 30.0
"""How often a broker puts again what its clients asked for: what a disaster took is back after so long."""

REFRESH_GROWTH = 3
"""After a broker came a refresh follows in ANEW_SECONDS, and the next ones each so many times later: rings that meet
take seconds to become one."""

REFRESH_BYTES = 1024 * 1024
"""Bytes of long conditions in one step: two pages."""

REFRESH_PAUSE_SECONDS = 0.05
"""Between two such steps, so that events go on."""

WAITING_SECONDS_MAX = 15.0
"""An event waits no longer than this for its key's owner: three times what a failure takes to be repaired."""

WAITING_RETRY_SECONDS = 0.05
"""How often to look whether a broker answers."""

FORWARD_HOPS_MAX = 64
"""Brokers that may hand one batch on. In a settled cluster of up to 64 it is one, and on the cube at most one more for
each of 12 bits; beyond that each of these may take some hops of its own."""

AMEND_SECONDS = 20.0
"""How long a former version of an amended subscription rests where it was: longer than an event waits for its key's
owner (WAITING_SECONDS_MAX) and is then under way."""

AMEND_VERSIONS_MAX = 8
"""Versions of one subscription at a time: one that is amended more often than every few seconds waits."""

AMENDED_EVENTS_MAX = 65_536
"""Events of one subscription that two of its versions want, and one has not brought yet: some milliseconds' worth, and
what was published while the next one was being placed."""

PLAIN_COLUMNS_MAX = 4_096
"""Names of match columns of which it is remembered that they hold no filters: they are an application's attributes."""

ALONE_SECONDS = 3.0
"""How long a broker that knows of others asks for them before it takes all keys for its own: six greetings."""

STILL_SECONDS = 0.75
"""How long a newcomer to a mesh has seen the same brokers before keys are its own: every one of them greeted once."""

NEWS_ASKED_SECONDS = 0.1
"""How often a broker that has not answered for keys yet asks the others whether they are as new as it is: a start of a
cluster takes some round trips longer than links take, and the questions end with it."""

NEWS_SECONDS = 1.0
"""An answer to that counts so long from the moment of asking: several questions, and much less than a broker that lost
sight of the asker needs to take its keys (SETTLE_SECONDS)."""

RETENTION_SECONDS_MIN = 1.0
"""The shortest retention by age: below it a reader could not ask for a position before it is gone."""

RETENTION_BYTES_MIN = 4 * 1024 * 1024
"""The smallest retention by size: as large as a row may be, so that the newest one always stays."""

RETENTION_PAUSE_SECONDS = 5.0
"""How often logs are looked at for rows that are too old or too many: what is over is gone that much later."""

LOG_COPIES_DEFAULT = 2
"""Disks that have a batch before it is acknowledged as stored: one of them may be lost with everything on it."""

STORE_SECONDS_MAX = 5.0
"""How long a batch waits for enough disks before its publisher hears that it has to try again: longer than a follower
takes to be found dead and another one to be asked."""

PRODUCERS_LISTED_MAX = 200
"""Producers in one answer about a job, each with its name and digest: with the longest names some 60 KiB."""

PRODUCER_NAME_LENGTH_MAX = 256
"""Characters of a producer's name, as of an attribute's."""

PRODUCER_ENDS_MAX = 64
"""Logs in which the newest rows of one producer are remembered not to be safe yet: streams it writes to at a time."""

ASKS_PER_SESSION_MAX = 128
"""Questions of one session that wait for the disk or for other brokers: one about each log of a large stream. What is
kept for them is a quarter of a MiB as a rule, and some ten MiB when each is about a thousand logs."""

INQUIRY_LENGTH_MAX = 900 * 1024
"""Bytes of an answer to another broker as Python writes them, which are hardly ever fewer than in the CONTROL that
carries it: a page, or a single row that is long by itself, as one with a list of ten thousand values."""

LOGS_PAGE_MIN = 64
"""A page of the answer to `logs` with fewer rows is the last one: so many fit, however long their names are."""

INQUIRY_SECONDS_MAX = 6.0
"""How long a question may be with another broker: that one may wait STORE_SECONDS_MAX for its disk. The link to one
that is stopped breaks sooner, after two seconds of silence."""

SLOWEST_MAX = 20
"""Clients that `slowest` names: a screen."""

LAST_SENT_MAX = 20
"""Topics of which `explain` says what was last sent to whom: a screen."""

READS_PER_SESSION_MAX = 8
"""Chunks of logs that one session may have asked for: each takes up to a few megabytes until it is written."""

LOG_FILTERS_MAX = 64
"""Filters of readers that are kept parsed: as many readers at a time read on without parsing theirs again."""

AUDIT_SECONDS = 0.25
"""How long lines of the audit are gathered before they are written: a row for many, and seldom a sync of its own."""

AUDIT_ACK_SECONDS = 2.0
"""A client that has not acknowledged for so long what it was sent is asked, and again: well within the ten seconds for
which an audit waits for what is still on its way into the log."""

POSITIONS_MAX = 2**44
"""Positions of one log, so that a log's number and a position are one key of the disk: at a million events a second
they last half a year."""

COPY_RETRY_SECONDS = 0.5
"""How often a follower that did not answer is asked again, or one whose disk was full."""

COPY_FULL_SECONDS_MIN = 1.0
"""After so long a follower whose disk was full is tried again, with one row; each time twice as long."""

COPY_FULL_SECONDS_MAX = 8.0
"""And no longer than this: who waits for a copy in the meantime asks again for some 20 seconds."""

COPY_STUCK_SECONDS = 3.0
"""After so long without a word a follower is asked anew what it has."""

CLOCKS_APART_SECONDS = 60.0
"""How far the clocks of brokers may be apart: what has a time is looked for in other logs from that long before it."""

FENCE_STARTS_MAX = 32
"""Openings of one producer whose first numbers are remembered: a broker that was away during more of them, and comes
back with rows of before that no other disk has, keeps those rows even when they were sent again elsewhere."""

OPENING_ROUNDS_MAX = 4
"""How often an opening of a producer is tried with a newer generation, when others were opened meanwhile: a broker that
was away learns the newest at the first try, and more tries are needed where brokers open the same producer in turn."""

WATERMARK_SECONDS = 0.05
"""A high watermark that has moved is told to followers so much later, unless a row goes to them anyway."""

FEED_IDLE_SECONDS = 1.0
"""How often feeds that nothing matched are told how far they were looked at."""

FEED_PAUSE_SECONDS = 0.05
"""How long reading for feeds waits while a broker that asked for some takes nothing."""

CHECKPOINT_SECONDS = 5.0
"""High watermarks that have moved are written down so much later: one commit a while, and little that the next life has
to ask others about."""

VOUCH_SECONDS_MAX = 3.0
"""How long a broker that was started again asks its followers whether they know more of its log than it does, before it
writes on; and how long, when brokers meet again, rows that no other disk has wait for those that cannot be reached yet.
Longer than links take to be made."""


ROLES_MAX = 1024
"""Roles of a cluster. People have to know what each is for; content tells apart what many names would."""

ROLE_GRANTS_MAX = 256
"""Rights of one role. Those of a stream become one condition, which has 256 terms."""

RIGHTS_TOPICS_MAX = 4096
"""Topics of which it is remembered what users of the same roles may do with them, some 200 bytes each."""

RIGHTS_REMEMBERED_MAX = 1024
"""Combinations of roles whose rights are kept made; an issuer of web tokens may think of any."""

PACE_BURST_SECONDS = 1.0
"""How much a user may publish at once, in seconds of its limit: a second is the measure that roles are written in."""

PACES_TIDIED_MIN = 1024
"""Users with limits whose paces are kept before those that owe nothing are forgotten, some 400 bytes each."""

TOKENS_LOOK_SECONDS = 0.5
"""How often it is looked whether a web token has ended, by the clock on the wall, which may be set: within a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds what one Node keeps, and how much it does in one step."""

    sessions: int = 20_000
    """Client sessions, connected or in grace. Twice the ten thousand sockets that one process is commonly given."""
    subscriptions_per_session: int = 16_384
    """A DELIVER names the subscriptions of an event in one list, and that is how long a list may be on the wire."""
    subscriptions: int = 2_000_000
    """All of a broker; at about 1 KiB each they fill 2 GiB."""
    references: int = 1_000_000
    """What DELTA subscriptions of a broker's clients were last sent of each topic: some 400 bytes each, and 800 more
    for each topic. Beyond it a condition that needs more gives up those of the topic that it delivered longest ago."""
    long_conditions_bytes: int = 64 * 1024 * 1024
    """Conditions above 4 KiB, which have long IN lists, of a broker's clients together: 400 lists of 10,000 ISINs.
    Wherever they rest they take some ten times as much."""
    streams: int = 10_000
    """Streams come into being by use, so a publisher of random first levels must meet an end."""
    known_topics_bytes: int = 128 * 1024 * 1024
    """What all streams together remember topics with (checked ones, their lanes, what the index made of them). A
    hundred thousand topics of usual length fit ten times; beyond it all are forgotten at once and checked anew."""
    schemas: int = 10_000
    """One a stream, so as many as streams."""
    route_numbers: int = 16_384
    """Subscriptions named in one DELIVER, all its runs together. At nine bytes each they leave room beside the records
    of the largest PUBLISH; a batch that needs more goes out in several portions."""
    whole_events: int = 2048
    """Events that all go the same way and are joined for it: half of what a batch may have."""
    plans: int = 16_384
    """Remembered answers to `which sessions are these subscriptions of`; one is kept per set of matches, so traffic
    that always matches another set must not fill the memory."""
    drain_step_bytes: int = 1024 * 1024
    """Of an outbox that may flow again, so much goes out before other inputs have their turn."""
    withdrawn: int = 16_384
    """Subscriptions that ended while something waited for their session: all it may have at a time. One that ends more
    without reading loses what waits, as the slow subscriber that it is."""
    early_bytes: int = 16 * 1024 * 1024
    """What clients publish to a broker that has not found its place in its cluster: seconds of a start, not a queue."""
    answer_rows: int = 1_000
    """Rows of one ANSWER; `subs` asks on with `after` for more."""
    inquiries_per_broker: int = 64
    """Questions that one broker has put to another and has no answer to: a dozen people looking at a cluster."""
    audit_flight_events: int = 1_000_000
    """Deliveries that are not acknowledged yet and are remembered, so that it can be said what became of each: sixteen
    bytes each. Of more, the oldest count as sent and never acknowledged."""
    audit_rows_kept: int = 1_000
    """Rows of the audit that are kept while the disk takes none: up to four million deliveries, and some hundred MB."""
    log_pending_bytes: int = 64 * 1024 * 1024
    """What waits for the disk: a second of a good one. More would only make clients wait longer for a refusal. What
    waits for followers' disks to be delivered counts as well: when they stay away, mode accepted is refused too."""
    log_waiters: int = 100_000
    """Batches that wait for their acknowledgement: 20,000 a second for the longest that one may wait. Readers and
    questions that wait for the same have limits of their own, by session."""
    producers: int = 200_000
    """Producers that a broker remembers, each with what it published last: some hundred bytes each."""
    copy_window_bytes: int = 8 * 1024 * 1024
    """Rows on their way to one follower's disk: what a good one takes in a moment. They go before everything else that
    brokers say to each other, so more would keep leases waiting."""
    copy_chunk_bytes: int = 1024 * 1024
    """Rows read at a time for a follower that is behind: the disk has other things to do in between."""
    held_copies: int = 500
    """Copies of a broker's logs that it is told of in one message; more go in the next one."""
    tail_bytes: int = 64 * 1024 * 1024
    """Rows of a log that no other disk has, and that are looked into when brokers meet again: as many as may wait for
    the disk, and for an acknowledgement. More is a log whose copies are gone."""
    waiting_events: int = 200_000
    """Events that wait here until a broker answers for their keys again: seconds of a busy broker."""
    waiting_bytes: int = 64 * 1024 * 1024
    """The same in bytes, as for one slow subscriber."""
    allowed: int = 65_536
    """Remembered answers to `which dimensions do these subscriptions rest on`."""
    losses_kept: int = 10_000
    """Losses remembered for brokers that have no link just now; each is one message too much."""
    schemas_deleted: int = 1_000
    """Deletions that the disk remembers, for a broker that was away: the oldest goes first. A hundred bytes each."""
    dimensions: int = 64
    """Dimensions of one stream that one broker's clients may use: an event visits a key for each. Above it a
    subscription rests at its topic, where it costs no other dimension."""
    refresh_items: int = 500
    """Items of one step of that: a few milliseconds."""
    homes: int = 10_000
    """Brokers, each in one of its lives, whose address is remembered to bring events there: a hundred bytes each."""
    batches_asking: int = 64
    """Batches of one stream whose lists are asked for at a time: more than a round trip brings, and few enough that
    lists of a million subscriptions do not fill the memory of a broker whose clients publish fast."""
    feed_chunk_bytes: int = 512 * 1024
    """Rows of a log that are read at a time for feeds that are behind: some five milliseconds of matching."""
    feed_reads: int = 4
    """Such chunks that may be on their way from the disk, for as many logs; the others wait for their turn."""
    feed_step_bytes: int = 1024 * 1024
    """What a step of reading may tell before other inputs have their turn: many feeds may match each row of a chunk."""
    feed_step_feeds: int = 1000
    """Feeds that begin to be fed live, or end, in one step: some twenty milliseconds."""
    feed_idle_feeds: int = 1000
    """Feeds that nothing matched, and that are told so, each second: a hundred thousand of them in less than two
    minutes. Until then their cursors stay behind, and only a restart has to read what they had left."""
    feed_recent_bytes: int = 8 * 1024 * 1024
    """Batches kept while a chunk is on its way from the disk, so that who reads arrives where others publish."""
    feed_conditions: int = 4096
    """Conditions and patterns of feeds that are kept parsed: a broker that comes back asks for many alike."""
    idle_link_seconds: float = 60.0
    """A link that no part asked to keep is closed after so long without a message: dialling again costs a
    millisecond."""
    mesh_brokers: int = MESH_BROKERS_MAX
    """Up to so many brokers this one keeps a link to each; others may expect no more of it than MESH_BROKERS_MAX."""
    batch_events: int = BATCH_EVENTS_MAX
    """Events of a DELIVER, and lines of a row of the audit, that this broker makes; others take BATCH_EVENTS_MAX."""


DEFAULT_LIMITS = Limits()

"""Every bound of the wire, and of what a client keeps in memory, each with its reason."""

from __future__ import annotations

__all__ = [
    "ACKS_OPEN_MAX",
    "ACK_SECONDS_ENDING",
    "ACK_SPANS_MAX",
    "ADDRESSES_MAX",
    "ATTRIBUTES_MAX",
    "ATTRIBUTE_NAME_LENGTH_MAX",
    "BATCH_EVENTS_MAX",
    "CHECKS_MAX",
    "CHECK_ITEMS_MAX",
    "COLUMNS_MAX",
    "CONDITION_LENGTH_MAX",
    "CONTROL_LENGTH_MAX",
    "CREDENTIALS_LENGTH_MAX",
    "CREDIT_BYTES_DEFAULT",
    "CREDIT_DEFAULT",
    "CREDIT_MAX",
    "DIAL_SECONDS_MAX",
    "DIGEST_LENGTH_MAX",
    "DIMENSIONS_MAX",
    "DIMENSION_LENGTH_MAX",
    "DOCUMENT_DEPTH_MAX",
    "ENTRY_OVERHEAD_BYTES",
    "FAILURES_KEPT_MAX",
    "FALSE_POSITIVE_TOPICS_MAX",
    "FILTER_BITS_MAX",
    "FILTER_FULL_SHARE",
    "FILTER_HASHES_MAX",
    "FILTER_SATURATED_SHARE",
    "FILTERS_REMEMBERED_MAX",
    "FRAME_LENGTH_MAX",
    "FRAME_SECONDS_MAX",
    "GAPS_KEPT_MAX",
    "HANDSHAKE_FRAME_LENGTH_MAX",
    "HANDSHAKE_SECONDS_MAX",
    "HEARTBEAT_SECONDS_DEFAULT",
    "HEARTBEAT_SECONDS_MAX",
    "HEARTBEAT_SECONDS_MIN",
    "HOPS_MAX",
    "INTEREST_ATTRIBUTES_MAX",
    "ITEMS_REMEMBERED_MAX",
    "KNOWN_SHAPES_MAX",
    "KNOWN_TOPICS_MAX",
    "LETTER_LENGTH_MAX",
    "LINGER_BYTES_MAX",
    "LINGER_EVENTS_DEFAULT",
    "LINGER_SECONDS_DEFAULT",
    "LIST_LENGTH_MAX",
    "LOG_CHUNK_BYTES_MAX",
    "LOG_CHUNK_ROWS_MAX",
    "MOVES_MAX",
    "MOVES_TOPICS_MAX",
    "OPEN_ATTEMPTS_MAX",
    "OWN_GHOST_SECONDS_MAX",
    "PAGE_LENGTH_MAX",
    "PEER_CREDIT_DEFAULT",
    "PEER_HEARTBEAT_SECONDS",
    "PUBLISH_LENGTH_MAX",
    "PUBLISH_WINDOW_DEFAULT",
    "QUEUE_BYTES_MAX",
    "RECORD_LENGTH_MAX",
    "REPLAY_NEAR_EVENTS",
    "RETRY_DELAY_SECONDS_MAX",
    "RETRY_DELAY_SECONDS_MIN",
    "RETRY_SECONDS_ENDING",
    "SETTINGS_MAX",
    "SHAPES_REMEMBERED_MAX",
    "REMEMBERED_PAIRS_MAX",
    "STORE_ATTEMPTS_MAX",
    "STORE_TRY_SECONDS_MAX",
    "SUBSCRIBE_LENGTH_MAX",
    "TEXT_LENGTH_MAX",
    "TOPIC_LENGTH_MAX",
    "TOPIC_LEVELS_MAX",
    "VALUE_LENGTH_MAX",
]

FRAME_LENGTH_MAX = 4 * 1024 * 1024
"""One frame. Two records of the largest size and their columns fit; a reader never buffers more than this."""

CONTROL_LENGTH_MAX = 256 * 1024
"""A frame that carries neither events nor an answer. Two texts of the largest size fit; unpacked, msgpack's smallest
values take some eighty times their bytes, and any client may send these."""

PUBLISH_LENGTH_MAX = FRAME_LENGTH_MAX - CONTROL_LENGTH_MAX
"""A PUBLISH frame. Its records come back in a DELIVER, whose routes need room beside them."""

HANDSHAKE_FRAME_LENGTH_MAX = 4096
"""A frame before the handshake is done. A stranger may not make us buffer more than a page."""

RECORD_LENGTH_MAX = 1024 * 1024
"""One event's attributes and body together. 1 MiB, as NATS and Kafka ship it: larger things belong in a store."""

BATCH_EVENTS_MAX = 4096
"""Events in one batch. Beyond some hundred nothing gets faster, and a hostile array header costs at most this."""

LIST_LENGTH_MAX = 4 * BATCH_EVENTS_MAX
"""Elements of any one list in a message: the routes of a full batch in which every event is a run of its own need half
of it, the subscriptions that one run names all of it: 16,384 on one session."""

ATTRIBUTES_MAX = 1024
"""Attributes of an event. More than twice what the largest of 125 real webhooks has in its JSON (431); what has more is
a table, and a map of so many short names is built in a tenth of a millisecond."""

COLUMNS_MAX = 256
"""Match columns in a batch: four times what publishers are told to send. Of the rest brokers look into the records."""

ATTRIBUTE_NAME_LENGTH_MAX = 256
"""Bytes of an attribute's name; dotted JSON paths are the long ones."""

CREDENTIALS_LENGTH_MAX = 3000
"""Bytes of what a HELLO says of who this is: a web token with many roles has 2,000, and beside the longest name of a
client it fits into a frame of the handshake."""

TEXT_LENGTH_MAX = 64 * 1024
"""Any string of a message but the topics column and conditions: error texts are cut long before."""

CONDITION_LENGTH_MAX = 520 * 1024
"""Bytes of the condition of a SUBSCRIBE: brokers take 4 KiB and, in IN lists, 512 KiB of values more."""

SUBSCRIBE_LENGTH_MAX = CONDITION_LENGTH_MAX + CONTROL_LENGTH_MAX
"""A SUBSCRIBE, or an ASK that explains one: the longest condition beside what any such frame may have."""

INTEREST_ATTRIBUTES_MAX = 64
"""Attributes named in one INTEREST; a stream filtered on more of them simply asks its publishers for all."""

HANDSHAKE_SECONDS_MAX = 5.0
"""From connection to a finished handshake. Long for any network, short for ten thousand idle sockets."""

DIAL_SECONDS_MAX = 2.0
"""As above, for a client that has another broker to turn to: a dead machine must not keep it from the living ones."""

FRAME_SECONDS_MAX = 30.0
"""From the first byte of a frame to its last. 4 MiB in 30 s is 140 KiB/s: slower than that holds memory hostage."""

HEARTBEAT_SECONDS_DEFAULT = 15.0
"""Silence after which a PING goes out; twice this without a byte means that the other side is gone."""

HEARTBEAT_SECONDS_MIN = 0.05
"""Below this heartbeats would be traffic of their own; tests go down to here."""

HEARTBEAT_SECONDS_MAX = 300.0
"""Above this a half-open connection would hold its session's memory for ten minutes."""

CREDIT_DEFAULT = 65_536
"""Deliveries a subscriber's connection may have under way: some ten milliseconds of a full loopback."""

CREDIT_BYTES_DEFAULT = 16 * 1024 * 1024
"""Bytes of records that a subscriber's connection may have under way: 256 bytes an event of CREDIT_DEFAULT, and what a
full loopback carries in ten milliseconds. What is not taken waits at the broker."""

CREDIT_MAX = 2**53
"""Cumulative counters stay exact in languages whose only number is a double."""

PUBLISH_WINDOW_DEFAULT = 256
"""Batches a publisher may have unacknowledged; 256 of 500 events cover a 100 ms round trip at a million a second."""

TOPIC_LENGTH_MAX = 1024
"""Bytes of a topic."""

TOPIC_LEVELS_MAX = 32
"""Levels of a topic."""

LINGER_EVENTS_DEFAULT = 500
"""Events that a client collects before it sends them; beyond some hundred nothing gets faster."""

LINGER_BYTES_MAX = 256 * 1024
"""Bytes that a client collects before it sends them: large bodies gain nothing from company."""

LINGER_SECONDS_DEFAULT = 0.001
"""How long a client collects at most, and only while something is unacknowledged."""

QUEUE_BYTES_MAX = 16 * 1024 * 1024
"""Published and not acknowledged, in one client: some seconds of a slow link. Above it the publisher waits."""

ENTRY_OVERHEAD_BYTES = 512
"""What a batch on its way costs beside its bytes, so that many tiny ones are bounded too."""

KNOWN_TOPICS_MAX = 16_384
"""Topics a client remembers as well-formed; then it forgets all and checks anew."""

KNOWN_SHAPES_MAX = 1_024
"""Sets of attribute names a client remembers as well-formed; then it forgets all and checks anew."""

FAILURES_KEPT_MAX = 100
"""Errors of unawaited publishes that a client keeps; all are counted."""

GAPS_KEPT_MAX = 100
"""Gaps that a subscription keeps; what was lost is counted in full."""

RETRY_SECONDS_ENDING = 30.0
"""How long a client that is being closed, or a verb of the command line, tries to come back: three times the grace for
which a broker keeps its session. Any other client tries for ever, unless it is told otherwise."""

RETRY_DELAY_SECONDS_MIN = 0.05
"""The first pause between two attempts: a broker that restarts needs more, a dropped connection needs less."""

RETRY_DELAY_SECONDS_MAX = 2.0
"""The longest pause: within the grace of 10 seconds there are always several attempts."""

ADDRESSES_MAX = 16
"""Brokers that a client is told of: one of them must be alive. A round of all, none answering, ends within 40 s."""

PEER_HEARTBEAT_SECONDS = 1.0
"""Silence between brokers after which a PING goes out, and after it the link: who answers for a key has to be known
within seconds, and the links of one machine room are never silent for one without a reason."""

PEER_CREDIT_DEFAULT = 65_536
"""Events that may be under way between two brokers: as many as to a subscriber, for the same ten milliseconds."""

LETTER_LENGTH_MAX = 1024
"""Elements of a list in a LETTER: a successor list has four, the brokers of a forming ring are at most some dozens."""

PAGE_LENGTH_MAX = 1024 * 1024
"""A CONTROL frame: one page of the keyed store and the longest item behind it, of which several go out between two
heartbeats on a slow link."""

SETTINGS_MAX = 32
"""Settings that brokers compare when they meet; all of them fit the frame of a handshake."""

HOPS_MAX = 255
"""Brokers that passed a FORWARD on. Routing takes a dozen hops among thousands; more is a loop."""

DIMENSIONS_MAX = 256
"""Dimensions of one FORWARD: a broker with more in use sends several."""

DIMENSION_LENGTH_MAX = 16
"""Scalars that name a dimension; there are six."""

DIGEST_LENGTH_MAX = 64
"""Bytes of a producer's digest: the longest hash in use, SHA-512."""

LOG_CHUNK_BYTES_MAX = 1024 * 1024
"""Bytes of rows in one LOG_CHUNK, unless its only row is larger: some milliseconds of a disk, and the pull of the next
chunk costs nothing beside it."""

LOG_CHUNK_ROWS_MAX = 4096
"""Rows of a LOG_CHUNK: as many as a batch may have events; rows so small that more would fit cost their handling."""

ACK_SPANS_MAX = 4096
"""Spans of delivery numbers in one ACK, and of stale ones in an ACKED: four times the events that a client of a durable
subscription has unacknowledged unless it asks for more, each of them apart from the others."""

ACKS_OPEN_MAX = 2
"""ACKs of one durable subscription that have no answer: one that is being written, and one for the write behind it. A
broker writes one state of a subscription at a time, so with more of them nothing would be confirmed any sooner; what is
said meanwhile goes together with the next one, and who acknowledges one by one costs little more than in batches."""

ACK_SECONDS_ENDING = 5.0
"""How long a client that is being closed waits for the answers to its last ACKs: a disk needs some milliseconds, and a
broker that takes over from a dead one some seconds. What has no answer by then is perhaps handed out again."""

OWN_GHOST_SECONDS_MAX = 45.0
"""How long a client that has lost its connection asks for a durable subscription that is attached elsewhere: to its
broker it may still be there itself, for two heartbeats of silence (30 s) and what a new coordinator needs."""

STORE_ATTEMPTS_MAX = 14
"""How often a client sends a batch that could not be stored, with pauses as between OPEN_ATTEMPTS_MAX."""

STORE_TRY_SECONDS_MAX = 20.0
"""How long a client tries while nothing of a producer is stored: retention makes room on a full disk within some
seconds, and a cluster finds itself again. A broker waits for its followers for five before it says no, so whoever
publishes hears of it within 25."""

REPLAY_NEAR_EVENTS = 4096
"""Events left to read in the logs of a stream when a replay subscribes to what comes live: what is delivered while it
reads these waits at the broker and here, within the window of credit."""

REPLAY_LATE_SECONDS = 20.0
"""By how much an event may be overtaken by others of its broker on the way to one subscription. The longest that one
waits for a broker that answers for its key is 15 seconds (then it is lost, and told)."""

DELIVERED_RUNS_MAX = 131_072
"""Runs of positions of one log that came live behind a hole, of which a replay remembers each: two megabytes. Who gets
more of them than half as many in REPLAY_LATE_SECONDS remembers those of a shorter time."""

REPLAY_SURE_SECONDS = 2 * HEARTBEAT_SECONDS_MAX + REPLAY_LATE_SECONDS
"""What was accepted so long before a silence came before it: for as long a connection may be dead and nobody knows, and
an event be on its way."""

READ_AGO_SECONDS_MAX = 86_400.0
"""How far back the `ago` of a READ_LOG reaches: as long as any time on the wire."""

REPLAY_POLL_SECONDS_MIN = 0.5
"""The first pause before a replay looks whether brokers that it could not reach are back; each later one is longer."""

REPLAY_POLL_SECONDS = 5.0
"""How often it looks in the long run: well within REPLAY_LATE_SECONDS."""

REPLAY_POLL_SECONDS_MAX = 60.0
"""The longest pause between two such looks: the longer one takes, the longer is the pause."""

OPEN_ATTEMPTS_MAX = 14
"""How often a client asks to open a producer while the cluster is being repaired, with pauses up to
RETRY_DELAY_SECONDS_MAX: twenty seconds, somewhat longer than a cluster needs to find itself again."""

# Bits of a filter of a document, and hashes of an item: matching/SPEC.md, 7.6.
FILTER_BITS_MAX = 64 * 1024
FILTER_HASHES_MAX = 4

# A filter with more of its bits set is not sent: it would let nearly every twig through, and costs as much as one that
# says something.
FILTER_FULL_SHARE = 0.5

# An event whose filter of structure has more of its bits set is refused. Of 473 real documents the fullest has 18 % of
# 1,024 bits, and 80 % of 128; of 1,024 bits 2,360 names and pairs fill this share.
FILTER_SATURATED_SHARE = 0.9

# Bytes of a text that is an item: matching/SPEC.md, 7.5.
VALUE_LENGTH_MAX = 64

# Objects within one another in a JSON document. For elements lxml has a bound of its own.
DOCUMENT_DEPTH_MAX = 256

# Names, and pairs of names, whose bits are remembered, some 200 bytes each: documents of a stream repeat theirs.
ITEMS_REMEMBERED_MAX = 64 * 1024

# Filters that are remembered whole, and the pairs of names that such a document has at most, some 8 KiB each: documents
# of a stream repeat their structure.
FILTERS_REMEMBERED_MAX = 1024
REMEMBERED_PAIRS_MAX = 64

# Names of columns of filters whose shape is remembered: a stream has one or two.
SHAPES_REMEMBERED_MAX = 256

# Twigs of one subscription, and items of one of them: more than a condition has room for.
CHECKS_MAX = 256
CHECK_ITEMS_MAX = 256

# Topics by which a subscription counts what XPATH kept back: more than anybody reads, and some ten kilobytes.
FALSE_POSITIVE_TOPICS_MAX = 64

# DELTAs of one subscription, more than a condition has room for; and topics of which a reader of logs remembers what it
# handed out last, some 300 bytes each. As many as a broker remembers; one more costs an event that need not have come.
MOVES_MAX = 256
MOVES_TOPICS_MAX = 65_536

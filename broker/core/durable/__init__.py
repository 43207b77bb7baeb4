"""Durable subscriptions: each has a name, a pattern, a condition and a cursor, and outlives its clients.

A service names its subscription, and the cluster keeps its place: what matches waits until it is acknowledged, over
crashes of clients and brokers. Every other broker with such a promise keeps a queue of copies, or a cursor that knows
no condition. Here the truth is small, and what waits is computed from it:

    record     pattern, condition and settings                          |  on k disks, one value a name (`DurableState`)
    cursor     for each log of the stream, what is settled already      |
    logs       the stored events themselves, on k disks anyway
    mailbox    which positions match and are not settled: a pure function of the three, in memory at one broker

Three parts of a broker talk to each other, also when they are the same broker:

    coordinator   the owner of the key of the name: it alone hands out, and counts acknowledgements
    log side      every broker that holds a log of the stream: it says which positions match (*facts*)
    home          the broker of a client: it reads the events and sends them

**Feeding.** A fact says that of the positions from `start` to `upto` exactly these match. It is told of what is before
the high watermark, so it never changes; it may be told twice and by several brokers, and the mailbox takes what it does
not know yet. Where a log is read, one scan serves all feeds that are behind; from the end on, a batch is matched once,
when it is committed, by the same index as any subscription. A subscription is not matched at its rendezvous: a log
knows its own order and its own end, so nothing has to be found out about what was missed.

**The fence.** Who takes a subscription over collects its states from as many brokers as must include one of k disks,
joins them, and writes the next *generation* to k disks before it hands anything out. Brokers refuse states of older
generations. Delivery numbers begin with the generation, so that an acknowledgement of an older delivery is stale.

**What is promised.** Registered on k disks before SUBACK, and gapless from there. At least once, first deliveries in
the order of each log. A duplicate only where an acknowledgement was not confirmed, and marked as redelivered: nothing
is handed out at or behind a mark that k disks have, so the next coordinator knows what may have been seen. What
retention takes before it was acknowledged is announced as a GAP. While two sides of a partition both reach enough
disks, both may hand out; the generation decides whose acknowledgements count.

**Changing it.** The index is a function of record, cursor and logs. So a new condition is a new record: what waits is
computed anew from the cursor. `from ack` looks at what was passed behind the first owed position, for what the new
condition adds to former ones (`Former`), whose events may be settled; `from now` keeps the old condition as a *section*
for the positions before the ends of that moment. What clients look for in documents (`Asking`) follows from the same
record, position by position.

**The state** (`DurableState`) is what k disks have: a record, which people set, and a `Cursor` for each log (`Place`).
`encode_state` and `decode_state` carry it, `join` makes one of two, `with_record` gives one the record of another
(`RECORD_FIELDS`). A `Section` is what a change of the condition left, a `DeadLetter` an event that was given up.
`check_options` reads the `Options` of a SUBSCRIBE, `check_settings` those that may be changed, `parse_positions` and
`positions_text` carry places to begin at; `key_attribute` says by which attribute events are shared.

**Runs** (`Run`) are sets of positions: `join_runs` and `split_runs` carry them, `runs_of` makes them, `count_of` counts
them, and there are `union`, `intersect` and `subtract`. `Waiting` is a queue of them.

**The mailbox** (`Mailbox`) decides what goes to whom: what waits, what is handed out (`HandedOut`), what comes again.
`DurableLimits` bounds it.

    `Durables`      the whole room as the Node sees it
    Keeping         states on disks; who coordinates; taking over
    Coordinator     the subscriptions that are coordinated here, each with its `Mailbox`
    Amendment       what a new condition adds of what was passed
    Feeding         which positions of the logs here match which feeds
    Bodies          events at positions, from the log here or another broker's
    Attaching, Handing    the home of a client: brings it to its coordinator; sends what it is handed
    Moving          what of that DELTA lets pass, there
    DeadLetters     what was given up, for its topic
    Tally           how much waits, in all and for whom most

Timers are keyed by the constants of these files. Order of reading: `runs`, `state`, `mailbox`, `coordinator`,
`keeping`, `feeding`, `handing`, `bodies`.
"""

from .durables import Durables
from .limits import DurableLimits
from .mailbox import HandedOut, Mailbox
from .messages import Place
from .runs import Run, Waiting, count_of, intersect, join_runs, runs_of, split_runs, subtract, union
from .state import (
    RECORD_FIELDS,
    Cursor,
    DeadLetter,
    DurableState,
    Former,
    Options,
    Section,
    check_options,
    check_settings,
    decode_state,
    encode_state,
    join,
    key_attribute,
    parse_positions,
    positions_text,
    with_record,
)

__all__ = [
    "Cursor",
    "DeadLetter",
    "DurableLimits",
    "DurableState",
    "Durables",
    "Former",
    "HandedOut",
    "Mailbox",
    "Options",
    "Place",
    "RECORD_FIELDS",
    "Run",
    "Section",
    "Waiting",
    "check_options",
    "check_settings",
    "count_of",
    "decode_state",
    "encode_state",
    "intersect",
    "join",
    "join_runs",
    "key_attribute",
    "parse_positions",
    "positions_text",
    "runs_of",
    "split_runs",
    "subtract",
    "union",
    "with_record",
]

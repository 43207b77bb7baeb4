"""Durable subscriptions: a name with a pattern, a condition and a cursor for each log, which outlive their clients.

**The state** (`DurableState`) is what k disks have: a record, which people set, and a `Cursor` for each log (`Place`).
`encode_state` and `decode_state` carry it, `join` makes one of two, `with_record` gives one the record of another
(`RECORD_FIELDS`). A `Section` is what a change of the condition left, a `DeadLetter` an event that was given up.
`check_options` reads the `Options` of a SUBSCRIBE, `check_settings` those that may be changed, `parse_positions` and
`positions_text` carry places to begin at; `key_attribute` says by which attribute events are shared.

**Runs** (`Run`) are sets of positions: `join_runs` and `split_runs` carry them, `runs_of` makes them, `count_of` counts
them, and there are `union`, `intersect` and `subtract`. `Waiting` is a queue of them.

**The mailbox** (`Mailbox`) decides what goes to whom: what waits, what is handed out (`HandedOut`), what comes again.
`DurableLimits` bounds it.

Order of reading: `runs`, `state`, `mailbox`.
"""

from .limits import DurableLimits
from .mailbox import HandedOut, Mailbox
from .messages import Place
from .runs import Run, Waiting, count_of, intersect, join_runs, runs_of, split_runs, subtract, union
from .state import (
    RECORD_FIELDS,
    Cursor,
    DeadLetter,
    DurableState,
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

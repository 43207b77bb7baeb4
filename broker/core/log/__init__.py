"""Keeps stored streams: this broker's logs, copies of others' logs, and the last number of each producer, so that no
event is stored twice.

The theory is Kafka's, without elections: a log has one writer for ever, the broker that accepted its events, in one
epoch of its data folder. Positions are dense and given out once. So of two copies of a log the shorter one is a prefix
of the longer one, and the broker that has the most rows has them all. The right to write a log never moves to another
broker: a producer moves, and its events go to another log.

    Log            appends, the disk's answers, and who waits for a high watermark; `HeldLog` is one log that is here
    Leader         the leader's side of replication: sends rows to k - 1 followers, and counts what they have; it
                   chooses the nearest brokers that are linked and have room, not the siblings of any key
    Follower       the follower's side: appends rows of other brokers' logs; it says `CannotCopy` when its disk is full
    Producers      the last number of each producer, so that a batch that is sent again is recognised, and the opening
                   of it that holds (`fences`); `ProducerLists` gathers these numbers of a whole job from all brokers
    Reconciler     which of two rows of one batch stays, when a follower refused one: it opens their producers again
    LogReading     READ_LOG of a client
    Retention      trims the beginning of a log, by its stream's settings

**Contract.** Nothing is copied before our own disk has it. Nothing is delivered or read, and no batch in mode stored is
acknowledged, before k disks have it (`HeldLog.readable`): so nobody sees what may be taken back. A copy is shown as far
as its leader says that k disks have it; where k is 2 the copy is the second disk. The disk is asked by effects
(`Append`, `CutLog`, `ReadRows`, ...) and answers by inputs, in the order of the tickets. `NotStored` says that
everything pending has failed; after a failure that leaves open what the disk holds the broker stops (`Halt`). Rows of
our own logs that our disk has are taken out with `Log.take_landed`, batches that k disks have (`Committed`) with
`Log.take_committed`; `Node._after_log` hands the first to `Leader.landed` and the second to `Publishers.deliver`.
`Log.take_changed` names the logs that are new, begin later or may be read further than before. `shortage` says in words
which disks are missing.

**Timers.** `WAITERS`, `OPENINGS` and `LISTINGS` end waits that took too long, `REPLICATION` and `RECONCILE` ask again
the brokers that did not answer, `CHECKPOINT` has high watermarks written down, `RETENTION` looks for rows that are too
old or too many.

**Vocabulary.** The places of a log, in ascending order, by their names in the code and in the glossary:

    `first`       log start         the first row that is still there
    `safe`        high watermark    rows before it are on k disks: they may be delivered and read
    `next`        durable end       rows before it are on our disk
    `assigned`    log end           rows before it have a number

*Recovered* (`recovered`): the log may be appended to, because other brokers said how far they have copied it, or nobody
answered within `VOUCH_SECONDS_MAX`. *Fenced*: shut out by a newer epoch of the producer (a client) or by a newer
opening of it (a row). *Tail*: rows behind the high watermark, which may be taken back.

Order of reading: `log`, `leader`, `follower`, `producers`, `fences`, `reconcile` (the hardest), then `reading`,
`retention` and `producer_lists`.
"""

from . import producers
from .follower import Follower
from .leader import REPLICATION, Leader
from .log import CHECKPOINT, WAITERS, Committed, HeldLog, Log
from .messages import CannotCopy
from .producer_lists import LISTINGS, ProducerLists
from .producers import OPENINGS, Producers, shortage
from .reading import LogReading
from .reconcile import RECONCILE, Reconciler
from .retention import RETENTION, Retention

__all__ = [
    "CHECKPOINT",
    "CannotCopy",
    "Committed",
    "Leader",
    "HeldLog",
    "Follower",
    "LISTINGS",
    "Log",
    "LogReading",
    "OPENINGS",
    "ProducerLists",
    "Producers",
    "RECONCILE",
    "REPLICATION",
    "RETENTION",
    "Retention",
    "Reconciler",
    "WAITERS",
    "producers",
    "shortage",
]

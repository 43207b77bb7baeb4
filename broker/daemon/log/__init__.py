"""Stores the rows of the broker's logs in SQLite, on a thread of its own, and says when they are on disk.

The Node asks by effects (append, trim, read, find) and is answered by inputs (`inputs.Stored`, `NotStored`,
`RowsRead`, ...). `SqliteLogStore` does what one batch of effects asks, in one transaction that ends with a
synchronisation of the disk; `LogWriter` runs it on a thread and hands its answers back to the loop. `LogLimits` bounds
both. A store that cannot be trusted raises `LogUnusable`, with what to do about it.

**Contract.** What was answered by `Stored` survives a crash of the process and of the machine. After a crash
the disk may also hold rows that were never confirmed by `Stored`; at start, `Opened` tells the Node where each log
really ends. A damaged file is salvaged as far
as each row's checksum holds, and the hole is told. A full disk refuses rows and nothing else.

Order of reading: `store`, `tables` (what is in the file), `writer`, `lookups` (find a row by time, size or producer),
`recovery` (the start), `mark` (which start this is), `check`, `salvage` and `aside` (damage), `errors`, `limits`.
"""

from .errors import LogUnusable
from .limits import LogLimits
from .store import SqliteLogStore
from .writer import LogWriter

__all__ = [
    "LogLimits",
    "LogUnusable",
    "LogWriter",
    "SqliteLogStore",
]

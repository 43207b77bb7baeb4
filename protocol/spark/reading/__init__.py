"""Reads logs into columns: which rows a task reads, how it fetches them, and how their bytes become columns.

**Planning.** A read goes over ranges of positions of each log: `start_of` and `end_of` make positions of what an
option says (`earliest`, `latest`, a time: `SINCE`), `resolved` asks the brokers for those that only they know,
`capped` keeps a micro-batch within its limit, `ranges_of` lists what lies between two offsets, and `plan_batch` cuts
it into tasks.

**Fetching.** `fetch` yields the chunks of one range from a broker that has it, and `Decoder` makes the columns of the
frame of them, all records of a chunk side by side (`opening`).
"""

from .decoding import Decoder
from .fetching import fetch
from .planning import end_of, plan_batch, ranges_of, resolved, start_of
from .positions import SINCE, capped

__all__ = [
    "Decoder",
    "SINCE",
    "capped",
    "end_of",
    "fetch",
    "plan_batch",
    "ranges_of",
    "resolved",
    "start_of",
]

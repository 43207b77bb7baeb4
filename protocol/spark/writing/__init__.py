"""Publishes the rows of one Spark partition, each stored once however often the task or the job is run.

An `Attempt` is one run of one task; `publish_attempt` sends its rows and `Sent` is what came of it. In mode `guarded`
each partition is a producer with an epoch, and the brokers fence what an older attempt sends; in mode `id` each row has
an identifier, and those that the cluster has are skipped. A `Mark` in the log says what a `Run` of a job was (its name
from `job_name`, read back with `mark_of`): how many partitions it had and what they held, so that a job that is run
again in another shape is refused before its first row (`rerun`). `planned_behind` puts a run behind every attempt that
the brokers know of its job; `Patience` is how long it asks them.

Order of reading: `attempts`, `marks`, `rerun`, `sending`, then how rows become batches: `records`, `frames`, `digests`.
"""

from .attempts import Attempt, Run, publish_attempt
from .marks import Mark, job_name, mark_of
from .rerun import Patience, planned_behind
from .sending import Sent

__all__ = [
    "Attempt",
    "Mark",
    "Patience",
    "Run",
    "Sent",
    "job_name",
    "mark_of",
    "planned_behind",
    "publish_attempt",
]

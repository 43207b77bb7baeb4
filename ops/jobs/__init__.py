"""Runs Spark jobs with a cluster: each is a file for `spark-submit`, with others beside it where it is larger than a
page.

    audit       what should have been delivered, recomputed from the brokers' logs, and what was
    publish     rows of Parquet, CSV or JSON files as events
    replay      a window of a log to another stream, to Parquet or into a table, each event once
    functions   conditions as a function of Spark's SQL

They run in local mode as well: `headgate audit`, `python -m headgate.ops.jobs.publish`.

For the command line, the demo and chaos: `add_arguments` and `run_audit` are the command `headgate audit`;
`audit_cluster` is its work on a session that `start_session` made, `missing_parts` what must be installed first,
`LogSource` where the logs come from and `surveys_of` what each broker says of its own.

What needs the grammar of conditions is imported when it is asked for: `publish` runs where only `headgate[spark]` is.
"""

from typing import TYPE_CHECKING

from .audit_session import missing_parts, start_session
from .deferred import deferred

if TYPE_CHECKING:
    from . import audit
    from .audit import add_arguments, audit_cluster, run_audit, surveys_of
    from .audit_source import LogSource

__all__ = [
    "LogSource",
    "add_arguments",
    "audit",
    "audit_cluster",
    "missing_parts",
    "run_audit",
    "start_session",
    "surveys_of",
]

_AUDIT = ("add_arguments", "audit_cluster", "run_audit", "surveys_of")
__getattr__ = deferred(__name__, dict.fromkeys(_AUDIT, "audit") | {"LogSource": "audit_source"})

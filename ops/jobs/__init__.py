"""Jobs for Spark: each a file for `spark-submit`, with rooms beside it where it is larger than a page.

    audit       what should have been delivered, recomputed from the brokers' logs, and what was
    publish     rows of Parquet, CSV or JSON files as events
    replay      a window of a log to another stream, to Parquet or into a table, each event once
    functions   conditions as a function of Spark's SQL

They run in local mode as well: `headgate audit`, `python -m headgate.ops.jobs.publish`.
"""

from . import audit, audit_limits, audit_windows, publish, publish_progress, replay
from .audit import add_arguments, audit_cluster, run_audit, surveys_of
from .audit_session import missing_parts, start_session
from .audit_source import LogSource

__all__ = [
    "LogSource",
    "add_arguments",
    "audit",
    "audit_cluster",
    "audit_limits",
    "audit_windows",
    "missing_parts",
    "publish",
    "publish_progress",
    "replay",
    "run_audit",
    "start_session",
    "surveys_of",
]

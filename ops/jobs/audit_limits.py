"""Every bound of the audit, each with its reason."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ANSWER_SECONDS",
    "BOUNDARY_SECONDS",
    "CHUNK_CONDITIONS",
    "CRASH_SECONDS",
    "EXAMPLES_MAX",
    "GAP_SECONDS",
    "LATE_SECONDS",
    "LOGGED_SECONDS",
    "OUTSIDE_SECONDS",
    "PERCENTILE_ACCURACY",
    "ROUND_SECONDS",
    "SESSION_SECONDS",
    "SETTLE_SECONDS",
    "SHUFFLE_PARTITIONS",
    "SPARK_ATTRIBUTES_MAX",
    "SPARK_DEPTH_MAX",
    "SPARK_NAMES_MAX",
    "SPARK_TWIGS_MAX",
    "TROUBLES_MAX",
    "WINDOW_SECONDS",
    "WORTH_A_GLANCE",
]

BOUNDARY_SECONDS: Final = 2.0
"""Clocks of brokers differ by so much, and what happens around a change of a subscription takes so long. A matching
event so near to a change may be delivered or not."""

OUTSIDE_SECONDS: Final = 30.0
"""So long before a subscription began and after it ended, an event may still be delivered to it: an event may wait 5 s
for the disk and 15 s for an answer about a key, and then meet a subscription that is younger than itself."""

SESSION_SECONDS: Final = 12.0
"""A session outlives its connection by 10 s: what was matched in that time for a client that never came back was sent
to nobody. And a little for the clocks."""

LOGGED_SECONDS: Final = 2.0
"""What a client acknowledged is in the log after so long: lines are gathered for a quarter of a second."""

CRASH_SECONDS: Final = 20.0
"""So long after a broker died others may still have sent events to it, or have waited (15 s at most) for an answer."""

GAP_SECONDS: Final = 40.0
"""A GAP without numbers speaks of events no older than this: a broker that stood still for 20 s, and waits around."""

ANSWER_SECONDS: Final = 5.0
"""So long after an event was accepted its acknowledgement may not be in the log yet: a broker asks for it after two
seconds, and again. Whoever dies meanwhile never logs it."""

SETTLE_SECONDS: Final = 10.0
"""How long after an event was accepted its delivery may still come into the log before it counts as lost: 5 s for the
event's own disk and copies, and as much for the delivery's."""

LATE_SECONDS: Final = 1.0
"""A delivery later than this is counted as late; `--late` says otherwise."""

WINDOW_SECONDS: Final = 60.0
"""Continuous audit: one verdict for each minute of events."""

ROUND_SECONDS: Final = 30.0
"""Continuous audit: how often the logs are copied."""

CHUNK_CONDITIONS: Final = 200
"""Conditions in one array: measured best; more make the analysis slower, and fewer the evaluation."""

SPARK_NAMES_MAX: Final = 8
"""Names of a twig that Spark evaluates: Java refuses an XPath of more than 100 operators, and a name with a text has
a handful. Longer twigs are evaluated by us."""

SPARK_TWIGS_MAX: Final = 100
"""Twigs that Spark evaluates: it parses a document for each of them. The others are evaluated by us, in one parse."""

SPARK_DEPTH_MAX: Final = 200
SPARK_ATTRIBUTES_MAX: Final = 200
"""Elements within one another, and attributes of an element, of a document that Spark reads: from version 24 on Java
refuses more, and that would end the whole job."""

SHUFFLE_PARTITIONS: Final = 4
"""In local mode. Spark's default of 200 costs seconds for small logs."""

PERCENTILE_ACCURACY: Final = 10_000
"""Relative error of percentiles: one in so many ranks."""

EXAMPLES_MAX: Final = 10
"""Findings shown of a stream; all of them are in the Parquet files."""

TROUBLES_MAX: Final = 20
"""Subscriptions that cannot be audited and are named one by one."""

WORTH_A_GLANCE: Final = 12
"""Subscriptions shown in a table when nothing is wrong with them; the rest is one line. `--all` shows each."""

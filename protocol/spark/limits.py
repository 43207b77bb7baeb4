"""Every bound of the Spark source, each with its reason."""

from __future__ import annotations

from headgate.protocol.limits import PUBLISH_LENGTH_MAX

__all__ = [
    "ACK_SECONDS_DEFAULT",
    "ACK_SECONDS_MAX",
    "FETCH_RECORDS_DEFAULT",
    "FETCH_RECORDS_MAX",
    "FRAME_BYTES_DEFAULT",
    "FRAME_BYTES_MAX",
    "FRAME_BYTES_MIN",
    "INFLIGHT_DEFAULT",
    "INFLIGHT_MAX",
    "COMPARE_SECONDS_MAX",
    "EXCERPT_CHARACTERS",
    "FILTERED_BYTES_MAX",
    "IDS_KNOWN_MAX",
    "OPENING_STEPS_MAX",
    "OPENING_VALUES_MAX",
    "PARTITIONS_MAX",
    "PEERS_LOOK_SECONDS",
    "RANGE_EVENTS_MAX",
    "RANGE_EVENTS_MIN",
    "REQUEST_SECONDS_DEFAULT",
    "RUN_EPOCHS",
    "SHORT_TEXT_BYTES",
    "STREAMS_READ_MAX",
    "TRIGGER_SECONDS_MAX",
]

FRAME_BYTES_DEFAULT = 1024 * 1024
"""Records in one frame. Between 100 KB and 4 MB nothing gets faster; smaller frames give the broker's disk more to
group and less to wait for."""

FRAME_BYTES_MIN = 4096
"""Below this a frame is mostly header."""

FRAME_BYTES_MAX = PUBLISH_LENGTH_MAX - 256 * 1024
"""What a PUBLISH takes, less room for topics, lengths and match columns."""

INFLIGHT_DEFAULT = 8
"""Frames that a task may have unanswered: one is on the disk, one on its way, the others hide a slow round trip."""

INFLIGHT_MAX = 256
"""The broker's own publish window."""

FILTERED_BYTES_MAX = FRAME_BYTES_MAX + 192 * 1024
"""Records of a frame and filters of their documents, so that a PUBLISH takes both. Beyond it filters are left out, and
brokers send the documents on to be looked at."""

EXCERPT_CHARACTERS = 60
"""How much of a bad document an error shows."""

ACK_SECONDS_DEFAULT = 30.0
"""How long a task waits for an answer before it fails and Spark tries it again: a restart of a broker is shorter."""

ACK_SECONDS_MAX = 3600.0
"""More is a hung job."""

REQUEST_SECONDS_DEFAULT = 30.0
"""How long a reader tries to come back to a broker, as long as the client library does by itself."""

FETCH_RECORDS_DEFAULT = 10_000
"""Rows of one Arrow batch handed to Spark: its own default."""

FETCH_RECORDS_MAX = 1_000_000
"""More in one batch only costs memory."""

PARTITIONS_MAX = 10_000
"""Tasks of one read; a driver suffers from more."""

RANGE_EVENTS_MAX = 250_000
"""What one task reads of a log, unless `minPartitions` says otherwise: about a second of work, so that a large log is
read by all cores, as Spark splits large files."""

RANGE_EVENTS_MIN = 1_000
"""A part of a log smaller than this is not worth a task of its own."""

COMPARE_SECONDS_MAX = 600.0
"""How long a task of a rerun waits for others that are comparing their rows with those of an earlier run. They read and
encode them without sending, some 100,000 rows a second and more."""

PEERS_LOOK_SECONDS = 0.2
"""How often it asks whether they are done."""

IDS_KNOWN_MAX = 10_000_000
"""Ids of earlier runs in the memory of one Python worker: about 1 GiB, and as long as all its tasks ask for."""

RUN_EPOCHS = 2**21
"""Epochs of one run: two for each of a million attempts, of which a run has fewer. Runs of a job are
planned at least so far apart (`rerun.planned_behind`)."""

SHORT_TEXT_BYTES = 256
"""Texts shorter than this take their header from a table; beyond it the header grows a byte longer."""

OPENING_STEPS_MAX = 256
"""Names that records are searched for side by side. With more of them a step serves few records, and costs as much."""

OPENING_VALUES_MAX = 4_000_000
"""Values of all attributes that are in memory at once, at 17 bytes each, there or not: 68 MB."""

STREAMS_READ_MAX = 64
"""Streams of one read: each is a question to every broker when it is planned."""

TRIGGER_SECONDS_MAX = 86_400.0
"""A micro-batch that waits a day for enough events is no stream."""

"""Every number that shapes a measurement, each with its reason. They are the same for every server."""

from __future__ import annotations

__all__ = [
    "AUDIT_QUIET_SECONDS",
    "AUDIT_RUN_SECONDS_MAX",
    "AUDIT_TRAFFIC_SECONDS_MAX",
    "ARRIVALS_PER_CHUNK_MAX",
    "BODY_LENGTH",
    "CAMPAIGN_ANSWER_SECONDS_MAX",
    "CAMPAIGN_QUIET_SECONDS_MAX",
    "CAMPAIGN_START_SECONDS_MAX",
    "CHAOS_AUDIT_SECONDS_MAX",
    "CHAOS_DOOMED_SECONDS",
    "CHAOS_GAP_SECONDS_MAX",
    "CHAOS_IN_FLIGHT_SECONDS",
    "CHAOS_QUIET_SECONDS",
    "CHILD_SECONDS_MAX",
    "CHUNK_EVENTS",
    "CROWD_PUBLISHERS",
    "DURABILITY_BATCHES_UNDER_WAY",
    "DURABILITY_DRAIN_SECONDS_MAX",
    "DURABILITY_EVENTS_UNDER_WAY",
    "DURABLE_AHEAD_EVENTS",
    "DURABLE_BATCHES_UNDER_WAY",
    "DURABLE_MAKERS",
    "DURABLE_QUESTIONS",
    "DURABLE_TAKEN_SECONDS_MAX",
    "FAILOVER_GIVE_UP_SECONDS",
    "FAILOVER_SECONDS_MAX",
    "FRAMES_PER_CHUNK_MAX",
    "IN_FLIGHT_ARRIVALS_MAX",
    "IN_FLIGHT_ARRIVALS_SLOW_MAX",
    "IN_FLIGHT_EVENTS_MAX",
    "KILLS_BATCHES_UNDER_WAY",
    "KILLS_AUDIT_SECONDS_MAX",
    "KILLS_BATCH_EVENTS_MAX",
    "KILLS_BETWEEN_SECONDS_MAX",
    "KILLS_DRAIN_SECONDS_MAX",
    "KILLS_REPLAY_SECONDS_MAX",
    "KILLS_RETRY_SECONDS",
    "KILLS_SILENCE_SECONDS_MAX",
    "LATENCY_EVENTS_PER_SECOND",
    "LOG_CLOSE_SECONDS",
    "LOG_EVENT_BYTES",
    "LOG_IN_FLIGHT_BYTES",
    "LOG_SYNCHRONISATIONS",
    "OPEN_FILES_WANTED",
    "READ_LENGTH",
    "RING_EVENTS",
    "SETTLE_SECONDS_MAX",
    "SILENCE_SECONDS_MAX",
    "SPARK_MQTT_RATIO_MIN",
    "SPARK_READ_WRITE_RATIO_MAX",
    "SPARK_ROWS_PER_SECOND_MIN",
    "START_SECONDS_MAX",
    "WARM_UP_SECONDS",
]

CROWD_PUBLISHERS = 200
"""Connections that each write one event at a time: as many as one turn of a loop is likely to find ready at once."""

BODY_LENGTH = 128
"""Bytes of an event's body: a quote, a sensor reading, a short log line. The size reference tables are given for."""

CHUNK_EVENTS = 500
"""Events in one write of the generator, and in a Headgate batch as the client ships it. 70 KiB: one full write."""

ARRIVALS_PER_CHUNK_MAX = 50_000
"""Deliveries that one write may cause. A flood to 1,000 connections is written 50 events at a time, not 500."""

FRAMES_PER_CHUNK_MAX = 64
"""Headgate frames in one write when a batch is a single event: a quarter of the publish window, so it never stalls."""

RING_EVENTS = 20_000
"""Different events in the generator's ring: twice the topics of workload c, and small enough for 3 MB of cache."""

IN_FLIGHT_EVENTS_MAX = 50_000
"""Events sent and not yet arrived. Below the default credit of 65,536; at four million a second it is 12 ms of work."""

IN_FLIGHT_ARRIVALS_MAX = 1_000_000
"""The same bound in deliveries, for fan-out: 20 ms of work at fifty million a second, 130 MB across all sockets."""

IN_FLIGHT_ARRIVALS_SLOW_MAX = 100_000
"""For servers of some hundred thousand deliveries a second: a million would take ten seconds to drain."""

LATENCY_EVENTS_PER_SECOND = 1000
"""Slow enough that nothing queues behind anything, fast enough for a p99 of some thousand events."""

READ_LENGTH = 1 << 20
"""Bytes the sink takes in one read."""

WARM_UP_SECONDS = 0.3
"""Traffic before the clock starts: caches fill, the garbage collector settles, sockets grow their windows."""

SILENCE_SECONDS_MAX = 5.0
"""With something outstanding and no arrival for this long, the rest is counted as lost."""

CHILD_SECONDS_MAX = 120.0
"""A generator or sink that takes longer than this hangs; the slowest peer needs some ten seconds to drain."""

START_SECONDS_MAX = 15.0
"""From starting a server to its first accepted connection, on a busy machine."""

OPEN_FILES_WANTED = 4096
"""Sockets of workload e1k on either side, and room to spare."""

SETTLE_SECONDS_MAX = 60.0
"""Brokers of one machine are one cluster within some seconds; with two cores for five of them it may take more."""

AUDIT_QUIET_SECONDS = 3.0
"""No delivery for so long, and all of them are here and acknowledged: clients are asked after two seconds."""

AUDIT_TRAFFIC_SECONDS_MAX = 600.0
"""How long the traffic before an audit may take: 200,000 deliveries, each in a loop turn of a client, are 20 s."""

AUDIT_RUN_SECONDS_MAX = 600.0
"""How long one audit of it may take: a minute on two busy cores."""

CAMPAIGN_START_SECONDS_MAX = 120.0
"""How long a Spark driver and its two executors may take to be there: 12 seconds on two busy cores."""

CAMPAIGN_QUIET_SECONDS_MAX = 30.0
"""How long workers of a job that is over may go on publishing: they end with their executor, within a second or two."""

CAMPAIGN_ANSWER_SECONDS_MAX = 300.0
"""How long one job of the Spark campaign may take. Half a million rows are written in ten seconds; the rest is patience
with brokers that come back and executors that are started again. A job that takes longer hangs, which is a finding."""

CHAOS_IN_FLIGHT_SECONDS = 1.0
"""An event accepted so long before a subscriber lost its broker may still have been on its way. It is milliseconds on
a quiet machine; here five brokers share two cores with everything else."""

CHAOS_DOOMED_SECONDS = 1.0
"""What a broker accepted so shortly before it was killed may have died with it."""

CHAOS_GAP_SECONDS_MAX = 40.0
"""A GAP accounts for events no older than this: a broker that is stopped for 20 s, and waiting before and after it."""

CHAOS_AUDIT_SECONDS_MAX = 600.0
"""Spark beside five brokers on two cores, over some hundred thousand deliveries: a minute or two."""

CHAOS_QUIET_SECONDS = 5.0
"""When nothing has arrived for so long, what is missing does not come any more."""

FAILOVER_SECONDS_MAX = 10.0
"""The promise: so soon after a broker was killed, publishing and subscribing through the others works again."""

FAILOVER_GIVE_UP_SECONDS = 60.0
"""What has not come back after so long does not count as slow but as broken."""

SPARK_ROWS_PER_SECOND_MIN = 250_000
"""What Spark must get into one broker's log on two cores: a quarter of what its connector reached against a sink that
threw everything away, because broker and disk share those cores."""

SPARK_MQTT_RATIO_MIN = 10
"""How many times the loop that people write by hand it must be: less would not be worth a data source."""

LOG_EVENT_BYTES = 100
"""One event on the disk: a small one, so that what a row costs shows."""

LOG_IN_FLIGHT_BYTES = 16 * 1024 * 1024
"""Rows that wait for the disk at a time: several commits of the largest size."""

LOG_SYNCHRONISATIONS = 200
"""Synchronisations of a bare file: enough for a 99th percentile, and some seconds on the slowest disk."""

LOG_CLOSE_SECONDS = 60.0
"""What was written is taken over at the end; a disk that needs longer is no disk to measure."""

DURABILITY_BATCHES_UNDER_WAY = 128
"""Half of the publish window: enough batches to share a synchronisation of the disk, and the window never closes."""

DURABILITY_EVENTS_UNDER_WAY = 32_000
"""The same bound for batches of 1,000: 5 MB in the client, a third of what it takes before it is full."""

DURABILITY_DRAIN_SECONDS_MAX = 30.0
"""After the last acknowledgement, mode `accepted` may still have to write: a second or two; more is a fault."""

DURABLE_AHEAD_EVENTS = 20_000
"""Events published and not taken yet: a tenth of a second of the fastest client, and below every window."""

DURABLE_BATCHES_UNDER_WAY = 16
"""Batches that wait for their acknowledgement: enough to share a synchronisation of the disk."""

DURABLE_MAKERS = 64
"""Subscriptions that are made at a time: each waits for the disk once, and they share that."""

DURABLE_QUESTIONS = 50
"""Questions about what waits: enough for a median on a busy machine."""

DURABLE_TAKEN_SECONDS_MAX = 600.0
"""What is not taken by then is not taken: a million events, one by one, on a busy machine take minutes."""

KILLS_BATCHES_UNDER_WAY = 8
"""Batches that wait for their acknowledgement whenever a broker is killed."""

KILLS_AUDIT_SECONDS_MAX = 1800.0
"""How long the audit of such a run may take: a million deliveries on two cores that others use as well."""

KILLS_BATCH_EVENTS_MAX = 40
"""Small, so that a run of some minutes has tens of thousands of batches that may be torn."""

KILLS_BETWEEN_SECONDS_MAX = 0.5
"""A broker is killed so soon after its first acknowledgement: within the first batches, or after hundreds."""

KILLS_DRAIN_SECONDS_MAX = 60.0
"""When nothing of what waits for durable subscriptions was acknowledged for so long, it is stuck."""

KILLS_REPLAY_SECONDS_MAX = 10.0
"""For the next thousand events of a replay. What has not come by then does not come."""

KILLS_RETRY_SECONDS = 3_600.0
"""The publisher's patience: lives are shorter than what counts as steady, so it is one spell of trouble to the end."""

KILLS_SILENCE_SECONDS_MAX = 60.0
"""Without an acknowledgement for so long, with every broker up, publishing has not come back but is broken."""

SPARK_READ_WRITE_RATIO_MAX = 0.7
"""Reading what was written takes at most this share of the time of writing it, on the same cores in the same run."""

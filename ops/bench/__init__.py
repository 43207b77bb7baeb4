"""Measurements: Headgate beside its peers, on this machine, in one run.

    headgate bench compare          rates and latency, with the peers found installed     wire/compare.py
    headgate bench latency          p50 and p99 alone                                     wire/latency.py
    headgate bench clients          what the shipped clients reach, verb by verb          wire/clients.py
    headgate bench rights           what TLS, names and rights cost, beside NATS with TLS wire/rights.py
    headgate bench strangers        what 2,000 failing handshakes do to a client          wire/strangers.py
    headgate bench slow             what a stalled subscriber does to the others          wire/slow.py
    headgate bench matching         the index alone: topics, conditions, flux             matching/matching.py
    headgate bench failover         from the kill of a broker until everything works      cluster/failover.py
    headgate bench cluster          what it costs to be several brokers                   cluster/cluster.py
    headgate bench log_store        the disk under the log                                log/store.py
    headgate bench durability       what it costs to have events on disks                 log/durability.py
    headgate bench spark_publish    rows of a DataFrame, stored, beside MQTT              spark/publish.py
    headgate bench spark_read       rows of a log into a DataFrame, beside Parquet        spark/read.py
    headgate bench spark_audit      the audit, beside pandas                              spark/audit.py
    make papers                     the papers' figures beside ours                       papers/
    make chaos                      brokers killed and stopped, every promise checked     chaos/chaos.py
    make spark-campaign             Spark jobs under kills: exact or refused              spark/campaign.py

Each is a module with `add_arguments(parser)` and `run(arguments) -> exit code`, and runs as `python -m` too.

Order of reading: the room `kit` (workloads as plain data, processes, cores, CPU time, fleets of brokers), `peers` (what
a server has to offer to be measured), `wire` (generator and sink, one run, the report), then any other; `limits`.

How it is kept fair. All servers get the same events from the same generator, in writes of the same size, encoded
before the clock starts, and are counted by the same sink; every delivery is counted, and a lost one lowers the rate.
The server has a core to itself. Headgate alone pays for its protocol: acknowledged batches within the publish window,
and credit. A server without conditions floods; it is credited with what its clients would have kept, and their
filtering is free. CPU shares of all three processes stand beside every rate, so that a rate which measured the
generator instead of the server is seen as such. Only ratios within one run mean anything.
"""

__all__: list[str] = []

"""Measurements: Headgate beside its peers, on this machine, in one run.

    headgate bench compare     rates and latency, with the peers found installed     compare.py
    headgate bench latency     p50 and p99 alone                                     latency.py
    headgate bench clients     what the shipped clients reach, verb by verb          clients.py
    headgate bench slow        what a stalled subscriber does to the others          slow.py
    headgate bench failover    from the kill of a broker until everything works      failover.py
    headgate bench cluster     what it costs to be several brokers                   cluster.py
    headgate bench spark_publish   rows of a DataFrame, stored, beside MQTT          spark_publish.py
    headgate bench spark_audit     the audit, beside pandas                          spark_audit.py
    make chaos                 brokers killed and stopped, and every promise checked chaos.py
    make spark-campaign        Spark jobs under kills: exact or refused              spark_campaign.py, spark_driver.py

Each is a module with `add_arguments(parser)` and `run(arguments) -> exit code`, and runs as `python -m` too.

Read in this order: `workloads` (what is asked and what happens, as plain data), `peers/peer` (what a server has to
offer to be measured), `load` (generator and sink, one run), `harness` (processes, cores, CPU time), `report`.
The three about clusters stand on `fleet` (brokers as processes that can be killed, stopped and started again).

How it is kept fair. All servers get the same events from the same generator, in writes of the same size, encoded
before the clock starts, and are counted by the same sink; every delivery is counted, and a lost one lowers the rate.
The server has a core to itself. Headgate alone pays for its protocol: acknowledged batches within the publish window,
and credit. A server without conditions floods; it is credited with what its clients would have kept, and their
filtering is free. CPU shares of all three processes stand beside every rate, so that a rate which measured the
generator instead of the server is seen as such. Only ratios within one run mean anything.
"""

__all__: list[str] = []

"""The Spark world: the PySpark data source `headgate`, a bulk publisher and a reader of logs.

    broker = {"headgate.bootstrap.servers": "127.0.0.1:7400"}
    frame.write.format("headgate").mode("append").options(**broker, topic="quotes/NYSE/OTE").save()
    spark.read.format("headgate").options(**broker, topic="quotes").load()

Spark finds it through `pyspark_headgate.py`, one folder level up. Nothing is loaded here: a worker that only decodes
rows must not pay for what the driver needs, and the other way round.

Read in this order: `options` (what a user sets), `errors`, `source` (the front of it); for writing `layout` (which
column is what), `records` and `frames` (Arrow to bytes), `marks` (by what a write is known again), `sending` (a retry
never publishes twice), `rerun` (nor does another run), `batch_writer` and `stream_writer`; for reading `positions`
(offsets), `schemas`, `fetching`, `decoding` (`opening`, `attributes`), `batch_reader`, `stream_reader`; beside them
`state_reader`.
"""

__all__: list[str] = []

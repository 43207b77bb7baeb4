"""The Spark world: the PySpark data source `headgate`, a bulk publisher and a reader of logs.

    broker = {"headgate.bootstrap.servers": "127.0.0.1:7400"}
    frame.write.format("headgate").mode("append").options(**broker, topic="quotes/NYSE/OTE").save()
    spark.read.format("headgate").options(**broker, topic="quotes").load()

Spark finds it through `pyspark_headgate.py`, one folder level up. Nothing is loaded here: a worker that only decodes
rows must not pay for what the driver needs, and the other way round.

Order of reading: `options` (what a user sets), `errors`, `limits`, `source` (the front of it), `connecting`; to publish
`layout` (which column is what), the room `writing`, then `batch_writer` and `stream_writer`; to read `schemas`, the
room `reading`, then `batch_reader` and `stream_reader`; beside them `state_reader`, the state of a cluster as rows.
"""

__all__: list[str] = []

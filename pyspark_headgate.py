"""The front door that Spark finds by itself: `format("headgate")` in reads, writes and streams.

Spark looks for top-level modules named `pyspark_*` and registers the `DefaultSource` in them. Where it cannot look (a
zip given with `--py-files`, a module beside the script), say it: `pyspark_headgate.register(spark)`.

    broker = {"headgate.bootstrap.servers": "127.0.0.1:7400"}
    quotes = spark.read.format("headgate").options(**broker, topic="quotes").load()
    frame.write.format("headgate").mode("append").options(**broker, topic="quotes/NYSE/OTE").save()

One module of that kind that fails to import takes all other sources with it. So this one imports nothing but Spark;
what is behind the door is loaded when somebody knocks, and if it cannot be, only this source fails and says why.
"""

from typing import Any

from pyspark.sql.datasource import DataSource

__all__ = ["DefaultSource", "register"]


def register(spark: Any) -> None:
    """Make the source known to a session that cannot find it.

    The process that plans a streaming read is given no `--py-files`: it finds our modules where this one is.
    """
    place = __file__.rpartition("/")[0] or "."
    environment = spark.sparkContext.environment
    paths = environment.get("PYTHONPATH", "").split(":")
    environment["PYTHONPATH"] = ":".join(dict.fromkeys([*filter(None, paths), place]))
    spark.dataSource.register(DefaultSource)


class DefaultSource(DataSource):
    """`format("headgate")`. Spark makes one for every plan, in a process of its own beside the driver."""

    @classmethod
    def name(cls) -> str:
        """What users write into `format`."""
        return "headgate"

    def schema(self) -> str:
        """The columns of the log that the options name."""
        from headgate.protocol.spark.source import schema_of

        return schema_of(self.options)

    def reader(self, schema: Any) -> Any:
        """For `spark.read`."""
        from headgate.protocol.spark.source import make_reader

        return make_reader(self.options, schema)

    def streamReader(self, schema: Any) -> Any:
        """For `spark.readStream`."""
        from headgate.protocol.spark.source import make_stream_reader

        return make_stream_reader(self.options, schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """For `df.write`."""
        from headgate.protocol.spark.source import make_writer

        return make_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """For `df.writeStream`."""
        from headgate.protocol.spark.source import make_stream_writer

        return make_stream_writer(self.options, schema, overwrite)

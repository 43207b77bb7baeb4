"""Jobs for Spark: each a file for `spark-submit`, with rooms beside it where it is larger than a page.

    audit       what should have been delivered, recomputed from the brokers' logs, and what was
    publish     rows of Parquet, CSV or JSON files as events
    replay      a window of a log to another stream, to Parquet or into a table, each event once
    functions   conditions as a function of Spark's SQL

They run in local mode as well: `headgate audit`, `python -m headgate.ops.jobs.publish`.
"""

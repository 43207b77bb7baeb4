"""Measures Spark with a broker, and runs its jobs under kills.

`publish` (rows into a log, beside MQTT), `read` (rows out of it, beside Parquet) and `audit` (the audit beside pandas)
are benches; `campaign` submits jobs to a Spark `driver`, a process of its own, while brokers, tasks, executors and
drivers are killed.
"""

__all__: list[str] = []

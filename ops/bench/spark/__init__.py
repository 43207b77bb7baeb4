"""Measures Spark with a broker: `publish` (rows into a log, beside MQTT), `read` (rows out of it, beside Parquet)."""

__all__ = []

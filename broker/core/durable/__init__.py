"""Durable subscriptions: a name with a pattern, a condition and a cursor for each log, which outlive their clients."""

__all__: list[str] = []

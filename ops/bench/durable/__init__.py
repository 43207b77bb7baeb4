"""Measures and tries durable subscriptions: `durable` is what they cost, `kills` SIGKILL of brokers and clients.

`jetstream` is what `durable` compares with. `crowd` is a process of clients that `kills` can kill, `ledger` what they
wrote down, and the verdict over it.
"""

__all__ = []

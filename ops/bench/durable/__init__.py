"""Tries durable subscriptions: `kills` is SIGKILL of brokers and clients while they are used.

`crowd` is a process of clients that can be killed, `ledger` what they wrote down, and the verdict over it.
"""

__all__ = []

"""Measures and tries the log: `durability` (what it costs a publisher), `store` (the disk alone), `kills` (SIGKILL at
random moments, then `ledger` compares every log with what was acknowledged).
"""

__all__ = []

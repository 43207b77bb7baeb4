"""Measures several brokers: what they cost beside one (`cluster`), and how fast they recover (`failover`).

`profile` samples where the processor time of a broker goes, by layer.
"""

__all__ = []

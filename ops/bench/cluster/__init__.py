"""Measures several brokers: what they cost beside one (`cluster`), how fast they recover (`failover`), and what DELTA
spares (`moved`).

`profile` samples where the processor time of a broker goes, by layer.
"""

__all__ = []

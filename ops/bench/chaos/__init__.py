"""Kills and stops brokers of a real cluster under traffic, and checks every promise afterwards.

`chaos` is the command, `crowd` the publishers and subscribers, `content` what they say and want, `ledger` the book of
what each should have received, `audit` Spark's opinion of the same from the brokers' logs.
"""

__all__ = []

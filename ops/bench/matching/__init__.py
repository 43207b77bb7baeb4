"""Measures the matching engine without sockets; one table for each claim.

`matching` is the command; `topics` is HIER's experiment, `flux` subscriptions that come and go, `dynamic` those with
DELTA, `worst` the cases that must stay bounded, `workloads` what is asked and what happens, `measure` the clock and the
memory.
"""

__all__ = []

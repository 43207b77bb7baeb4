"""Every bound of the blocking world, each with its reason."""

from __future__ import annotations

__all__ = ["CLOSE_SECONDS_MAX", "INFLIGHT_DEFAULT", "READ_BYTES", "UNSENT_BYTES_MAX"]

READ_BYTES = 256 * 1024
"""One read: what a loopback socket buffer holds, so that a busy connection needs few calls."""

UNSENT_BYTES_MAX = 1024 * 1024
"""Bytes that the socket did not take yet; above it no more batches are encoded."""

CLOSE_SECONDS_MAX = 1.0
"""How long a closing client waits for the broker to close as well."""

INFLIGHT_DEFAULT = 8
"""Batches of a producer under way: what a broker needs to fill one transaction while the next ones travel; more was
measured to change nothing."""

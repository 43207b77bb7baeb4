"""Every bound of the asyncio world, each with its reason."""

from __future__ import annotations

__all__ = [
    "CLOSE_SECONDS_MAX",
    "JOIN_BYTES_MAX",
    "READ_BYTES",
    "TURN_EVENTS_MAX",
    "WRITE_BUFFER_HIGH",
    "WRITE_BUFFER_LOW",
]

WRITE_BUFFER_HIGH = 1024 * 1024
"""Unsent bytes at which the handler is told to stop: more than one turn of a busy connection, little beside a frame."""

WRITE_BUFFER_LOW = 256 * 1024
"""Unsent bytes at which it may go on: low enough not to flutter, high enough that the socket never runs dry."""

READ_BYTES = 256 * 1024
"""What one read takes at most: several large batches, and little enough to stay in the cache of one core."""

JOIN_BYTES_MAX = 64 * 1024
"""Below this one copy and one call are cheaper than a call for each piece; above it the copy is what costs."""

CLOSE_SECONDS_MAX = 1.0
"""How long a closing connection waits for the other side to read our last words before it is cut."""

TURN_EVENTS_MAX = 1024
"""Events that a subscriber's loop takes without waiting before others have their turn: about a millisecond."""

"""Every bound of counting between brokers, each with its reason."""

from __future__ import annotations

__all__ = [
    "ASK_AGAIN_SECONDS",
    "IDENTITIES_PER_MESSAGE_MAX",
    "KEYS_PER_MESSAGE_MAX",
]

ASK_AGAIN_SECONDS = 0.5
"""A list that did not come within so long is asked for again: the question, the answer or who had it may be gone. Many
round trips on any network, and an answer that comes twice does no harm."""

KEYS_PER_MESSAGE_MAX = 1_000
"""Lists asked for, or pieces of them answered, in one message: even if each is of another dimension, with the longest
name, it stays below half of what a message may have."""

IDENTITIES_PER_MESSAGE_MAX = 4_000
"""SubIDs in one answer: 60 KB, so that a long list is many messages and control never waits long behind one."""

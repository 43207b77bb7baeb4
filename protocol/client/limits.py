"""The limits of one client that its user may want otherwise: handed in with `ClientOptions`, never patched."""

from __future__ import annotations

from dataclasses import dataclass

from ..limits import (
    ACK_SECONDS_ENDING,
    ACKS_OPEN_MAX,
    DIAL_SECONDS_MAX,
    HANDSHAKE_SECONDS_MAX,
    OWN_GHOST_SECONDS_MAX,
    QUEUE_BYTES_MAX,
    REPLAY_LATE_SECONDS,
    REPLAY_NEAR_EVENTS,
    REPLAY_POLL_SECONDS_MIN,
    RETRY_SECONDS_ENDING,
    STORE_TRY_SECONDS_MAX,
)

__all__ = ["DEFAULT_LIMITS", "ClientLimits"]


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Bounds of a client's time and memory; `protocol/limits.py` has the reason for each default."""

    queue_bytes: int = QUEUE_BYTES_MAX
    """Published and not acknowledged; above it the publisher waits."""
    dial_seconds: float = DIAL_SECONDS_MAX
    """For a connection and its handshake, while there is another broker to turn to."""
    handshake_seconds: float = HANDSHAKE_SECONDS_MAX
    """The same for the last broker of a round."""
    ending_seconds: float = RETRY_SECONDS_ENDING
    """How long a client that is being closed looks for a broker."""
    store_try_seconds: float = STORE_TRY_SECONDS_MAX
    """How long a batch is sent again while nothing of its producer is stored."""
    replay_near_events: int = REPLAY_NEAR_EVENTS
    """Events left to read in the logs when a replay subscribes to what comes live."""
    replay_poll_seconds: float = REPLAY_POLL_SECONDS_MIN
    """The first pause before a replay looks for brokers that were away; each later one is longer."""
    replay_quiet_seconds: float = REPLAY_LATE_SECONDS
    """After so long a silence nothing older comes live."""
    acks_open: int = ACKS_OPEN_MAX
    """ACKs of one durable subscription without an answer; what is said meanwhile waits for one."""
    ack_seconds: float = ACK_SECONDS_ENDING
    """How long a client that is being closed waits for the answers to its last ACKs."""
    own_ghost_seconds: float = OWN_GHOST_SECONDS_MAX
    """How long a client that has lost its connection asks for a durable subscription that is attached elsewhere."""


DEFAULT_LIMITS = ClientLimits()

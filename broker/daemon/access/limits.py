"""Every bound of the access room, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ACCESS_FILE_BYTES_MAX",
    "ACCESS_LOOK_SECONDS",
    "ARGON_ITERATIONS",
    "ARGON_MEMORY_KIB",
    "DoorLimits",
    "PASSWORD_LENGTH_MAX",
    "PASSWORD_LENGTH_GOOD",
    "TOKEN_DAYS_DEFAULT",
    "TOKENS_PER_USER_MAX",
    "USERS_MAX",
    "WEB_KEYS_BYTES_MAX",
    "WEB_KEYS_MAX",
    "WEB_RSA_BITS_MIN",
    "WEB_TOKEN_EARLY_SECONDS",
    "WEB_TOKEN_LENGTH_MAX",
]

ACCESS_LOOK_SECONDS = 0.25
"""How often the files and the expiry of tokens are looked at: what changes holds within a second."""

ACCESS_FILE_BYTES_MAX = 64 * 1024 * 1024
"""A file of users or of roles; a hundred thousand users are half of it."""

USERS_MAX = 100_000
"""Users of one file: as many as durable subscriptions, for which each may have a name of its own."""

TOKENS_PER_USER_MAX = 64
"""Tokens that one user has at a time: one for each place that it runs at, and the next one of each."""

TOKEN_DAYS_DEFAULT = 90
"""How long a token lasts unless it is said: it is renewed four times a year."""

PASSWORD_LENGTH_GOOD = 8
"""Characters; shorter ones are guessed, however slowly they are hashed, and the command says so."""

PASSWORD_LENGTH_MAX = 128
"""Bytes; a HELLO has 256 characters for name and password."""

WEB_TOKEN_LENGTH_MAX = 3000
"""Characters of a web token: what `credentials` of a HELLO may have. Those of issuers with many roles have 2,000."""

WEB_TOKEN_EARLY_SECONDS = 60.0
"""How far the clock of an issuer may be ahead of ours."""

WEB_KEYS_BYTES_MAX = 256 * 1024
"""A file of keys; a key with its chain of certificates has some 4 KiB."""

WEB_KEYS_MAX = 64
"""Keys of an issuer: the present ones, the former and the next of each kind."""

WEB_RSA_BITS_MIN = 2048
"""RFC 7518, 3.3."""

ARGON_MEMORY_KIB = 19 * 1024
"""Memory of one argon2id, and the passes over it below: the least that OWASP asks for, some 60 ms of a processor."""

ARGON_ITERATIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorLimits:
    """What strangers may cost a broker."""

    threads: int = 2
    """That verify passwords, each with 19 MiB, and signatures of web tokens: beside the loop and the log a broker has
    no more processors to spare."""
    waiting: int = 64
    """Clients that wait for them; one more is told to come again. 64 take two seconds of two threads, and a handshake
    has five."""
    waiting_per_address: int = 16
    """The same of one address, so that one that guesses does not keep out all others."""
    strangers_per_address: int = 256
    """Connections of one address that are not let in yet; more are cut."""
    failure_seconds: float = 0.5
    """How long a wrong answer waits: two guesses a second and connection."""
    remembered: int = 10_000
    """Passwords and web tokens that were right lately, as keyed digests: a client that comes back is not computed anew.
    10,000 passwords that come back at once would take five minutes of two threads."""

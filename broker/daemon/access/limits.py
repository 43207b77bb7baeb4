"""Every bound of the access room, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ACCESS_FILE_BYTES_MAX",
    "ACCESS_LOOK_SECONDS",
    "ARGON_ITERATIONS",
    "ARGON_MEMORY_KIB",
    "DoorLimits",
    "IssuerLimits",
    "PASSWORD_LENGTH_MAX",
    "PASSWORD_LENGTH_GOOD",
    "TOKEN_DAYS_DEFAULT",
    "TOKENS_PER_USER_MAX",
    "USERS_MAX",
    "WEB_ADDRESS_LENGTH_MAX",
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
"""A set of keys, in a file or fetched; a key with its chain of certificates has some 4 KiB."""

WEB_KEYS_MAX = 64
"""Keys of an issuer: the present ones, the former and the next of each kind."""

WEB_RSA_BITS_MIN = 2048
"""RFC 7518, 3.3."""

WEB_ADDRESS_LENGTH_MAX = 2048
"""Characters of the address of keys; those of issuers have a hundred."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerLimits:
    """How an issuer of web tokens is asked for its keys, and how long they are good."""

    fetch_seconds: float = 3.0
    """From dialling to the last byte. A set of keys has some KiB, and a client that waits for one has five seconds."""
    refresh_seconds: float = 300.0
    """How often the keys are fetched: so long one that the issuer took out may still be believed."""
    retry_seconds: float = 10.0
    """When to ask again after no answer, or none that serves: soon for clients, seldom for an issuer in trouble."""
    unknown_seconds: float = 30.0
    """A token that names an unknown key has the keys fetched, so long after the last try at the soonest: issuers show a
    new key before they sign by it, and strangers name keys as they like."""
    kept_seconds: float = 3600.0
    """How long keys are good that cannot be fetched again. Tokens last minutes, and an issuer that is away makes no new
    ones, so keeping keys for longer would help few; and who cuts us off from an issuer must not keep a key alive that
    it took out."""

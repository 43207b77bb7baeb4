"""Passwords: argon2id, as `$argon2id$v=19$m=19456,t=2,p=1$salt$hash`, which every tool that knows argon2 reads."""

from __future__ import annotations

import os

from .limits import ARGON_ITERATIONS, ARGON_MEMORY_KIB

__all__ = ["NOBODYS", "hash_password", "is_password"]

NOBODYS = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
"""What the password of a user that does not exist is compared with: it takes as long, and is never right."""


def hash_password(password: str) -> str:
    """What is kept of a password."""
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id  # a broker without users starts without it

    argon = Argon2id(salt=os.urandom(16), length=32, iterations=ARGON_ITERATIONS, lanes=1, memory_cost=ARGON_MEMORY_KIB)
    return str(argon.derive_phc_encoded(password.encode()))


def is_password(password: str, kept: str) -> bool:
    """Whether that is it. It takes its time, and lets other threads run meanwhile."""
    from cryptography.exceptions import InvalidKey
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    try:
        Argon2id.verify_phc_encoded(password.encode(), kept)
    except (InvalidKey, ValueError):
        return False
    return True

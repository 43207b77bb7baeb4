"""What brokers say to each other to keep a cluster together: which brokers they know, and what their stores of keys
say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from ..keyspace import MESH_BROKERS_MAX, Way
from ..messages import (
    ADDRESS_LENGTH_MAX,
    CONTROLS,
    IDENTIFIER,
    STORE,
    Counter,
    Identifier,
    choice,
    listed,
    nested,
    text,
)

__all__ = ["AskNews", "News", "Roster", "Routed", "StoreMessage"]


@CONTROLS.message(1)
@dataclass(slots=True)
class StoreMessage:
    """A message of the sender's store of keys to the recipient's."""

    message: Annotated[Any, nested(STORE)]


@CONTROLS.message(2)
@dataclass(slots=True)
class Routed:
    """A message of `origin`'s store on its way to the owner of a key."""

    key: Identifier
    way: Annotated[int, choice(Way)]
    hops: Counter
    origin: Identifier
    message: Annotated[Any, nested(STORE)]


@CONTROLS.message(3)
@dataclass(slots=True)
class Roster:
    """Addresses of brokers that the sender has links to."""

    addresses: Annotated[tuple[str, ...], listed(text(ADDRESS_LENGTH_MAX, 1), MESH_BROKERS_MAX)]


@CONTROLS.message(69)
@dataclass(slots=True)
class AskNews:
    """A broker that has not answered for keys in this life asks whether the recipient has, and whom it sees."""

    number: Counter


@CONTROLS.message(70)
@dataclass(slots=True)
class News:
    """The sender has not, sees these brokers, itself included, and knows of no others; nobody: it is not so."""

    number: Counter
    seen: Annotated[tuple[int, ...], listed(IDENTIFIER, MESH_BROKERS_MAX)]

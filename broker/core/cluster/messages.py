"""What brokers say to each other to keep a cluster together: whom they know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..keyspace import MESH_BROKERS_MAX
from ..messages import ADDRESS_LENGTH_MAX, CONTROLS, listed, text

__all__ = ["Roster"]


@CONTROLS.message(3)
@dataclass(slots=True)
class Roster:
    """Addresses of brokers that the sender has links to."""

    addresses: Annotated[tuple[str, ...], listed(text(ADDRESS_LENGTH_MAX, 1), MESH_BROKERS_MAX)]

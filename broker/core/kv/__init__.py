"""FACE of kv."""

from . import handover, items, limits, messages, replication, writes
from .config import KeyedConfig
from .messages import Added, Item, Kind, Placed, Removed, Route, Tell, Unplaced, View
from .store import Keyed

__all__ = [
    "Added",
    "Item",
    "Keyed",
    "KeyedConfig",
    "Kind",
    "Placed",
    "Removed",
    "Route",
    "Tell",
    "Unplaced",
    "View",
    "handover",
    "items",
    "limits",
    "messages",
    "replication",
    "writes",
]

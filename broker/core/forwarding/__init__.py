"""FACE of forwarding."""

from . import backlog
from .counted_messages import ASK, LISTS, list_messages, parse_ask
from .forwarding import Forwarding

__all__ = [
    "ASK",
    "Forwarding",
    "LISTS",
    "backlog",
    "list_messages",
    "parse_ask",
]

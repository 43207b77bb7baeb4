"""FACE of links."""

from . import greeting, limits, peers
from .greeting import PeerHooks, PeerInfo
from .limits import LOSS_SECONDS_MAX
from .peers import Peers

__all__ = [
    "LOSS_SECONDS_MAX",
    "PeerHooks",
    "PeerInfo",
    "Peers",
    "greeting",
    "limits",
    "peers",
]

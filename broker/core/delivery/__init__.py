"""FACE of delivery."""

from . import dissemination, streams
from .dissemination import Columns, Dissemination
from .streams import SETTINGS, Plan, Stream, Streams, StreamSettings, check_settings, read_settings, stream_of
from .subscribers import ClientSession, Subscribers, Subscription

__all__ = [
    "ClientSession",
    "Columns",
    "Dissemination",
    "Plan",
    "SETTINGS",
    "Stream",
    "StreamSettings",
    "Streams",
    "Subscribers",
    "Subscription",
    "check_settings",
    "dissemination",
    "read_settings",
    "stream_of",
    "streams",
]

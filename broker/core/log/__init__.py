"""FACE of log."""

from . import producers
from .follower import CANNOT, Holder
from .leader import Copies
from .log import HeldLog, Log
from .producer_lists import ProducerLists
from .producers import Producers
from .reading import LogReading
from .reconcile import Claims, Tails
from .retention import Retention

__all__ = [
    "CANNOT",
    "Claims",
    "Copies",
    "HeldLog",
    "Holder",
    "Log",
    "LogReading",
    "ProducerLists",
    "Producers",
    "Retention",
    "Tails",
    "producers",
]

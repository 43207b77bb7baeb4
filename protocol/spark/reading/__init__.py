"""FACE of reading."""

from . import attributes, opening
from .decoding import Decoder
from .fetching import fetch
from .planning import end_of, plan_batch, ranges_of, resolved, start_of
from .positions import SINCE, capped

__all__ = [
    "Decoder",
    "SINCE",
    "attributes",
    "capped",
    "end_of",
    "fetch",
    "opening",
    "plan_batch",
    "ranges_of",
    "resolved",
    "start_of",
]

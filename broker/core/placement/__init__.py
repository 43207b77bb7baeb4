"""FACE of placement."""

from . import counting_limits
from .counting import Collection, Constraint, CountingScheme, CountingStore, Entry, Placement, SubscriptionId, met
from .counting_check import Check, true_of
from .counting_limits import ASK_AGAIN_SECONDS, BATCHES_ASKING_MAX, IDENTITIES_PER_MESSAGE_MAX, KEYS_PER_MESSAGE_MAX
from .counting_plan import Counted, CountedPart, Resting
from .planner import Anchor, constraints_of, counting_scheme, plan, precision_of
from .registry import Rendezvous

__all__ = [
    "ASK_AGAIN_SECONDS",
    "Anchor",
    "BATCHES_ASKING_MAX",
    "Check",
    "Collection",
    "Constraint",
    "Counted",
    "CountedPart",
    "CountingScheme",
    "CountingStore",
    "Entry",
    "IDENTITIES_PER_MESSAGE_MAX",
    "KEYS_PER_MESSAGE_MAX",
    "Placement",
    "Rendezvous",
    "Resting",
    "SubscriptionId",
    "constraints_of",
    "counting_limits",
    "counting_scheme",
    "met",
    "plan",
    "precision_of",
    "true_of",
]

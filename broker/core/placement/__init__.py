"""Places subscriptions where their events pass, and tells every broker which dimensions and attributes are in use.

**Theory.** A subscription rests at one *anchor*: a dimension and keys in it (`Anchor`), chosen by `plan` from what its
condition asks for (`needs_of`, `precision_of`) and what a schema says of an attribute (`declared`). The store of keys
(`kv`) brings it to the owners of those keys. An event has one key in each dimension, so it visits the few keys of the
dimensions in use and meets each subscription at most once. `Registry` leads each subscription of this broker's clients
through its life (its timer is `REGISTRY`): it plans, places (puts an item into `kv`), announces a dimension or
attribute that is not in use yet, and says `InForce` when all of that is confirmed. Then SUBACK goes out, and events
published after that, at any broker, are seen.

The *interest* of a stream is the sum of the dimensions and attributes that any home uses; every broker holds all of it
(`interest`). Schemas and settings are kept the same way (`schemas`).

**On the cube** a subscription with XPATH rests at one vertex, and its home lays edges at the vertices above (`edges`):
`Laid` is what it lays them for. It is in force when they are placed as well.

**Counting** (RANGE 3) is another way to place: a subscription rests on one list for each attribute that it constrains,
and an event that is met on as many lists as it has attributes is a candidate, which its home checks. Both ways are a
`Placement`, with which the registry places, checks and counts what rests here without asking which one it is; what one
plans is a `Resting`: an `Anchor`, or `Counted` with a `CountedPart` for each attribute. `SubscriptionId` names a
counted subscription, and `met` says whether it was met often enough. Bounds of the gathering: `ASK_AGAIN_SECONDS`,
`KEYS_PER_MESSAGE_MAX`, `IDENTITIES_PER_MESSAGE_MAX`.

Order of reading: `registry`, `placement`, `anchored`, `planner`, `edges`, `interest`, `schemas`; for counting
`counting_plan`, `counting_home`, `counting_lists`, `counting`, `counting_limits`; `words` is for people.
"""

from .counting import SubscriptionId, met
from .counting_limits import ASK_AGAIN_SECONDS, IDENTITIES_PER_MESSAGE_MAX, KEYS_PER_MESSAGE_MAX
from .counting_plan import Counted, CountedPart
from .edges import Laid
from .placement import Placement, Resting
from .planner import Anchor, declared, needs_of, plan, precision_of
from .registry import REGISTRY, InForce, Registry

__all__ = [
    "ASK_AGAIN_SECONDS",
    "Anchor",
    "Counted",
    "CountedPart",
    "IDENTITIES_PER_MESSAGE_MAX",
    "InForce",
    "KEYS_PER_MESSAGE_MAX",
    "Laid",
    "Placement",
    "REGISTRY",
    "Registry",
    "Resting",
    "SubscriptionId",
    "declared",
    "met",
    "needs_of",
    "plan",
    "precision_of",
]

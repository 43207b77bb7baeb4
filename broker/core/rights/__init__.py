"""Rights: what each named client may publish, subscribe to and ask, decided from roles, without I/O.

    Policy     who there is (a `Member` each) and what each role may do, as files say it; `version` is their digest
    Role       what one role may do, each right a `Grant`: `read_roles` makes them of the TOML, or raises `RightsError`
    Rights     of one user, all of its roles together; `rights.narrow(pattern, condition)` is what it may hear of that,
               `rights.unpublishable(batch)` and `rights.unreadable(batch)` are the events that it may not
    Narrowed   a pattern and a condition that let through what was asked for and is allowed, and nothing else

**Rights by content.** A right is a pattern and, if it likes, a condition. What a client asks for is narrowed before it
is placed: the pattern to what both have in common, the condition ANDed. So the index that finds the subscription checks
the right as well. Rights of one stream are joined by OR, a denial wins over all of them, also where it is UNKNOWN.
Where the patterns of several rights differ, the topic becomes part of the condition: `#level/1` is the second level of
an event's topic, a column that brokers derive and take from nobody (`protocol/data/batch.py`).

What passes by no index is looked at event by event: what is published, and what is handed out of a mailbox, where the
right may have become another one since it was matched.

**Contract.** Deny by default. With no role nothing is allowed. Rights may change at any time: nobody keeps what they
decided longer than the `Rights` it came from.

Order of reading: `roles`, `narrowing`, `gates`, `policy`.
"""

from .narrowing import Narrowed
from .policy import Member, Policy, Rights
from .roles import Grant, RightsError, Role, read_roles

__all__ = ["Grant", "Member", "Narrowed", "Policy", "Rights", "RightsError", "Role", "read_roles"]

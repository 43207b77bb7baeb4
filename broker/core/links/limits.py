"""Every bound of the links between brokers, each with its reason."""

from __future__ import annotations

__all__ = [
    "ACKNOWLEDGE_SECONDS",
    "COMPLAINTS_MAX",
    "DIALS_MAX",
    "FORGET_SECONDS",
    "FORWARD_OVERHEAD_BYTES",
    "HALF_OPEN_SECONDS_MAX",
    "LEDGER_LENGTH_MAX",
    "LOSS_SECONDS_MAX",
    "PAUSED_TELLS_MAX",
    "PENDING_PER_ADDRESS_MAX",
    "PENDING_SECONDS_MAX",
    "REDIAL_SECONDS_MAX",
    "REDIAL_SECONDS_MIN",
    "REFUSAL_SECONDS",
]

PENDING_PER_ADDRESS_MAX = 64
"""Messages that wait for a link to an address: what the ring says to a newcomer before the link is there fits."""

PENDING_SECONDS_MAX = 2.0
"""How long they wait. The asker has asked again by then, and an old letter says nothing true."""

COMPLAINTS_MAX = 64
"""Addresses of which it is remembered what the operator was told, or what was said there: a broker that may not come in
asks every second."""

DIALS_MAX = 1_024
"""Addresses that are dialled or remembered as unreachable. A forged list of brokers meets an end here."""

REDIAL_SECONDS_MIN = 0.2
"""The shortest pause before an address is dialled again: a broker that restarts needs more, a broken link less."""

REDIAL_SECONDS_MAX = 2.0
"""The longest pause. A broker that is back must be found before the others have finished doing without it."""

REFUSAL_SECONDS = 8.0
"""How long the word of a broker that refuses this one counts. It is asked again every two seconds, and a dial may take
some more; after that it is gone, or has changed its mind."""

HALF_OPEN_SECONDS_MAX = 5.0
"""How long an accepted link may be without the dialler's word: as long as a handshake may take."""

FORGET_SECONDS = 60.0
"""How long a broker is remembered without a link: counts go on where they were, and an older life or a second broker of
the name is turned away. Longer than a pause or a restart; after it a broker that lost its data is taken for new."""

LOSS_SECONDS_MAX = 5.0
"""How long what was under way on a broken link waits for the other side's count before it is taken for lost: several
redials. Clients hear of a loss this late at the most."""

ACKNOWLEDGE_SECONDS = 0.1
"""How long what was done may wait to be told. A broker that dies makes the others count no more than this as lost."""

LEDGER_LENGTH_MAX = 65_536
"""Forwarded batches that are sent and not yet known to be done. More wait here, where they can still go elsewhere."""

PAUSED_TELLS_MAX = 10_000
"""Control messages to a link that takes nothing: they are never held back, so a link that is so far behind is cut."""

FORWARD_OVERHEAD_BYTES = 600
"""What a waiting FORWARD costs beside its columns: the objects around it."""

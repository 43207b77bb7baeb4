"""Decides whether a value has moved enough to be told again: what `DELTA(attribute) > c` means, and an index of it.

    Triggers        of many subscriptions that watch the same attributes: which of them does a row fire? An event
                    touches those that it fires, however many there are. `Reference` is what one of them was last sent,
                    `Tally` what many Triggers hold together
    DumbReferences  the same by the plain meaning: it keeps what each subscription was last sent, and compares
    Band            how far an attribute may move unsaid; `band_of` reads it from a `Delta`
    reading         a value as the number that is compared: NULL, NaN and what is no number are None; in units of the
                    attribute's precision (`precision_of` a schema), where that is declared
    Levels          what brokers of a ring segment would do instead (MFD): filters in levels, and the proxies that they
                    need; `Passage` is what became of a value. `parts_of_width` cuts a width in digits of `BASE`,
                    `place_of_width` says which of the `DIGITS` nodes of a level it stands at
    moved           whether a number is beyond a band around a reference: the meaning, in five lines

**Theory.** A subscription's *reference* of a topic is what it was last sent of it; the *band* around the reference ends
in a lower and an upper *trigger*. A value beyond a trigger is delivered, and becomes the reference. All upper triggers
of a topic stand in one queue and all lower ones in another (`nearest.py`), so the next value is compared with the
nearest of each.
The promise is a bound: after every event the reference is within `c` of the value.

Nothing here knows a broker or a clock: the time of an event is handed in, for HEARTBEAT.

Order of reading: `bands`, `dumb`, `nearest`, `triggers`, `levels`.
"""

from .bands import Band, band_of, moved, precision_of, reading
from .dumb import DumbReferences
from .levels import BASE, DIGITS, Levels, Passage, parts_of_width, place_of_width
from .triggers import Reference, Tally, Triggers

__all__ = [
    "BASE",
    "Band",
    "DIGITS",
    "DumbReferences",
    "Levels",
    "Passage",
    "Reference",
    "Tally",
    "Triggers",
    "band_of",
    "moved",
    "parts_of_width",
    "place_of_width",
    "precision_of",
    "reading",
]

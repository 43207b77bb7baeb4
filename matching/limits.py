"""Every bound of the matching package, each with its reason.

A bound is what makes a promise to the other clients of a broker possible: whatever one client asks for, the work it
can cause is known before the work starts.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ATTRIBUTE_NAME_BYTES_MAX",
    "CANONICAL_BYTES_MAX",
    "CONDITION_BYTES_MAX",
    "CONDITION_DEPTH_MAX",
    "CONDITION_TERMS_MAX",
    "EXCERPT_CHARACTERS_MAX",
    "HEARTBEAT_SECONDS_MAX",
    "INTEGER_MAX",
    "INTEGER_MIN",
    "LIKE_PATTERN_CHARACTERS_MAX",
    "RESOLVED_TOPICS_MAX",
    "SHAPES_MAX",
    "TOPIC_BYTES_MAX",
    "TOPIC_LEVELS_MAX",
]

# Integers are 64-bit and signed: what msgpack carries, what Spark calls BIGINT, what every client language has.
INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1

# The longest condition a person or a program has good reason to send; a list of 500 ticker symbols fits.
CONDITION_BYTES_MAX: Final = 4 * 1024

# What our own printer may make of a legal condition: quoted names, and IN written out as OR where types mix (256 terms
# of an attribute name each, and a little around it).
CANONICAL_BYTES_MAX: Final = 128 * 1024

# Comparisons, IN items and arithmetic operators together: the work one evaluation may cost.
CONDITION_TERMS_MAX: Final = 256

# Nesting of operators. Everything that walks a tree recurses this deep and no deeper, which is far below Python's own
# limit of 1,000 frames and its compiler's limit of 100 nested expressions.
CONDITION_DEPTH_MAX: Final = 32

# A path of names in a JSON document; longer ones are mistakes.
ATTRIBUTE_NAME_BYTES_MAX: Final = 255

# Matching a pattern costs at most a machine word of work per 30 characters of pattern and character of text.
LIKE_PATTERN_CHARACTERS_MAX: Final = 1024

# A year of silence; beyond it a heartbeat is a mistake in units.
HEARTBEAT_SECONDS_MAX: Final = 366 * 86_400

# DESIGN 1.1: a topic is at most 1 KiB of UTF-8 and 32 levels; patterns the same.
TOPIC_BYTES_MAX: Final = 1024
TOPIC_LEVELS_MAX: Final = 32

# Distinct condition shapes whose code is kept. A shape costs about 2 KB; real systems have dozens. When the cache is
# full the oldest shape leaves it; conditions made from it go on working.
SHAPES_MAX: Final = 1024

# Topics whose audience is remembered, about 300 bytes each. Beyond it the oldest is forgotten and resolved again.
RESOLVED_TOPICS_MAX: Final = 65_536

# How much of a long condition an error shows around the column it points at.
EXCERPT_CHARACTERS_MAX: Final = 72

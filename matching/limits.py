"""Every bound of the matching package, each with its reason.

A bound is what makes a promise to the other clients of a broker possible: whatever one client asks for, the work it
can cause is known before the work starts.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ALTERNATIVES_MAX",
    "AMENDED_BLOCKS_MAX",
    "AMENDED_ITEMS_MAX",
    "ANCHOR_DEPTH_MAX",
    "ATTRIBUTE_NAME_BYTES_MAX",
    "ATTRIBUTE_SETS_MAX",
    "BLOCK_CELL_ITEMS_MAX",
    "BLOCK_SPANS_MAX",
    "CANONICAL_BYTES_MAX",
    "CONDITION_BYTES_MAX",
    "CONDITION_DEPTH_MAX",
    "CONDITION_TERMS_MAX",
    "COVERED_BLOCKS_MAX",
    "DYNAMIC_STALE_MIN",
    "DYNAMIC_TOPICS_MAX",
    "EXCERPT_CHARACTERS_MAX",
    "FILTERS_TESTED_MAX",
    "FILTER_BITS_MAX",
    "FILTER_HASHES_MAX",
    "GRID_HALVINGS_MAX",
    "HASH_LOOKUPS_MAX",
    "HEARTBEAT_SECONDS_MAX",
    "IN_BYTES_MAX",
    "IN_VALUES_MAX",
    "INTEGER_MAX",
    "INTEGER_MIN",
    "LIKE_PATTERN_CHARACTERS_MAX",
    "NEAREST_BLOCK_MAX",
    "LISTED_VALUES_MIN",
    "PARSED_BYTES_MAX",
    "PARSED_KEPT",
    "PLACES_MAX",
    "PREFIX_CHARACTERS_MAX",
    "RAYS_PER_CHUNK_MAX",
    "REFILED_CONDITIONS_MAX",
    "RESOLVED_TOPICS_MAX",
    "SAMPLED_ATTRIBUTES_MAX",
    "SAMPLED_ROWS_INTERVAL",
    "SAMPLED_VALUES_MAX",
    "SEARCHED_BITS_MAX",
    "SHAPES_MAX",
    "SHRINK_RATIO",
    "SHRINK_SIZE_MIN",
    "TOPIC_BYTES_MAX",
    "TOPIC_LEVELS_MAX",
    "TOPIC_MASKS_MAX",
    "TWIG_BYTES_MAX",
    "TWIG_DEPTH_MAX",
    "TWIG_NAME_BYTES_MAX",
    "TWIG_STEPS_MAX",
    "VALUE_BYTES_MAX",
]

# Integers are 64-bit and signed: what msgpack carries, what Spark calls BIGINT, what every client language has.
INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1

# The longest condition a person or a program has good reason to send, the values of IN lists aside.
CONDITION_BYTES_MAX: Final = 4 * 1024

# Values in the IN lists of one condition together: watch lists. A list is looked up, not compared value by value, so it
# costs memory alone: some 150 bytes a value wherever it rests.
IN_VALUES_MAX: Final = 16 * 1024

# Bytes of these lists together, as we print them: so many values of 30 letters, or 13,000 UUIDs.
IN_BYTES_MAX: Final = 512 * 1024

# What our own printer may make of a legal condition, lists aside: quoted names, and IN written out as OR where types
# mix (256 terms of an attribute name each, and a little around it).
CANONICAL_BYTES_MAX: Final = 128 * 1024

# Comparisons and arithmetic operators together, an IN list being one: the work one evaluation may cost.
CONDITION_TERMS_MAX: Final = 256

# Combinations of attributes of which equal ones are one object, 80 bytes less for each condition.
ATTRIBUTE_SETS_MAX: Final = 1024

# Nesting of operators. Everything that walks a tree recurses this deep and no deeper, which is far below Python's own
# limit of 1,000 frames and its compiler's limit of 100 nested expressions.
CONDITION_DEPTH_MAX: Final = 32

# A path of names in a JSON document; longer ones are mistakes.
ATTRIBUTE_NAME_BYTES_MAX: Final = 255

# Matching a pattern costs at most a machine word of work per 30 characters of pattern and character of text.
LIKE_PATTERN_CHARACTERS_MAX: Final = 1024

# A year of silence; beyond it a heartbeat is a mistake in units.
HEARTBEAT_SECONDS_MAX: Final = 366 * 86_400

# Topics of which the subscriptions of one condition have references, some 800 bytes each and 400 for each subscription
# more. The topic of the oldest delivery makes room: its next event is then delivered whatever it says.
DYNAMIC_TOPICS_MAX: Final = 65_536

# Ends of bands in one block: small enough for the cache of a processor, so large that a million make few blocks.
NEAREST_BLOCK_MAX: Final = 1024

# Entries of heaps, or ended subscriptions, that are out of date before it is worth looking for them.
DYNAMIC_STALE_MIN: Final = 64

# A topic is at most 1 KiB of UTF-8 and 32 levels; patterns the same.
TOPIC_BYTES_MAX: Final = 1024
TOPIC_LEVELS_MAX: Final = 32

# Conditions whose trees are kept by their text, and how long such a text may be: dashboards and returning clients ask
# for the same again and again, and reading a condition costs about a third of what subscribing does. At most 4 MB.
PARSED_KEPT: Final = 1_024
PARSED_BYTES_MAX: Final = 256

# Distinct condition shapes whose code is kept. A shape costs about 2 KB; real systems have dozens. When the cache is
# full the oldest shape leaves it; conditions made from it go on working.
SHAPES_MAX: Final = 1024

# Topics whose audience is remembered, about 300 bytes each. Beyond it the oldest is forgotten and resolved again.
RESOLVED_TOPICS_MAX: Final = 65_536

# Wildcard masks of one stream that have a hash table each, and so cost a lookup for a topic that is not remembered.
# Patterns of further masks are kept in a tree.
TOPIC_MASKS_MAX: Final = 64

# Lookups of one topic in the paper's hash scheme, which makes a key for each combination of wildcards in use.
HASH_LOOKUPS_MAX: Final = 4096

# A dictionary is written anew when only one in so many of its entries is left, if they were more than so many: each
# entry is then moved at most once for every seven that go.
SHRINK_RATIO: Final = 8
SHRINK_SIZE_MIN: Final = 64

# Sides of an OR, and ranges of one attribute, that a condition is filed under; with more it is tried on every row. Each
# costs an entry in the index, about 200 bytes.
ALTERNATIVES_MAX: Final = 16

# Places in the index for one condition in all, so that an IN within an IN cannot multiply.
PLACES_MAX: Final = 256

# Values from which a list has a step of its own in the index, and one place there: with fewer it is filed under each of
# them, so that other predicates can be asked below.
LISTED_VALUES_MIN: Final = PLACES_MAX + 1

# Predicates of one condition that are looked up one within the other; what then remains is tested. Three levels leave
# one in some ten thousand rows for the test, and each level costs a lookup.
ANCHOR_DEPTH_MAX: Final = 3

# Prefixes are looked up by length, one lookup for each length in use: longer ones are cut and the LIKE is tested.
PREFIX_CHARACTERS_MAX: Final = 16

# Ranges that end inside one block of a range table. To make an answer all of them are looked at: some 3 microseconds.
BLOCK_SPANS_MAX: Final = 48

# Answers that are amended when a range comes or goes: those of so many blocks, each of at most so many subscribers.
# What is more is forgotten and made again when it is asked for. An answer is amended in 0.2 microseconds.
AMENDED_BLOCKS_MAX: Final = 3
AMENDED_ITEMS_MAX: Final = 64

# Blocks that a range may touch beyond its first before it counts as wide.
COVERED_BLOCKS_MAX: Final = 6

# Subscribers in the ready answers of one block: 16 KiB for a block of 48 ranges.
BLOCK_CELL_ITEMS_MAX: Final = 2048

# Rays that share a ready answer. A change makes one of this length anew; a match visits one for each such number.
RAYS_PER_CHUNK_MAX: Final = 128

# Segments narrower than 2^-60 share the grid of that width, so that no number is scaled beyond what doubles hold.
GRID_HALVINGS_MAX: Final = 60

# Attributes of which values are remembered; the one remembered longest makes room.
SAMPLED_ATTRIBUTES_MAX: Final = 256

# Values of each attribute that are remembered to estimate how selective a predicate is: within 10 % is enough.
SAMPLED_VALUES_MAX: Final = 64

# One row in so many is looked at for these estimates, and as often a few conditions are filed anew.
SAMPLED_ROWS_INTERVAL: Final = 1024

# Conditions that may be filed anew at a time; each is parsed and compiled again, some 0.5 ms.
REFILED_CONDITIONS_MAX: Final = 2

# How much of a long condition an error shows around the column it points at.
EXCERPT_CHARACTERS_MAX: Final = 72

# A twig is part of a condition, and no longer.
TWIG_BYTES_MAX: Final = CONDITION_BYTES_MAX

# Names below one another in a twig: deeper documents exist, but nobody asks for all their levels at once. What walks a
# twig recurses this deep.
TWIG_DEPTH_MAX: Final = 32

# Names in one twig. Evaluating its XPath text visits each element of a document at most so many times.
TWIG_STEPS_MAX: Final = 64

# A name in a twig. Names in JSON that no twig can ask for are given a longer one by whoever evaluates it.
TWIG_NAME_BYTES_MAX: Final = 255

# Texts that count as an item: longer ones are prose that nobody compares, and would fill the filter.
VALUE_BYTES_MAX: Final = 64

# A filter of 8 KiB holds the structure of the largest documents; its positions fit in 16 bits.
FILTER_BITS_MAX: Final = 64 * 1024

# SHA-256 gives four hashes of 8 bytes. BLOOM (Figure 3.17) finds no use for more than two.
FILTER_HASHES_MAX: Final = 4

# Filters in one node of their index that are tested one by one, in 0.05 microseconds each; more are divided by a bit.
FILTERS_TESTED_MAX: Final = 16

# Nodes below one that are looked through for those whose bit a document has; of more, the document's bits are gone
# through, in four times the time each.
SEARCHED_BITS_MAX: Final = 128

"""The hypercube on which publications meet subscriptions by structure; a filter is an integer of l bits.

**Filters.** A document matches a twig only if the twig's filter is a subset of the document's: it `covers` it, the
document `passes`. Of several filters the `minimal` ones say it all; an `Antichain` is `bounded` (by `ANTICHAIN_MAX`) by
the `merge` of its nearest two, and `with_filter` adds one.

**Keys.** A `KeyMap` makes a key of n bits, at most `BITS_MAX`, from a filter: a vertex of the cube. It is `folded` (its
name is `FOLD`), `sampled` or `chosen`; `named` makes it from its name, of at most `NAME_LENGTH_MAX` characters. A
document that passes a filter has a key above the filter's, so all who want it are in the sub-hypercube `below` its own
vertex (`is_below`).

**Trees.** There the publication walks along its tree (`publication_tree`, step by step `bits_below`, in `Edge`s).
Subscriptions have walked the reverse way up (`subscription_tree`) and left `Entries` at each vertex (`ReversePaths`),
so that it goes only where something is (`walk`).

Order of reading: `trees`, `covering`, `paths`, `keys`.
"""

from .covering import ANTICHAIN_MAX, Antichain, bounded, covers, merge, minimal, passes, with_filter
from .keys import BITS_MAX, FOLD, NAME_LENGTH_MAX, KeyMap, chosen, folded, named, sampled
from .paths import Entries, ReversePaths, walk
from .trees import Edge, below, bits_below, is_below, publication_tree, subscription_tree

__all__ = [
    "ANTICHAIN_MAX",
    "Antichain",
    "BITS_MAX",
    "Edge",
    "Entries",
    "FOLD",
    "KeyMap",
    "NAME_LENGTH_MAX",
    "ReversePaths",
    "below",
    "bits_below",
    "bounded",
    "chosen",
    "covers",
    "folded",
    "is_below",
    "merge",
    "minimal",
    "named",
    "passes",
    "publication_tree",
    "sampled",
    "subscription_tree",
    "walk",
    "with_filter",
]

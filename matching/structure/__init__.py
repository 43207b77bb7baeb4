"""Structure of documents: which names stand below which, as short sets of bits. (BLOOM, chapter 3.)

A twig (`/bib/book[author/last][title]`) asks for names that stand directly below one another. `parse_twig` reads one,
or raises `TwigError` at a column. A twig and a document are each a set of *items* (a name, a name below a name, the
root); a document that has the twig has all the twig's items, so the subset test never misses. Items are hashed into
*filters* of some 1,024 bits, Python ints whose bit i is `1 << i`, and the test is `filter & ~document == 0`.

    >>> twig = parse_twig("book[title]/author")
    >>> twig.text, twig.filter(1024, 1).bit_count()
    ('book[author][title]', 5)
    >>> twig.xpath()
    "boolean(//*[local-name()='book'][*[local-name()='author']][*[local-name()='title']])"

A `Twig` is its first `Step` and what hangs on it. `filter_of` makes the filter of any items, `bits_of` the bits of one.
A filter is known by the name of its match column: `Shape(1024, 1).column` is `#structure/1024/1`, and that is the
`DEFAULT_SHAPE`. `pack` and `unpack` are its bytes there. `estimate`, `exact` and `best_hashes` say how often a test
says yes by chance alone.

`FilterIndex` finds which of many filters a document's contains, and has `FilterStatistics`; `PlainFilters` has its
verbs and compares them all, as the paper does. `Asked` is what a twig asks of the two columns of an event.

Brokers see filters only: who publishes parses the document, and who subscribes evaluates the XPath text of the twig.
Order of reading: `twigs`, `filters`, `index`, `asked`.
"""

from .asked import Asked
from .filters import DEFAULT_SHAPE, Shape, best_hashes, bits_of, estimate, exact, filter_of, pack, unpack
from .index import FilterIndex, FilterStatistics, PlainFilters
from .twigs import Step, Twig, TwigError, parse_twig

__all__ = [
    "Asked",
    "DEFAULT_SHAPE",
    "FilterIndex",
    "FilterStatistics",
    "PlainFilters",
    "Shape",
    "Step",
    "Twig",
    "TwigError",
    "best_hashes",
    "bits_of",
    "estimate",
    "exact",
    "filter_of",
    "pack",
    "parse_twig",
    "unpack",
]

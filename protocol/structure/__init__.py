"""Reads documents where they are published and where they arrive: what a broker filters on, and the last word.

`read_document` makes of a body and its content type a `Document`, XML or JSON, or raises `DocumentError`, an error for
whoever published it. `filter_columns` makes the match columns of its structure that INTEREST asks for,
`filters_of_body` those of a body that may be one, and `is_filter_name` knows their names; `is_document` says whether a
body of that content type is one, `kind_of` which, and `to_body` gives the body of what a program has at hand. What an
item is, how it is hashed and what stands on the wire is in matching/SPEC.md, section 7; section 6.4 of protocol/SPEC.md
says how JSON is read.

    >>> document = read_document(b'{"book": [{"title": "x"}, {"author": {"last": "y"}}]}', "application/json")
    >>> sorted(document.items())[:4]
    ['n/author', 'n/book', 'n/last', 'n/title']

A `Check` is the XPath text of one twig with the items that it asks for; a subscription has some, and `Checks` says of
an event what they say of its document (a `Finding`), by the elements that `trees_of` makes of a body. XPath needs lxml,
the extra `xml`, which is imported when it is first needed; `needs_lxml` raises LocalError with what to install.
`elements_of` makes the same of Python's own library, for whoever evaluates twigs without XPath.

Order of reading: `items`, `json_documents`, `xml_documents`, `documents`, `checks`.
"""

from .checks import Check, Checks, Finding
from .documents import (
    Document,
    DocumentError,
    elements_of,
    filter_columns,
    filters_of_body,
    is_document,
    is_filter_name,
    kind_of,
    read_document,
    to_body,
    trees_of,
)
from .xml_documents import needs_lxml

__all__ = [
    "Check",
    "Checks",
    "Document",
    "DocumentError",
    "Finding",
    "elements_of",
    "filter_columns",
    "filters_of_body",
    "is_document",
    "is_filter_name",
    "kind_of",
    "needs_lxml",
    "read_document",
    "to_body",
    "trees_of",
]

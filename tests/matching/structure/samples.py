"""Small documents and twigs over few names, so that many of the pairs match; and the items of a document, plainly."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

from hypothesis import strategies as st

__all__ = ["twig_texts", "xml_documents", "xml_items"]

_NAMES = st.sampled_from(["a", "b", "c"])
_TEXTS = st.sampled_from(["", "1", "it's", "ü"])
_ATTRIBUTES = st.dictionaries(st.sampled_from(["x", "y"]), _TEXTS, max_size=2)


@st.composite
def xml_documents(draw: st.DrawFn, depth: int = 3) -> str:
    """The text of a document."""
    name = draw(_NAMES)
    attributes = "".join(f" {key}={quoteattr(value)}" for key, value in draw(_ATTRIBUTES).items())
    if depth and draw(st.booleans()):
        inside = "".join(draw(st.lists(xml_documents(depth - 1), max_size=3)))
    else:
        inside = draw(_TEXTS)
    return f"<{name}{attributes}>{inside}</{name}>"


@st.composite
def _steps(draw: st.DrawFn, depth: int) -> str:
    name = draw(_NAMES)
    branches = draw(st.lists(_steps(depth - 1), max_size=2)) if depth else []
    attribute = draw(st.sampled_from(["", "[@x]", "[@y='1']", "[@x='ü']"]))
    value = draw(st.sampled_from(["", "='1'", "='ü'", "=''", '="it\'s"'])) if not branches else ""
    return f"{name}{''.join(f'[{one}]' for one in branches)}{attribute}{value}"


@st.composite
def twig_texts(draw: st.DrawFn) -> str:
    """The text of a twig."""
    return draw(st.sampled_from(["", "/", "//"])) + draw(_steps(2))


def xml_items(root: Any) -> set[str]:
    """The items and values of a document of lxml without namespaces, by the letter of matching/SPEC.md, 7.5."""
    items = {f"r/{root.tag}"}
    for element in root.iter():
        items.add(f"n/{element.tag}")
        for name, value in element.attrib.items():
            items |= {f"n/@{name}", f"s/{element.tag}/@{name}", f"v/@{name}/{value}"}
        items |= {f"s/{element.tag}/{child.tag}" for child in element}
        if not len(element):
            items.add(f"v/{element.tag}/{element.text or ''}")
    return items

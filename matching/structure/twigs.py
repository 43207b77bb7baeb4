"""Twigs: the part of XPath that asks which names stand directly below which. (BLOOM 3.2, Figure 3.2.)

    twig    = [ "/" | "//" ] path
    path    = step { "/" step } [ "=" string ]
    step    = name { "[" path "]" } | "@" name
    string  = "'" any but ' "'" | '"' any but " '"'

A twig that begins with `/` begins at the root of the document; any other may stand anywhere, and a leading `//` says
the same. `@name` is an attribute and ends its path. `= 'text'` asks that the leaf or attribute before it has this text;
a leaf has no elements below it. Names are local names, without a prefix, and case counts.

What has no place in a set of items is refused at its column, with what to write instead: `*`, `//` further in,
positions, axes, functions, and operators other than `=`.

**Items.** `n/book` (a name), `s/book/title` (a title directly below a book), `r/bib` (the root is a bib); an attribute
has the name `@id`. Values are a set of their own: `v/year/2003`. A name has no slash and the value stands last, so no
two items have the same text. What the items lose, on purpose: order, counts, that branches hang on one and the same
element. The XPath text keeps it, and whoever subscribes evaluates that text on what passed.

Example: `/bib/book[@id='7']` has the items r/bib, n/bib, s/bib/book, n/book, s/book/@id, n/@id and the value v/@id/7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headgate.matching.errors import MatchingError
from headgate.matching.limits import (
    EXCERPT_CHARACTERS_MAX,
    TWIG_BYTES_MAX,
    TWIG_DEPTH_MAX,
    TWIG_NAME_BYTES_MAX,
    TWIG_STEPS_MAX,
    VALUE_BYTES_MAX,
)

from .filters import filter_of

__all__ = ["Step", "Twig", "TwigError", "parse_twig"]

_START: Final = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_TOKEN: Final = re.compile(
    rf"""
      (?P<slash>  //? )
    | (?P<name>   @?[{_START}][{_START}.0-9\xb7\u0300-\u036f\u203f\u2040-]* )
    | (?P<string> '[^']*' | "[^"]*" )
    | (?P<sign>   [][=] )
    """,
    re.VERBOSE,
)
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NO_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_WAY_OUT: Final = "a name such as book, @id for an attribute"
# What XPath has beyond twigs, by how it begins, and what to write instead.
_FOREIGN: Final = (
    (r"\*|@\*", "* is not understood: a twig has a name at each step", "a name, or a relative twig that begins below"),
    (r"[0-9.]*[0-9]", "positions and numbers are not understood", "a name in [..], and text in quotes: [year='2003']"),
    (r"\.\.?", ". and .. are not understood", "names from the top down, such as book[year='2003']/title"),
    (r"[|,]", "alternatives are not understood", "one twig; use two subscriptions for either of two"),
    (r"!=|[<>]=?", "only = compares in a twig", "= and a text in quotes, or nothing: compare attributes by SQL"),
    (r"['\"]", "this text never ends", "a closing quote of the same kind"),
    (r"\(", "parentheses and functions are not understood", "names, [..] and = 'text'"),
    (r"\$", "variables are not understood", "a text in quotes"),
)
_AFTER_NAME: Final = (
    (r"::", "axes are not understood", "child by child with /, and @name for an attribute"),
    (r":", "prefixes are not understood: names are compared without them", "the name behind the colon alone"),
    (r"\s*\(", "functions are not understood", "[name='text'] where text() was meant, else leave it out"),
)


class TwigError(MatchingError):
    """A twig is refused: `column` counts characters from 1, `expected` says what to write instead."""

    def __init__(self, text: str, column: int, problem: str, expected: str) -> None:
        super().__init__(text, column, problem, expected)
        self.text = text
        self.column = column
        self.problem = problem
        self.expected = expected

    def __str__(self) -> str:
        shown = repr(self.text[:EXCERPT_CHARACTERS_MAX])
        return f"twig {shown}, column {self.column}: {self.problem}; expected {self.expected}"


@dataclass(frozen=True, slots=True)
class Step:
    """One name of a twig, the text it must have (None: any), and what stands below it, in the order of their texts."""

    name: str
    value: str | None = None
    branches: tuple[Step, ...] = ()

    @property
    def text(self) -> str:
        """The one way to write it."""
        below = [branch.text for branch in self.branches]
        if len(below) == 1 and self.value is None:
            return f"{self.name}/{below[0]}"
        return "".join([self.name, *(f"[{one}]" for one in below)]) + (
            f"={_quoted(self.value)}" if self.is_leaf else ""
        )

    @property
    def is_leaf(self) -> bool:
        """It asks for a text."""
        return self.value is not None

    def walk(self) -> Iterator[Step]:
        """This step and all below it."""
        yield self
        for branch in self.branches:
            yield from branch.walk()

    def xpath(self) -> str:
        """The step and what it asks for, as XPath 1.0 of local names."""
        node, name = ("@*", self.name[1:]) if self.name[0] == "@" else ("*", self.name)
        parts = [f"{node}[local-name()='{name}']", *(f"[{branch.xpath()}]" for branch in self.branches)]
        if self.value is not None:
            parts.append(f"[.={_quoted(self.value)}]" if node == "@*" else f"[not(*)][.={_quoted(self.value)}]")
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class Twig:
    """A twig: from the root or from anywhere, and its first step. Equal twigs have equal texts."""

    is_absolute: bool
    root: Step

    @property
    def text(self) -> str:
        """The one way to write it: branches in order, each once, no spaces, no leading `//`."""
        return f"/{self.root.text}" if self.is_absolute else self.root.text

    def items(self) -> frozenset[str]:
        """Its names, its pairs and, when it is absolute, its root: what a document that has it has as well."""
        found = {f"n/{step.name}" for step in self.root.walk()}
        found |= {f"s/{step.name}/{below.name}" for step in self.root.walk() for below in step.branches}
        return frozenset(found | {f"r/{self.root.name}"} if self.is_absolute else found)

    def values(self) -> frozenset[str]:
        """The texts that it asks for, the long ones left out."""
        return frozenset(
            f"v/{step.name}/{step.value}"
            for step in self.root.walk()
            if step.value is not None and len(step.value.encode()) <= VALUE_BYTES_MAX
        )

    def filter(self, length: int, hashes: int) -> int:
        """The filter of its items; bit i is `1 << i`."""
        return filter_of(self.items(), length, hashes)

    def values_filter(self, length: int, hashes: int) -> int:
        """The filter of its values, 0 when it asks for none."""
        return filter_of(self.values(), length, hashes)

    def check(self) -> list[str | list[str]]:
        """What its subscriber asks of the documents that come: XPath, and what a document without it may lack."""
        return [self.xpath(), sorted(self.items() | self.values())]

    def xpath(self) -> str:
        """XPath 1.0 that says whether a document has it: for lxml, for Spark's `xpath_boolean`, for anybody."""
        return f"boolean({'/' if self.is_absolute else '//'}{self.root.xpath()})"


def parse_twig(text: str) -> Twig:
    """The twig that a text says, or TwigError."""
    return _Reader(text).twig()


class _Reader:
    """One reading of one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._steps = 0
        if len(text) > TWIG_BYTES_MAX or len(text.encode("utf-8", "surrogatepass")) > TWIG_BYTES_MAX:
            raise self._refused("the twig is too long", f"at most {TWIG_BYTES_MAX} bytes; use several subscriptions")

    def twig(self) -> Twig:
        slashes = self._take("slash")
        root = self._path(1)
        if self._place < len(self._text):
            raise self._unexpected("the end of the twig")
        if slashes == "/" and root.name[0] == "@":
            self._place = 0
            raise self._refused(
                "the root of a document is no attribute", f"//{root.name}, or the element it belongs to"
            )
        return Twig(slashes == "/", root)

    def _path(self, depth: int) -> Step:
        """A path and its value, as its first step."""
        begins = self._place
        name = self._name(depth)
        branches = []
        while name[0] != "@" and self._take("sign", "["):
            branches.append(self._path(depth + 1))
            if not self._take("sign", "]"):
                raise self._unexpected("]")
        value = None
        if self._peek("slash"):
            branches.append(self._below(name, depth))
        elif self._take("sign", "="):
            if any(branch.name[0] != "@" for branch in branches):
                self._place = begins
                raise self._refused("only a leaf has a text", f"the child that has it, such as {name}[title='text']")
            value = self._string()
        kept = {branch.text: branch for branch in branches}
        return Step(name, value, tuple(kept[one] for one in sorted(kept)))

    def _below(self, name: str, depth: int) -> Step:
        """What stands behind a slash."""
        if self._peek("slash") == "//":
            raise self._refused(
                "// may stand at the beginning only", "/ and every name between, or two XPATHs joined by AND"
            )
        if name[0] == "@":
            raise self._refused("nothing stands below an attribute", "the end of the path")
        self._take("slash")
        return self._path(depth + 1)

    def _name(self, depth: int) -> str:
        if self._peek("slash"):
            raise self._refused(
                "a branch begins at the element before it, and // and / at the beginning only", _WAY_OUT
            )
        name = self._take("name")
        if not name:
            raise self._unexpected(_WAY_OUT)
        self._place, end = self._place - len(name), self._place
        if len(name.encode()) > TWIG_NAME_BYTES_MAX:
            raise self._refused("this name is too long", f"at most {TWIG_NAME_BYTES_MAX} bytes")
        self._steps += 1
        if self._steps > TWIG_STEPS_MAX:
            raise self._refused("the twig has too many steps", f"at most {TWIG_STEPS_MAX} names")
        if depth > TWIG_DEPTH_MAX:
            raise self._refused("the twig is too deep", f"at most {TWIG_DEPTH_MAX} names below one another")
        for pattern, problem, expected in _AFTER_NAME:
            if re.match(pattern, self._text[end:]):
                raise self._refused(problem, expected)
        self._place = end
        self._skip()
        return name

    def _string(self) -> str:
        begins = self._place
        quoted = self._take("string")
        if not quoted:
            raise self._unexpected("a text in quotes, such as '2003'")
        bad = _NO_XML.search(quoted)
        if bad:
            self._place = begins + bad.start()
            raise self._refused(f"no document has the character U+{ord(bad[0]):04X}", "a text that XML can hold")
        return quoted[1:-1]

    def _peek(self, kind: str) -> str:
        """The next token when it is of this kind, else nothing."""
        self._skip()
        found = _TOKEN.match(self._text, self._place)
        return found[0] if found and found.lastgroup == kind else ""

    def _take(self, kind: str, wanted: str = "") -> str:
        token = self._peek(kind)
        if not token or (wanted and token != wanted):
            return ""
        self._place += len(token)
        if kind != "name":
            self._skip()
        return token

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._place)
        assert found
        self._place = found.end()

    def _unexpected(self, expected: str) -> TwigError:
        """What stands here cannot; if XPath has it, what to write instead."""
        rest = self._text[self._place :]
        if not rest:
            return self._refused("the twig ends too early" if self._text.strip() else "the twig is empty", expected)
        if re.match(r"(and|or)\b", rest) and self._steps:
            return self._refused("and, or are not understood", "[a][b] for a and b; two subscriptions for a or b")
        for pattern, problem, advice in _FOREIGN:
            if re.match(pattern, rest) and not _TOKEN.match(rest):
                return self._refused(problem, advice)
        return self._refused(f"{rest[:12]!r} cannot stand here", expected)

    def _refused(self, problem: str, expected: str) -> TwigError:
        return TwigError(self._text, self._place + 1, problem, expected)


def _quoted(value: str | None) -> str:
    """A text in the kind of quotes that it does not have inside."""
    return f'"{value}"' if value is not None and "'" in value else f"'{value}'"

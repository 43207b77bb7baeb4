"""The words of a condition: text -> words, in one pass over one regular expression.

A word has the kind that the grammar in `parser.py` calls it by, its value, its 1-based column and its text. What is
no word raises `Refusal`: column, problem and what was expected; `parse_condition` adds the condition around it.

DELTA, XPATH and HEARTBEAT are words of the language only where what follows makes them so (`DELTA(`, `XPATH '...'`,
`HEARTBEAT 60`), so that attributes may have these names too. `--` begins a comment that ends with its line, as in
Spark, where a backslash before the line's end lets it go on.

A list behind IN of nothing but strings, integers or doubles is one word, however long: cutting and parsing ten thousand
values one by one would take half a second. Any other list is words like everything else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from headgate.matching.limits import (
    ATTRIBUTE_NAME_BYTES_MAX,
    CONDITION_BYTES_MAX,
    IN_BYTES_MAX,
    INTEGER_MAX,
    INTEGER_MIN,
)
from headgate.matching.values import Value

__all__ = ["KEYWORDS", "Refusal", "Word", "too_long", "words"]

KEYWORDS: Final = frozenset(
    ("AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE"),
)

_WORD: Final = re.compile(
    r"""
      (?P<space>  [ \t\r\n\f]+ | -- (?:\\\n|[^\r\n])* )
    | (?P<xpath>  XPATH (?=\s*') )
    | (?P<delta>  (?:DELTA|RISE|FALL) (?=\s*\() )
    | (?P<heart>  HEARTBEAT (?=\s+[0-9.+-]) )
    | (?P<name>   [^\W\d][\w$]* (?:\.[\w$]+)* | \$[\w$]* (?:\.[\w$]+)* )
    | (?P<quoted> ` (?:[^`]|``)* `? )
    | (?P<string> ' (?:[^']|'')* '? )
    | (?P<number> (?:[0-9]+\.?[0-9]*|\.[0-9]+) (?:[eE][+-]?[0-9]+)? [\w.]* )
    | (?P<sign>   == | <= | >= | <> | != | [=<>()+\-*/%,] )
    """,
    re.VERBOSE | re.IGNORECASE,
)

_BETWEEN: Final = r"(?:[ \t\r\n\f]|--(?:\\\n|[^\r\n])*+)*+"  # spaces and comments
_STRING_ITEM: Final = r"'[^']*+(?:''[^']*+)*+'"
_INTEGER_ITEM: Final = r"[+-]?[0-9]++[lL]?"
_DOUBLE_ITEM: Final = r"[+-]?(?:[0-9]++\.[0-9]*+|\.[0-9]++|[0-9]++(?=[eEdD]))(?:[eE][+-]?[0-9]++)?[dD]?"


def _list_of(item: str) -> re.Pattern[str]:
    return re.compile(rf"\({_BETWEEN}{item}(?:{_BETWEEN},{_BETWEEN}{item})*+{_BETWEEN}\)")


_LISTS: Final = tuple(
    (_list_of(item), re.compile(rf"{item}|--(?:\\\n|[^\r\n])*+"))
    for item in (_STRING_ITEM, _INTEGER_ITEM, _DOUBLE_ITEM)
)
"""A whole list of one kind, and how its items are found in it."""

_NUMBER: Final = re.compile(r"(?P<digits>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?P<suffix>[dDlL]?)")

_SIGNS: Final = {
    "(": "LEFT",
    ")": "RIGHT",
    ",": "COMMA",
    "+": "PLUS",
    "-": "MINUS",
    "*": "STAR",
    "/": "SLASH",
    "%": "PERCENT",
    ">": "MORE",
    ">=": "MORE",
}

# What people who know other languages write, and what to write here.
_FOREIGN: Final = {
    '"': "a string in single quotes, or a name in backticks",
    "&": "AND",
    "|": "OR",
    "!": "NOT, or <> for 'not equal'",
    "~": "LIKE",
    "?": "a value",
    ":": "a value",
    "[": "a dotted name such as body.order.price",
    "{": "a dotted name such as body.order.price",
    ";": "the end of the condition",
}


class Word(NamedTuple):
    """One word: its kind, its value, the 1-based column where it begins, its text as written."""

    kind: str
    value: Value | tuple[Value, ...]
    column: int
    text: str


class Refusal(Exception):
    """Why a condition is refused, before the condition's text is added."""

    def __init__(self, column: int, problem: str, expected: str) -> None:
        super().__init__(column, problem, expected)
        self.column = column
        self.problem = problem
        self.expected = expected


def words(text: str, length_max: int = CONDITION_BYTES_MAX) -> Iterator[Word]:
    """The words of a condition in order; lists aside, up to so many characters."""
    place, end, listed, kind = 0, len(text), 0, ""
    while place < end:
        if kind == "IN" and text[place] == "(" and (found := _listed(text, place)) is not None:
            listed += len(found.text)
            if listed > IN_BYTES_MAX:
                raise Refusal(place + 1, "the IN lists are too long", f"at most {IN_BYTES_MAX} bytes of values")
            kind = found.kind
            yield found
            place += len(found.text)
            continue
        match = _WORD.match(text, place)
        if match is None:
            raise _foreign(text[place], place + 1)
        reader = match.lastgroup
        if reader != "space":
            word = _READERS[reader](match.group(), place + 1)  # type: ignore[index]  # a match has a last group
            if kind in ("INTEGER", "DOUBLE") and reader == "name" and word.text.upper() == "PERCENT":
                word = word._replace(kind="HUNDREDTHS")
            kind = word.kind
            yield word
        place = match.end()
        if place - listed > length_max:
            raise too_long(place, length_max)


def too_long(column: int, length_max: int) -> Refusal:
    """Of a condition that has more text than it may."""
    expected = f"at most {length_max} bytes, the values of IN lists aside; use several subscriptions"
    return Refusal(column, "the condition is too long", expected)


def _listed(text: str, place: int) -> Word | None:
    """The list that begins here as one word; None when it is not of one kind, or something is wrong with it."""
    for read, (whole, item) in zip((_strings, _integers, _doubles), _LISTS, strict=True):
        match = whole.match(text, place)
        if match is not None:
            found = match.group()
            items = item.findall(found)
            if "--" in found:
                items = [one for one in items if not one.startswith("--")]
            values = read(items)
            return None if values is None else Word("LIST", values, place + 1, found)
    return None


def _strings(items: list[str]) -> tuple[Value, ...]:
    return tuple([one[1:-1].replace("''", "'") for one in items])


def _integers(items: list[str]) -> tuple[Value, ...] | None:
    if any(len(one) > 32 for one in items):
        return None
    values = tuple([int(one.rstrip("lL")) for one in items])
    return values if min(values) >= INTEGER_MIN and max(values) <= INTEGER_MAX else None


def _doubles(items: list[str]) -> tuple[Value, ...] | None:
    values = tuple([float(one.rstrip("dD")) for one in items])
    return values if all(map(math.isfinite, values)) else None


def _foreign(character: str, column: int) -> Refusal:
    shown = repr(character) if character.isprintable() else f"U+{ord(character):04X}"
    return Refusal(column, f"{shown} has no meaning here", _FOREIGN.get(character, "a value, a name or an operator"))


def _name(text: str, column: int) -> Word:
    keyword = text.upper()
    if keyword in KEYWORDS and text.isascii():
        return Word(keyword, None, column, text)
    return Word("NAME", _checked_name(text, column), column, text)


def _quoted(text: str, column: int) -> Word:
    if text.count("`") % 2:
        raise Refusal(column, "this quoted name never ends", "a closing backtick (`` inside a name stands for one)")
    return Word("NAME", _checked_name(text[1:-1].replace("``", "`"), column), column, text)


def _checked_name(name: str, column: int) -> str:
    if not name:
        raise Refusal(column, "the name between the backticks is empty", "the name of an attribute")
    if len(name.encode()) > ATTRIBUTE_NAME_BYTES_MAX:
        raise Refusal(column, "this name is too long", f"a name of at most {ATTRIBUTE_NAME_BYTES_MAX} bytes")
    return name


def _string(text: str, column: int) -> Word:
    # A closing quote is there unless the number of quotes is odd: two in a row inside stand for one.
    if text.count("'") % 2:
        raise Refusal(column, "this string never ends", "a closing quote (' is written '' inside a string)")
    return Word("STRING", text[1:-1].replace("''", "'"), column, text)


def _number(text: str, column: int) -> Word:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise Refusal(column, f"{_short(text)} is not a number", "a number such as 5, 8.3 or 1e-3")
    digits, suffix = match["digits"], match["suffix"].upper()
    if digits.isdigit() and suffix != "D":
        return _integer(digits, text, column)
    if suffix == "L":
        raise Refusal(column, f"{_short(text)} is not an integer", "an integer before the L, or no L")
    number = float(digits)
    if math.isinf(number):
        raise Refusal(column, f"{_short(text)} is too large", "a number up to 1.79e308")
    return Word("DOUBLE", number, column, text)


def _integer(digits: str, text: str, column: int) -> Word:
    # 2**63 itself passes: with a minus before it, it is the least integer. The parser refuses it elsewhere.
    if len(digits.lstrip("0")) > 19 or int(digits.lstrip("0") or "0") > INTEGER_MAX + 1:
        problem = f"the integer {_short(text)} does not fit in 64 bits"
        raise Refusal(column, problem, f"at most {INTEGER_MAX}, or a double such as 1e19")
    return Word("INTEGER", int(digits.lstrip("0") or "0"), column, text)


def _sign(text: str, column: int) -> Word:
    if text == "==":
        raise Refusal(column, "'==' is not an operator here", "a single =")
    operator = "<>" if text == "!=" else text
    return Word(_SIGNS.get(text, "COMPARISON"), operator, column, text)


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}..."


def _fixed(kind: str) -> Callable[[str, int], Word]:
    return lambda text, column: Word(kind, None, column, text)


_READERS: Final[dict[str, Callable[[str, int], Word]]] = {
    "xpath": _fixed("XPATH"),
    "delta": _fixed("DELTA"),
    "heart": _fixed("HEARTBEAT"),
    "name": _name,
    "quoted": _quoted,
    "string": _string,
    "number": _number,
    "sign": _sign,
}

"""The condition language: text -> tree, or a ConditionError that points at the column.

The words are cut by `words.py`; the grammar below is LALR(1), so parsing is linear in the text and keeps its own stack:
no text, however nested, can exhaust Python's. Values and conditions share one grammar (a parenthesis may hold either),
and each part knows which of the two it is, so that `price AND 5` is refused with a sentence and not with a list of
tokens. Limits are checked while parts are put together, not afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, cast

from lark import Lark, Token, Transformer, UnexpectedToken, v_args
from lark.lexer import Lexer

from headgate.matching.errors import ConditionError
from headgate.matching.language.words import Refusal, Word, too_long, words
from headgate.matching.likes import split_like
from headgate.matching.limits import (
    CONDITION_BYTES_MAX,
    CONDITION_DEPTH_MAX,
    CONDITION_TERMS_MAX,
    HEARTBEAT_SECONDS_MAX,
    IN_BYTES_MAX,
    IN_VALUES_MAX,
    INTEGER_MAX,
    LIKE_PATTERN_CHARACTERS_MAX,
    PARSED_BYTES_MAX,
    PARSED_KEPT,
)
from headgate.matching.structure import TwigError, parse_twig
from headgate.matching.tree import (
    Arithmetic,
    Attribute,
    Between,
    Compare,
    Delta,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Tree,
    ValueNode,
    XPath,
    conjunction,
    disjunction,
    membership,
    opposite,
)
from headgate.matching.values import Value

__all__ = ["parse_condition"]

GRAMMAR: Final = r"""
    start: disjunction

    ?disjunction: conjunction (_OR conjunction)*
    ?conjunction: negation (_AND negation)*
    ?negation:    NOT negation                                          -> negation
               |  predicate

    ?predicate:   sum
               |  sum (COMPARISON|MORE) sum                             -> compare
               |  sum [NOT] BETWEEN sum _AND sum                        -> between
               |  sum [NOT] IN LIST                                     -> listed
               |  sum [NOT] IN _LEFT sum (_COMMA sum)* _RIGHT           -> contained
               |  sum [NOT] LIKE STRING [_ESCAPE STRING]                -> like
               |  sum IS [NOT] NULL                                     -> is_null
               |  XPATH STRING                                          -> xpath
               |  DELTA _LEFT NAME _RIGHT MORE number [HUNDREDTHS] [_HEARTBEAT number]  -> delta

    ?sum:         product
               |  sum (PLUS|MINUS) product                              -> arithmetic
    ?product:     unary
               |  product (STAR|SLASH|PERCENT) unary                    -> arithmetic
    ?unary:       MINUS unary                                           -> minus
               |  PLUS unary                                            -> plus
               |  atom
    ?atom:        NAME                                                  -> name
               |  (STRING|INTEGER|DOUBLE|TRUE|FALSE|NULL)               -> literal
               |  _LEFT disjunction _RIGHT
    number:       [PLUS] (INTEGER|DOUBLE)

    %declare NAME STRING INTEGER DOUBLE TRUE FALSE NULL NOT BETWEEN IN LIKE IS XPATH DELTA MORE COMPARISON LIST
    %declare PLUS MINUS STAR SLASH PERCENT HUNDREDTHS _AND _OR _ESCAPE _HEARTBEAT _LEFT _RIGHT _COMMA
"""

# The grammar's names for words that carry nothing the callbacks need begin with an underscore, which drops them.
_DROPPED: Final = frozenset(("AND", "OR", "ESCAPE", "HEARTBEAT", "LEFT", "RIGHT", "COMMA"))

# What may stand at some point, in the words of a user and in the order of speaking. Where a value may stand, so may all
# the rest of `_OPERAND`, of which three phrases are enough.
_OPERAND: Final = "a value, a name or '('"
_PHRASES: Final = {
    "MORE": "a comparison (= <> < <= > >=)",
    "STAR": "an operator (+ - * / %)",
    "STRING": "a string in single quotes",
    "INTEGER": "a number",
    "NAME": "a name",
    "_LEFT": "'('",
    "NOT": "NOT",
    "NULL": "NULL",
    "BETWEEN": "BETWEEN",
    "IN": "IN",
    "LIKE": "LIKE",
    "IS": "IS",
    "_ESCAPE": "ESCAPE",
    "HUNDREDTHS": "PERCENT",
    "_HEARTBEAT": "HEARTBEAT",
    "_AND": "AND",
    "_OR": "OR",
    "_COMMA": "','",
    "_RIGHT": "')'",
    "$END": "the end of the condition",
}


@dataclass(slots=True)
class Part:
    """A piece of the condition during parsing, with what the checks around it need to know."""

    node: Any
    column: int
    noun: str  # "" when it may be a value or a condition, else what to call it in an error
    is_condition: bool
    depth: int = 1
    terms: int = 0
    extension_column: int = 0  # where an extension stands in it, 0 when there is none
    values: int = 0  # in IN lists
    values_bytes: int = 0


def parse_condition(text: str, bytes_max: int = CONDITION_BYTES_MAX) -> Tree:
    """The tree of a condition in normal form, or ConditionError.

    Text that `to_text` printed may be longer than what a client may send: give CANONICAL_BYTES_MAX to read it back. The
    values of IN lists have a bound of their own. The tree may be shared with others who gave the same text.
    """
    return _kept(text, bytes_max) if len(text) <= PARSED_BYTES_MAX else _parsed(text, bytes_max)


@lru_cache(PARSED_KEPT)
def _kept(text: str, bytes_max: int) -> Tree:
    return _parsed(text, bytes_max)


def _parsed(text: str, bytes_max: int) -> Tree:
    try:
        size = _check_text(text, bytes_max)
        found = list(words(text, bytes_max))
        if size > bytes_max and size - sum(len(one.text.encode()) for one in found if one.kind == "LIST") > bytes_max:
            raise too_long(len(text), bytes_max)
        return cast(Tree, cast(Any, _parser()).parse(found))
    except Refusal as refusal:
        raise ConditionError(text, refusal.column, refusal.problem, refusal.expected) from None
    except UnexpectedToken as error:
        refused = _unexpected(error, text)
        raise ConditionError(text, refused.column, refused.problem, refused.expected) from None


def _check_text(text: str, bytes_max: int) -> int:
    """How many bytes a text has that is worth reading."""
    if len(text) <= bytes_max + IN_BYTES_MAX:  # a text of a megabyte is not worth encoding
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            column = error.start + 1
            raise Refusal(column, "half of a surrogate pair is not a character", "valid UTF-8") from None
        if size <= bytes_max + IN_BYTES_MAX:
            if not text.strip():
                raise Refusal(1, "the condition is empty", "a condition such as price > 8.5, or none at all")
            return size
    raise too_long(bytes_max + 1, bytes_max)


def _unexpected(error: UnexpectedToken, text: str) -> Refusal:
    """The refusal of a word that cannot stand where it stands, with what could."""
    accepts = set(error.accepts or error.expected)
    if {"STRING", "NAME"} <= accepts:
        expected = _OPERAND
    else:
        phrases = [phrase for terminal, phrase in _PHRASES.items() if terminal in accepts]
        if "MORE" in accepts and "COMPARISON" not in accepts:
            phrases = ["> or >="]
        expected = " or ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)
    if error.token.type == "$END":
        return Refusal(len(text.rstrip()) + 1, "the condition ends too early", expected)
    word: Word = error.token.value
    shown = word.text if len(word.text) <= 24 else word.text[:20] + "..."
    if word.kind in ("COMPARISON", "MORE") and "_AND" in accepts:
        return Refusal(word.column, f"comparisons cannot be chained with {shown}", "AND, or a BETWEEN low AND high")
    return Refusal(word.column, f"{shown} cannot stand here", expected)


class _ConditionLexer(Lexer):
    """Hands the words of `words.py` to the parser as its tokens."""

    def __init__(self, lexer_conf: Any) -> None:
        """The grammar's own idea of terminals is not needed."""

    def lex(self, lexer_state: Any, parser_state: Any = None) -> Iterator[Token]:
        """Called with what was given to be parsed: the words."""
        for word in lexer_state:
            kind = "_" + word.kind if word.kind in _DROPPED else word.kind
            yield Token(kind, word)


@cache
def _parser() -> Lark:
    return Lark(
        GRAMMAR, parser="lalr", lexer=_ConditionLexer, transformer=_Builder(), maybe_placeholders=True, start="start"
    )


def _value(part: Part) -> ValueNode:
    """The part as an operand, or a refusal when it is a condition."""
    if part.is_condition:
        problem = f"{part.noun} cannot be compared or calculated with"
        raise Refusal(part.column, problem, "a value or a name; join conditions with AND, OR and NOT")
    if isinstance(part.node, Literal) and part.node.value == INTEGER_MAX + 1 and type(part.node.value) is int:
        raise Refusal(part.column, "this integer does not fit in 64 bits", f"at most {INTEGER_MAX}, or a double")
    return cast(ValueNode, part.node)


def _condition(part: Part) -> Tree:
    """The part as a condition, or a refusal when it is a value."""
    if part.noun and not part.is_condition:
        raise Refusal(part.column, f"{part.noun} is not a condition", "a comparison such as name = 'value'")
    return cast(Tree, part.node)


def _joined(node: Any, parts: Sequence[Part], noun: str, is_condition: bool = True, terms: int = 1) -> Part:
    """A part made of others, within the limits."""
    depth = 1 + max(part.depth for part in parts)
    terms += sum(part.terms for part in parts)
    column = parts[0].column
    if depth > CONDITION_DEPTH_MAX:
        raise Refusal(column, "the condition is nested too deeply", f"at most {CONDITION_DEPTH_MAX} levels")
    if terms > CONDITION_TERMS_MAX:
        raise Refusal(
            column,
            "the condition has too many terms",
            f"at most {CONDITION_TERMS_MAX} comparisons; an IN list of one kind (strings, integers, or doubles) is one",
        )
    values, values_bytes = sum(part.values for part in parts), sum(part.values_bytes for part in parts)
    if values > IN_VALUES_MAX:
        raise Refusal(column, "the IN lists have too many values", f"at most {IN_VALUES_MAX} in a condition")
    if values_bytes > IN_BYTES_MAX:
        raise Refusal(column, "the IN lists are too long", f"at most {IN_BYTES_MAX} bytes of values")
    extension_column = max(part.extension_column for part in parts)
    return Part(node, column, noun, is_condition, depth, terms, extension_column, values, values_bytes)


def _plain(part: Part) -> Part:
    """The part, or a refusal when it holds an extension: those may stand in the top-level AND only."""
    if part.extension_column:
        problem = "DELTA, RISE, FALL and XPATH cannot stand inside OR or NOT"
        raise Refusal(part.extension_column, problem, "them joined to the rest by AND; use two subscriptions for OR")
    return part


def _string(token: Token) -> str:
    return cast(str, token.value.value)


@v_args(inline=True)
class _Builder(Transformer[Token, Tree]):
    """One method for each rule of the grammar that makes something; parts in, part out."""

    def start(self, part: Part) -> Tree:
        return _condition(part)

    def disjunction(self, *parts: Part) -> Part:
        node = disjunction([_condition(_plain(part)) for part in parts])
        return _flat(node, parts, "an OR")

    def conjunction(self, *parts: Part) -> Part:
        return _flat(conjunction([_condition(part) for part in parts]), parts, "an AND")

    def negation(self, token: Token, part: Part) -> Part:
        made = _joined(Not(_condition(_plain(part))), [part], "a NOT", terms=0)
        made.column = token.value.column
        return made

    def compare(self, left: Part, token: Token, right: Part) -> Part:
        node = Compare(str(token.value.value), _value(left), _value(right))
        return _joined(node, [left, right], "a comparison")

    def between(self, operand: Part, negated: Token | None, _word: Token, low: Part, high: Part) -> Part:
        node = Between(_value(operand), _value(low), _value(high))
        return _negated(negated, _joined(node, [operand, low, high], "a BETWEEN", terms=2 + operand.terms))

    def listed(self, operand: Part, negated: Token | None, _word: Token, token: Token) -> Part:
        values = token.value.value
        node = In(_value(operand), tuple([Literal(value) for value in values]))
        size = sum(len(repr(value)) + 3 for value in values) if type(values[0]) is float else len(token.value.text)
        items = Part(node, token.value.column, "", False, 0, 0, 0, len(values), size)
        return _negated(negated, _joined(node, [operand, items], "an IN"))

    def contained(self, operand: Part, negated: Token | None, _word: Token, *items: Part) -> Part:
        node = membership(_value(operand), [_value(item) for item in items])
        terms = len(items) + (len(items) - 1) * operand.terms
        made = _joined(node, [operand, *items], "an IN", terms=terms)
        made.depth += 1  # it may be written out as OR
        return _negated(negated, made)

    def like(self, operand: Part, negated: Token | None, _word: Token, pattern: Token, escape: Token | None) -> Part:
        node = Like(_value(operand), _pattern(pattern, escape), _escape(escape))
        return _negated(negated, _joined(node, [operand], "a LIKE"))

    def is_null(self, operand: Part, _word: Token, negated: Token | None, _null: Token) -> Part:
        return _negated(negated, _joined(IsNull(_value(operand)), [operand], "an IS NULL"))

    def xpath(self, word: Token, twig: Token) -> Part:
        column = word.value.column
        return Part(XPath(_twig(twig)), column, "an XPATH", True, 1, 1, column)

    def delta(
        self,
        word: Token,
        name: Token,
        more: Token,
        threshold: float,
        hundredths: Token | None,
        heartbeat: float | None,
    ) -> Part:
        column = word.value.column
        if heartbeat is not None and not 0 < heartbeat <= HEARTBEAT_SECONDS_MAX:
            raise Refusal(column, "this HEARTBEAT is out of range", f"seconds above 0, at most {HEARTBEAT_SECONDS_MAX}")
        side = word.value.text.upper()
        node = Delta(_string(name), threshold, more.value.value == ">=", heartbeat, hundredths is not None, side)
        return Part(node, column, f"a {side}", True, 1, 1, column)

    def number(self, _plus: Token | None, token: Token) -> float:
        if token.value.value == INTEGER_MAX + 1 and type(token.value.value) is int:
            raise Refusal(token.value.column, "this integer does not fit in 64 bits", f"at most {INTEGER_MAX}")
        return cast(float, token.value.value)

    def arithmetic(self, left: Part, operator: Token, right: Part) -> Part:
        node = Arithmetic(str(operator.value.value), _value(left), _value(right))
        return _joined(node, [left, right], "a calculation", is_condition=False)

    def minus(self, token: Token, part: Part) -> Part:
        # The one place where the magnitude of the least integer may stand.
        operand = part.node if isinstance(part.node, Literal) else _value(part)
        node = opposite(operand)
        if isinstance(node, Literal):
            return Part(node, token.value.column, "a number", False)
        _value(part)
        made = _joined(node, [part], "a calculation", is_condition=False)
        made.column = token.value.column
        return made

    def plus(self, _token: Token, part: Part) -> Part:
        _value(part)
        return part

    def name(self, token: Token) -> Part:
        return Part(Attribute(_string(token)), token.value.column, "", False)

    def literal(self, token: Token) -> Part:
        word: Word = token.value
        fixed = {"TRUE": True, "FALSE": False, "NULL": None}
        if word.kind in fixed:
            return Part(Literal(fixed[word.kind]), word.column, "", False)
        return Part(
            Literal(cast(Value, word.value)), word.column, "a string" if word.kind == "STRING" else "a number", False
        )


def _flat(node: Tree, parts: Sequence[Part], noun: str) -> Part:
    """An AND or an OR: a part of the same kind, in parentheses, dissolves in it and adds no depth."""
    for part in parts:
        part.depth -= type(part.node) is type(node)
    return _joined(node, parts, noun, terms=0)


def _negated(negated: Token | None, part: Part) -> Part:
    return part if negated is None else _joined(Not(part.node), [part], part.noun, terms=0)


def _escape(token: Token | None) -> str | None:
    """The escape character, None when it is the default one."""
    if token is None or _string(token) == "\\":
        return None
    escape = _string(token)
    if len(escape) != 1 or escape in "%_" or ord(escape) > 0xFFFF:
        raise Refusal(token.value.column, "this cannot be an escape character", "one character other than % and _")
    return escape


def _twig(token: Token) -> str:
    """The canonical text of the twig in a string; what is wrong with it is refused at its column in the condition."""
    try:
        return parse_twig(_string(token)).text
    except TwigError as error:
        inside = token.value.text[1:-1]
        place = 0
        for _ in range(error.column - 1):
            place += 2 if inside.startswith("''", place) else 1  # a quote is doubled inside a string
        raise Refusal(token.value.column + 1 + place, error.problem, error.expected) from None


def _pattern(token: Token, escape: Token | None) -> str:
    pattern, column = _string(token), token.value.column
    if len(pattern) > LIKE_PATTERN_CHARACTERS_MAX:
        raise Refusal(column, "this pattern is too long", f"at most {LIKE_PATTERN_CHARACTERS_MAX} characters")
    try:
        split_like(pattern, _escape(escape))
    except ValueError as error:
        raise Refusal(column, str(error), "the escape character doubled where it means itself") from None
    return pattern

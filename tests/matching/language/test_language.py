"""matching/language/parser.py: what is understood, what is refused, and how the refusal reads."""

from __future__ import annotations

import pytest

from headgate.matching.errors import ConditionError
from headgate.matching.language import parse_condition, to_text
from headgate.matching.language.words import words
from headgate.matching.limits import (
    CONDITION_BYTES_MAX,
    CONDITION_DEPTH_MAX,
    CONDITION_TERMS_MAX,
    IN_BYTES_MAX,
    IN_VALUES_MAX,
)
from headgate.matching.tree import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Compare,
    Delta,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Tree,
    XPath,
    conjuncts,
)

A, B, C = Attribute("a"), Attribute("b"), Attribute("c")
ONE, TWO = Literal(1), Literal(2)
OPERAND = "a value, a name or '('"


def equals(attribute: Attribute, literal: Literal) -> Compare:
    return Compare("=", attribute, literal)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = 1", equals(A, ONE)),
        ("1 != a", Compare("<>", ONE, A)),
        ("a AND b OR c", Or((And((A, B)), C))),
        ("a OR b AND c", Or((A, And((B, C))))),
        ("(a OR b) AND c", And((Or((A, B)), C))),
        ("a AND (b AND c)", And((A, B, C))),
        ("NOT a = 1", Not(equals(A, ONE))),
        ("not not a", Not(Not(A))),
        ("NOT a AND b", And((Not(A), B))),
        ("a BETWEEN 1 AND 2 AND b", And((Between(A, ONE, TWO), B))),
        ("a not between 1 and 2", Not(Between(A, ONE, TWO))),
        ("a IN ('x', 'y')", In(A, (Literal("x"), Literal("y")))),
        ("a NOT IN (1)", Not(In(A, (ONE,)))),
        ("a IN (1, 'x')", Or((equals(A, ONE), equals(A, Literal("x"))))),
        ("a NOT IN (1, NULL)", Not(Or((equals(A, ONE), equals(A, Literal(None)))))),
        ("a IN (b, 2)", Or((Compare("=", A, B), equals(A, TWO)))),
        ("a LIKE 'x%'", Like(A, "x%")),
        ("a LIKE 'x!%' ESCAPE '!'", Like(A, "x!%", "!")),
        ("a LIKE 'x' ESCAPE '\\'", Like(A, "x")),
        ("a NOT LIKE 'x'", Not(Like(A, "x"))),
        ("a IS NULL", IsNull(A)),
        ("a + 1 IS NOT NULL", Not(IsNull(Arithmetic("+", A, ONE)))),
        ("(a) = (1)", equals(A, ONE)),
        ("TRUE", Literal(True)),
        ("null or a", Or((Literal(None), A))),
        ("a = -1", equals(A, Literal(-1))),
        ("a = - -1", equals(A, ONE)),
        ("a = +1", equals(A, ONE)),
        ("a = -9223372036854775808", equals(A, Literal(-(2**63)))),
        ("a = -b", Compare("=", A, Negate(B))),
        (
            "a - b - 1 * 2 > 1",
            Compare(">", Arithmetic("-", Arithmetic("-", A, B), Arithmetic("*", ONE, TWO)), ONE),
        ),
        ("-a * b = 1", equals(Arithmetic("*", Negate(A), B), ONE)),  # type: ignore[arg-type]
        ("XPATH '/bib/book'", XPath("/bib/book")),
        ("DELTA(a) > 0.05", Delta("a", 0.05, False)),
        ("delta ( a ) >= 1 heartbeat 60 AND b", And((Delta("a", 1, True, 60), B))),
        ("fall(a) > 2.5 percent", Delta("a", 2.5, False, None, True, "FALL")),
        ("RISE(a) >= 1 PERCENT HEARTBEAT 60", Delta("a", 1, True, 60, True, "RISE")),
        ("rise > 1 AND percent = 2", And((Compare(">", Attribute("rise"), ONE), equals(Attribute("percent"), TWO)))),
        ("b AND (XPATH '/x' AND DELTA(`a b`) > 0)", And((B, XPath("/x"), Delta("a b", 0, False)))),
        (
            "delta > 1 AND a = 2",
            And((Compare(">", Attribute("delta"), ONE), equals(A, TWO))),
        ),
    ],
)
def test_texts_and_their_trees(text: str, tree: Tree) -> None:
    assert parse_condition(text) == tree


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 1, "a condition such as"),
        ("  \n ", 1, "a condition such as"),
        ("price >", 8, OPERAND),
        ("price > AND a", 9, OPERAND),
        ("a AND", 6, OPERAND),
        ("AND a", 1, OPERAND),
        ("a = (b", 7, "')'"),
        ("a = 1)", 6, "the end of the condition"),
        ("a b", 3, "AND, OR or the end of the condition"),
        ("foo(1)", 4, "a comparison (= <> < <= > >=)"),
        ("a = b = c", 7, "AND, or a BETWEEN low AND high"),
        ("1 < a < 10", 7, "AND, or a BETWEEN low AND high"),
        ("a BETWEEN 1 OR 2", 13, "AND"),
        ("a IN ()", 7, OPERAND),
        ("a IN 1", 6, "'('"),
        ("a IN (1", 8, "','"),
        ("a LIKE b", 8, "a string in single quotes"),
        ("a LIKE 'x' ESCAPE 5", 19, "a string in single quotes"),
        ("a LIKE 'x' ESCAPE '!!'", 19, "one character other than % and _"),
        ("a LIKE 'x' ESCAPE '%'", 19, "one character other than % and _"),
        ("a LIKE 'x' ESCAPE '😀'", 19, "one character other than % and _"),
        ("a LIKE 'x\\y'", 8, "the escape character doubled"),
        ("a LIKE 'x!y' ESCAPE '!'", 8, "the escape character doubled"),
        ("a LIKE '" + "x" * 1025 + "'", 8, "at most 1024 characters"),
        ("a IS 5", 6, "NOT or NULL"),
        ("a NOT 5", 7, "BETWEEN, IN or LIKE"),
        ("a IS TRUE", 6, "NOT or NULL"),
        ("a AND 5", 7, "a comparison such as"),
        ("'x' OR a", 1, "a comparison such as"),
        ("NOT (a + 1)", 6, "a comparison such as"),
        ("(a > 1) = TRUE", 2, "join conditions with AND"),
        ("(a AND b) + 1 = 2", 2, "join conditions with AND"),
        ("(NOT a) IS NULL", 2, "join conditions with AND"),
        ("-(a = 1) = 1", 3, "join conditions with AND"),
        ("+(a = 1) = 1", 3, "join conditions with AND"),
        ("a = 9223372036854775808", 5, "at most 9223372036854775807"),
        ("9223372036854775808 IN (a)", 1, "at most 9223372036854775807"),
        ("a = 1 - 9223372036854775808", 9, "at most 9223372036854775807"),
        ("a OR DELTA(b) > 1", 6, "them joined to the rest by AND"),
        ("NOT XPATH '/a'", 5, "them joined to the rest by AND"),
        ("(a AND XPATH '/a') OR b", 8, "them joined to the rest by AND"),
        ("DELTA(b) < 1", 10, "> or >="),
        ("DELTA(b) > -1", 12, "a number"),
        ("DELTA(b) > c", 12, "a number"),
        ("a > 1 percent", 7, "an operator"),
        ("RISE(b) > 1 PER CENT", 13, "PERCENT, HEARTBEAT"),
        ("a OR RISE(b) > 1", 6, "them joined to the rest by AND"),
        ("DELTA(b + 1) > 1", 9, "')'"),
        ("DELTA(b) > 9223372036854775808", 12, "at most 9223372036854775807"),
        ("DELTA(b) > 1 HEARTBEAT 0", 1, "seconds above 0"),
        ("DELTA(b) > 1 HEARTBEAT 1e300", 1, "seconds above 0"),
        ("a = 1 HEARTBEAT 60", 7, "AND, OR or the end"),
        ("XPATH '/a' = 1", 12, "AND"),
        ("a = 'x", 5, "a closing quote"),
        ("a = 1 - - all words", 15, "the end"),
        ("a > -- 1", 9, OPERAND),
        ("-- nothing else", 16, OPERAND),
        ("a = '\ud800'", 6, "valid UTF-8"),
        ("SELECT * FROM t", 15, "the end"),
    ],
)
def test_a_refusal_names_the_column_and_what_was_expected(text: str, column: int, expected: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(text)
    assert caught.value.column == column, str(caught.value)
    assert expected in caught.value.expected, str(caught.value)
    assert caught.value.text == text
    assert len(str(caught.value).splitlines()) == 3


HOSTILE = {
    "10,000 parentheses": "(" * 10_000 + "a" + ")" * 10_000,
    "10,000 open parentheses": "(" * 10_000,
    "10,000 terms": " OR ".join(["a = 1"] * 10_000),
    "1 MiB": "a" * 2**20,
    "1 MiB of two-byte characters": "é" * 2**20,
    "just over 4 KiB": "a = '" + "é" * 2046 + "'",
    "4,000 parentheses": "(" * 2000 + "a" + ")" * 2000,
    "a chain of NOT": "NOT " * 1000 + "a",
    "a chain of minus": "a = " + "-" * 4000 + "b",
    "nested NOT": "NOT (" * 600 + "a" + ")" * 600,
    "a long sum": "a" + " + a" * 900 + " > 1",
    "5,000 digits": "a = " + "1" * 5000,
    "4,000 digits": "a = " + "1" * 4000,
    "percent signs": "a LIKE '" + "%a" * 1500 + "'",
    "too many terms": " OR ".join(["a=1"] * 500),
    "too many items": "a IN (" + ",".join("1" * (IN_VALUES_MAX + 1)) + ")",
    "too many items in two lists": " AND ".join(["a IN (" + ",".join("1" * (IN_VALUES_MAX // 2 + 1)) + ")"] * 2),
    "too long items": "a IN ('" + "x" * IN_BYTES_MAX + "')",
    "too long items in two lists": " AND ".join(["a IN ('" + "x" * (IN_BYTES_MAX // 2) + "')"] * 2),
    "items that are long when they are printed": "a IN ('"
    + "x" * (IN_BYTES_MAX - 100_000)
    + "') AND b IN ("
    + ",".join(["1e22"] * 14_000)
    + ")",
    "too many items of two kinds": "a IN ('x'," + ",".join("1" * 500) + ")",
    "too many items of two kinds times a sum": "a + b IN ('x'," + ",".join("1" * 200) + ")",
    "a list that never ends": "a IN (" + "'x'," * 10_000,
    "a list of a megabyte that never ends": "a IN ('" + "''" * 250_000,
    "a string as long as a list": "a = '" + "x" * 5_000 + "' AND b IN (1, 2, 3)",
    "open strings": "'" * 4001,
    "backticks": "`" * 4001,
}


@pytest.mark.parametrize("text", [t for n, t in HOSTILE.items() if n != "4,000 parentheses"], ids=lambda t: t[:12])
def test_hostile_text_is_refused_cleanly(text: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(text)
    assert len(str(caught.value)) < 600


def test_parentheses_cost_nothing_but_their_bytes() -> None:
    assert parse_condition(HOSTILE["4,000 parentheses"]) == A


def test_the_limits_themselves_are_allowed() -> None:
    assert isinstance(parse_condition("NOT " * (CONDITION_DEPTH_MAX - 1) + "a"), Not)
    with pytest.raises(ConditionError, match="at most 32 levels"):
        parse_condition("NOT " * CONDITION_DEPTH_MAX + "a")
    assert parse_condition(" OR ".join(["a=1"] * CONDITION_TERMS_MAX)) == Or((equals(A, ONE),) * CONDITION_TERMS_MAX)
    with pytest.raises(ConditionError, match="at most 256 comparisons"):
        parse_condition(" OR ".join(["a=1"] * (CONDITION_TERMS_MAX + 1)))
    padding = " " * (CONDITION_BYTES_MAX - 1)
    assert parse_condition("a" + padding) == A
    with pytest.raises(ConditionError, match="at most 4096 bytes"):
        parse_condition("a " + padding)


def test_parentheses_around_parts_of_one_and_add_no_depth() -> None:
    text = "a"
    for _ in range(CONDITION_DEPTH_MAX * 2):
        text = f"({text} AND a)"
    assert parse_condition(text) == And((A,) * (CONDITION_DEPTH_MAX * 2 + 1))


def test_nothing_is_folded_or_normalised_in_names_and_strings() -> None:
    assert parse_condition("Price = 'caf\u00e9'") != parse_condition("price = 'caf\u00e9'")
    assert parse_condition("a = 'caf\u00e9'") != parse_condition("a = 'cafe\u0301'")
    assert parse_condition("a = '\x00'") == equals(A, Literal("\x00"))


def test_contradictions_and_tautologies_are_conditions_like_others() -> None:
    assert len(conjuncts(parse_condition("a > 1 AND a < 1"))) == 2
    assert parse_condition("1 = 1") == Compare("=", ONE, ONE)


@pytest.mark.parametrize(
    "text",
    [
        "a > 1 -- x",
        "a > 1--x",
        "-- why\na > 1",
        "a -- one\r\n> -- 'two\n1 -- `three",
        "a > 1 -- goes \\\n on",
        "a > 1 ---1",
    ],
)
def test_two_minuses_begin_a_comment_as_in_spark(text: str) -> None:
    assert parse_condition(text) == parse_condition("a > 1")


def test_no_comment_begins_in_a_string_or_a_name_and_minus_minus_has_a_space_between() -> None:
    assert parse_condition("a = '-- x'") == equals(A, Literal("-- x"))
    assert parse_condition("`-- x` = 1") == equals(Attribute("-- x"), ONE)
    assert parse_condition("a > 1 - -2") == parse_condition("a > 1 - (-2)") != parse_condition("a > 1 --2")
    assert "--" not in to_text(parse_condition("a > 1 - -b AND a < - - b AND a > -(-2) - -3"))


def test_a_list_of_one_kind_is_bounded_by_itself() -> None:
    symbols = [f"SYM{number:09}" for number in range(IN_VALUES_MAX)]
    for values in (symbols, range(IN_VALUES_MAX), [number + 0.5 for number in range(IN_VALUES_MAX)]):
        text = f"a NOT IN ({', '.join(map(repr, values))}) AND b = '{'x' * (CONDITION_BYTES_MAX - 100)}'"
        tree = parse_condition(text)
        assert isinstance(tree, And) and isinstance(tree.operands[0], Not)
        found = tree.operands[0].operand
        assert isinstance(found, In) and [item.value for item in found.items] == list(values)
        assert parse_condition(to_text(tree)) == tree
    with pytest.raises(ConditionError, match="the values of IN lists aside"):
        parse_condition(f"a IN ({', '.join(map(repr, symbols))}) AND b = '{'x' * CONDITION_BYTES_MAX}'")


@pytest.mark.parametrize(
    "items",
    [
        ["1", "2", "3"],
        ["-1", "+2 ", " 9223372036854775807 ", "-9223372036854775808"],
        ["007", "1L", "2l"],
        ["1.5", ".5", "5.", "1e3", "1E-3", "2D", "-0.0", "1.5d"],
        ["'a'", "'it''s'", "''''", "''", "'b, c'", "'--'", "')'"],
        ["'a' -- one, 'two'\n", " 'b'"],
        [" -- 2\n 3"],
    ],
)
def test_a_list_read_at_once_is_what_its_items_are_one_by_one(items: list[str]) -> None:
    text, one_by_one = f"a IN ({','.join(items)})", f"a IN ({','.join(f'({item})' for item in items)})"
    assert [word.kind for word in words(text)] == ["NAME", "IN", "LIST"]
    assert all(word.kind != "LIST" for word in words(one_by_one))
    assert repr(parse_condition(text)) == repr(parse_condition(one_by_one))


@pytest.mark.parametrize("items", ["1, 2.5", "1, 'x'", "TRUE, FALSE", "NULL", "b", "1 + 1, 2", "(1), 2", "1, NULL"])
def test_any_other_list_is_words_like_everything_else(items: str) -> None:
    assert all(word.kind != "LIST" for word in words(f"a IN ({items})"))
    parse_condition(f"a IN ({items})")


@pytest.mark.parametrize(
    ("items", "column"), [("1, 9223372036854775808", 10), ("1e999, 1.5", 7), ("'x', 'y", 12), ("1,", 9)]
)
def test_what_is_wrong_in_a_list_is_pointed_at(items: str, column: int) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(f"a IN ({items})")
    assert caught.value.column == column

"""matching/language/spark_text.py: the text for Spark. Does Spark agree? tests/conformance/test_spark_agreement.py."""

from __future__ import annotations

import pytest

from headgate.matching.language import parse_condition, spark_columns, to_spark


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("a = 'x'", "(`a.s` = 'x')"),
        ("a = TRUE", "(`a.b` = TRUE)"),
        ("a", "`a.b`"),
        ("NOT TRUE", "(NOT TRUE)"),
        ("a = 1.5", "(coalesce(`a.d`, CAST(`a.l` AS DOUBLE)) = (1.5D))"),
        ("a = 5", "coalesce((`a.l` = (5L)), (coalesce(`a.d`, CAST(`a.l` AS DOUBLE)) = CAST((5L) AS DOUBLE)))"),
        ("a = NULL", "CAST(NULL AS BOOLEAN)"),
        ("'x' = 1", "CAST(NULL AS BOOLEAN)"),
        ("NULL IS NULL", "TRUE"),
        ("XPATH '/a' AND DELTA(p) > 1 AND a", "(TRUE AND TRUE AND `a.b`)"),
        ("a IN ('x', 'y')", "(`a.s` IN ('x', 'y'))"),
        ("a IN (TRUE, FALSE)", "((`a.b` = TRUE) OR (`a.b` = FALSE))"),
        (
            "a IN (0, -1)",
            "coalesce((`a.l` IN (0L, -1L)), ((coalesce(`a.d`, CAST(`a.l` AS DOUBLE)) + 0.0D) IN (0.0D, -1.0D)))",
        ),
        ("a IN (0.0, -0.0)", "((coalesce(`a.d`, CAST(`a.l` AS DOUBLE)) + 0.0D) IN (0.0D))"),
        ("'x' IN (1, 2)", "CAST(NULL AS BOOLEAN)"),
        ("1 IN ('x', 'y')", "CAST(NULL AS BOOLEAN)"),
        ("a LIKE 'x'", "(`a.s` LIKE 'x' ESCAPE '\\u005C')"),
        ("a + 1 LIKE 'x'", "CAST(NULL AS BOOLEAN)"),
        ("'x' + 1 = 2 OR -'x' = 1", "(CAST(NULL AS BOOLEAN) OR CAST(NULL AS BOOLEAN))"),
        ("`a``b.c` IS NULL AND 1 IS NULL", None),
    ],
)
def test_spark_texts(text: str, spark: str | None) -> None:
    found = to_spark(parse_condition(text))
    assert spark is None or found == spark


def test_strings_are_escaped_as_spark_reads_them() -> None:
    assert to_spark(parse_condition("a = 'It''s \\n\n\x00 é😀'")) == "(`a.s` = 'It\\u0027s \\u005Cn\\u000A\\u0000 é😀')"


def test_an_attribute_is_split_into_four_columns() -> None:
    assert spark_columns("a.b") == {"a.b.l": "BIGINT", "a.b.d": "DOUBLE", "a.b.s": "STRING", "a.b.b": "BOOLEAN"}


def test_arithmetic_never_raises_in_ansi_mode() -> None:
    found = to_spark(parse_condition("a + b - c * d / e % -f > 0"))
    for function in ("try_add", "try_subtract", "try_multiply", "try_divide", "try_mod"):
        assert function in found


def test_integer_calculations_are_guarded_against_sparks_reordering() -> None:
    assert "(try_multiply(`a.l`, `b.l`) | 0L)" in to_spark(parse_condition("0 * (a * b) = 0"))


def test_the_text_grows_with_the_condition_and_not_exponentially() -> None:
    assert len(to_spark(parse_condition("a" + " + a" * 28 + " > 1"))) < 30_000

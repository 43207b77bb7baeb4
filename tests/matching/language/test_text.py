"""matching/language/text.py: the canonical text."""

from __future__ import annotations

import pytest

from headgate.matching.language import parse_condition, to_text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("price between 8.30 and 8.70", "`price` BETWEEN 8.3D AND 8.7D"),
        ("a!=1", "`a` <> 1"),
        ("a in (1, 2.5)", "`a` = 1 OR `a` = 2.5D"),
        ("a not in (1, 2.5)", "NOT (`a` = 1 OR `a` = 2.5D)"),
        ("b and a in (1, 'x')", "`b` AND (`a` = 1 OR `a` = 'x')"),
        ("a NOT IN ('x','y')", "`a` NOT IN ('x', 'y')"),
        ("not a between 1 and 2", "`a` NOT BETWEEN 1 AND 2"),
        ("a is not null", "`a` IS NOT NULL"),
        ("not a", "NOT `a`"),
        ("not not a", "NOT (NOT `a`)"),
        ("not a = 1", "NOT (`a` = 1)"),
        ("a like 'It''s\\_%'", "`a` LIKE 'It''s\\_%'"),
        ("a not like '!%' escape '!'", "`a` NOT LIKE '!%' ESCAPE '!'"),
        ("((a or b)) and (c and d)", "(`a` OR `b`) AND `c` AND `d`"),
        ("a and b or c", "(`a` AND `b`) OR `c`"),
        ("a - (b - 1) > 2", "`a` - (`b` - 1L) > 2"),
        ("(a - b) - 1 > 2", "`a` - `b` - 1L > 2"),
        ("(a + b) * c / 2 > 2", "(`a` + `b`) * `c` / 2L > 2"),
        ("a - -1 = -b", "`a` - (-1L) = -`b`"),
        ("-(a + 1) = -(-9223372036854775808)", "-(`a` + 1L) = -(-9223372036854775808L)"),
        ("true or null", "TRUE OR NULL"),
        ("`a``b` = 1e300", "`a``b` = 1e+300D"),
        ("xpath '/a' and delta(p)>=0.05 heartbeat 1.5", "XPATH '/a' AND DELTA(`p`) >= 0.05D HEARTBEAT 1.5D"),
        ("delta(p) > 3", "DELTA(`p`) > 3"),
        ("rise(p) > 3 percent heartbeat 2", "RISE(`p`) > 3 PERCENT HEARTBEAT 2"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert to_text(parse_condition(text)) == canonical
    assert parse_condition(canonical) == parse_condition(text)


def test_equal_conditions_have_equal_texts_and_different_ones_do_not() -> None:
    assert to_text(parse_condition("A=1 and(b=2)")) == to_text(parse_condition("A = 1 AND b = 2"))
    assert to_text(parse_condition("a = 1")) != to_text(parse_condition("a = 1.0"))

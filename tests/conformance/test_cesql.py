"""The CloudEvents SQL conformance kit, as far as its cases are inside our language.

CESQL is a neighbour: the same expressions, other rules at the edges (functions, casts between types, an error where we
say UNKNOWN). Every case of the kit is either run here, and must give the kit's result, or is listed below with
the reason why it is not ours. A result that is no bool is compared inside a condition: `(expression) = result`. The kit
says false where an attribute is missing, we say UNKNOWN; both do not match, which is what is compared.
"""

from __future__ import annotations

import os
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from headgate.matching.errors import ConditionError
from headgate.matching.language import parse_condition
from headgate.matching.meaning import evaluate

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("HEADGATE_DATA", ROOT.parent / "shared" / "data"))
KIT = DATA / "filters" / "cesql_tck.tar.gz"

pytestmark = pytest.mark.skipif(not KIT.exists(), reason=f"no conformance kit at {KIT.name}; set HEADGATE_DATA")

# A required attribute of CloudEvents that a case does not set.
DEFAULT_EVENT = {"specversion": "1.0", "id": "1", "source": "urn:x", "type": "t"}

# Reason -> file of the kit -> cases.
OUTSIDE: dict[str, dict[str, tuple[str, ...]]] = {
    "a cast between types: unlike types are UNKNOWN here, as conditions they are refused": {
        "binary_comparison_operators": ("implicit casting with boolean as right type",),
        "binary_math_operators": (
            "Implicit casting, with left value string",
            "Implicit casting, with right value string",
            "Implicit casting, with both values string",
            "Implicit casting, with boolean value",
        ),
        "in_expression": (
            "type coercion with booleans (1)",
            "type coercion with booleans (3)",
            "type coercion with int (1)",
            "type coercion with int (2)",
        ),
        "like_expression": (
            "With type coercion from int (1)",
            "With type coercion from int (2)",
            "With type coercion from bool (1)",
            "With type coercion from bool (2)",
            "With type coercion from bool (4)",
        ),
        "negate_operator": (
            "Minus 10 with casting",
            "Minus minus 10 with casting",
            "Minus with boolean cast",
        ),
        "not_operator": (
            "Not true with casting",
            "Not false 10 with casting",
            "Invalid int cast",
        ),
        "spec_examples": (
            "Case insensitive hops (3)",
            "Equals with casting (1)",
        ),
    },
    "two dashes, which begin a comment, as in SQL and in Spark: write - -10": {
        "negate_operator": ("Minus minus 10",),
    },
    "XOR, which SQL-92 does not have: write a <> b": {
        "binary_logical_operators": (
            "False xor false",
            "False xor true",
            "True xor false",
            "True xor true",
        ),
    },
    "division of integers, which is fractional here as in Spark": {
        "binary_math_operators": ("Truncated division",),
    },
    "a function call": {
        "casting_functions": (
            "Cast '1' to integer",
            "Cast '-1' to integer",
            "Cast identity 1",
            "Cast identity -1",
            "Cast from TRUE to int",
            "Cast from FALSE to int",
            "Invalid cast from string to int",
            "Cast 'TRUE' to boolean",
            'Cast "false" to boolean',
            "Cast identity TRUE",
            "Cast identity FALSE",
            "Invalid cast from string to boolean",
            "Cast from 1 to boolean",
            "Cast from 0 to boolean",
            "Cast from 100 to boolean",
            "Cast from -50 to boolean",
            "Cast TRUE to string",
            "Cast FALSE to string",
            "Cast 1 to string",
            "Cast -1 to string",
            'Cast identity "abc"',
        ),
        "integer_builtin_functions": (
            "ABS (1)",
            "ABS (2)",
            "ABS (3)",
            "ABS overflow",
        ),
        "spec_examples": (
            "Case insensitive hops (1)",
            "Case insensitive hops (2)",
        ),
        "string_builtin_functions": (
            "LENGTH (1)",
            "LENGTH (2)",
            "LENGTH (3)",
            "LENGTH (4)",
            "CONCAT (1)",
            "CONCAT (2)",
            "CONCAT (3)",
            "CONCAT_WS (1)",
            "CONCAT_WS (2)",
            "CONCAT_WS (3)",
            "CONCAT_WS without arguments doesn't exist",
            "LOWER (1)",
            "LOWER (2)",
            "LOWER (3)",
            "UPPER (1)",
            "UPPER (2)",
            "UPPER (3)",
            "TRIM (1)",
            "TRIM (2)",
            "TRIM (3)",
            "TRIM (4)",
            "LEFT (1)",
            "LEFT (2)",
            "LEFT (3)",
            "LEFT (4)",
            "RIGHT (1)",
            "RIGHT (2)",
            "RIGHT (3)",
            "RIGHT (4)",
            "SUBSTRING (1)",
            "SUBSTRING (2)",
            "SUBSTRING (3)",
            "SUBSTRING (4)",
            "SUBSTRING (5)",
            "SUBSTRING (6)",
            "SUBSTRING (7)",
            "SUBSTRING (8)",
            "SUBSTRING (9)",
            "SUBSTRING (10)",
            "SUBSTRING (11)",
            "SUBSTRING (12)",
            "SUBSTRING (13)",
        ),
    },
    "a timestamp, which is no attribute type here": {
        "context_attributes_access": ("Timestamp type cohercion to string",),
    },
    "EXISTS: write IS NOT NULL": {
        "exists_expression": (
            "required attributes always exist",
            "optional attribute available",
            "optional attribute absent",
            "optional attribute absent (negated)",
            "optional extension available",
            "optional extension absent",
            "optional extension absent (negated)",
        ),
        "spec_examples": ("Subject exists",),
    },
    "a string in double quotes": {
        "in_expression": (
            "string in string set",
            "string not in string set",
            "mix literals and identifiers (3)",
        ),
        "literals": (
            "String literal double quoted",
            "String literal double quoted with case",
            "Escaped string literal (2)",
        ),
        "spec_examples": ("Missing attribute (1)",),
    },
    "a backslash before an ordinary character in LIKE, which Spark refuses too": {
        "like_expression": ("Exact match (2)",),
    },
    "an escape in a string: write a quote twice": {
        "literals": ("Escaped string literal (1)",),
    },
}


@cache
def kit() -> dict[str, dict[str, Any]]:
    """All cases: "file: name" -> case; a name that occurs twice in a file gets a number."""
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    cases: dict[str, dict[str, Any]] = {}
    with tarfile.open(KIT) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            if member.name.endswith(".yaml"):
                content = archive.extractfile(member)
                assert content is not None
                for case in yaml.safe_load(content.read())["tests"]:
                    key = f"{Path(member.name).stem}: {case['name']}"
                    while key in cases:
                        key += " again"
                    cases[key] = case
    return cases


def verdict(case: dict[str, Any]) -> tuple[bool, bool]:
    """(matches here, matches by the kit); ConditionError when we do not understand it."""
    event = case.get("event") or {**DEFAULT_EVENT, **case.get("eventOverrides", {})}
    expression, result = str(case["expression"]), case.get("result")
    if isinstance(result, bool):
        return evaluate(parse_condition(expression), event) is True, result
    literal = "'" + result.replace("'", "''") + "'" if isinstance(result, str) else str(result)
    matches = evaluate(parse_condition(f"({expression}) = {literal}"), event) is True
    # With an error the result is a default, which must not be ours: a failed calculation is NULL and equals nothing.
    return matches, "error" not in case


def outside() -> dict[str, str]:
    """Case -> the reason why it is not in our language."""
    return {
        f"{file}: {name}": reason
        for reason, files in OUTSIDE.items()
        for file, names in files.items()
        for name in names
    }


def test_every_case_is_inside_or_listed_with_its_reason() -> None:
    listed = outside()
    assert len(listed) == sum(len(names) for files in OUTSIDE.values() for names in files.values()), "listed twice"
    assert set(listed) <= set(kit()), "listed, but not in the kit"
    inside = set(kit()) - set(listed)
    assert len(inside) + len(listed) == len(kit()) and len(inside) > len(listed)
    for key in sorted(inside):
        case = kit()[key]
        if case.get("error") == "parse":
            with pytest.raises(ConditionError):
                parse_condition(str(case["expression"]))
        else:
            ours, theirs = verdict(case)
            assert ours == theirs, key


def test_no_case_is_listed_that_could_be_run() -> None:
    for key in outside():
        try:
            ours, theirs = verdict(kit()[key])
        except ConditionError:
            continue
        assert ours != theirs, key

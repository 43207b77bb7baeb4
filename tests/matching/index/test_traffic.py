"""matching/index/traffic.py: how selective a predicate is expected to be, without and with a sample."""

from __future__ import annotations

import pytest

from headgate.matching.index import parts_of
from headgate.matching.index.anchors import anchors
from headgate.matching.index.columns import Columns
from headgate.matching.index.traffic import Traffic
from headgate.matching.language import parse_condition
from headgate.matching.limits import SAMPLED_ATTRIBUTES_MAX, SAMPLED_ROWS_INTERVAL, SAMPLED_VALUES_MAX


def share(traffic: Traffic, text: str, keys_in_use: int = 0) -> float:
    (anchor,) = anchors(parts_of(parse_condition(text)))
    return traffic.share(anchor, keys_in_use)


def sampled(**values: list[object]) -> Traffic:
    traffic = Traffic()
    for number in range(len(next(iter(values.values())))):
        columns = Columns({name: [column[number]] for name, column in values.items()}, 1)  # type: ignore[list-item]
        for name in values:
            assert columns[name] is not None
        traffic.note(range(1), columns)
    return traffic


def test_without_a_sample_few_keys_of_many_are_the_most_selective() -> None:
    traffic = Traffic()
    guesses = [
        share(traffic, "a = 1", 1000),
        share(traffic, "a IN (1, 2, 3)", 1000),
        share(traffic, "a LIKE 'abc%'"),
        share(traffic, "a = 1", 0),
        share(traffic, "a BETWEEN 1 AND 2"),
        share(traffic, "a > 1"),
    ]
    assert guesses == sorted(guesses) and len(set(guesses)) == len(guesses) and guesses[-1] < 1


@pytest.mark.parametrize("text", ["a = 'x'", "a IN ('x', 'z')", "a LIKE 'x%'"])
def test_a_sample_corrects_the_guess(text: str) -> None:
    common = sampled(a=["x"] * 60)
    rare = sampled(a=["y"] * 60)
    assert share(common, text, 1000) > 0.9 and share(rare, text, 1000) < 0.05


def test_ranges_and_bools_are_counted_in_the_sample() -> None:
    traffic = sampled(a=[float(i) for i in range(60)], b=[True] * 60)
    assert share(traffic, "a BETWEEN 0 AND 29") == pytest.approx(0.5, abs=0.05)
    assert share(traffic, "b") > 0.9 and share(traffic, "NOT b") < 0.1 and share(traffic, "b = 1") < 0.1


def test_the_sample_is_bounded_and_follows_the_traffic() -> None:
    traffic = sampled(a=["old"] * 100 + ["new"] * SAMPLED_VALUES_MAX)
    assert share(traffic, "a = 'old'", 1000) < 0.01


def test_the_attributes_of_the_sample_are_bounded() -> None:
    traffic = sampled(a=["x"])
    for number in range(SAMPLED_ATTRIBUTES_MAX):
        columns = Columns({f"b{number}": [1]}, 1)
        assert columns[f"b{number}"]
        traffic.note(range(1), columns)
    assert share(traffic, "a = 'x'", 10) == 0.1 and share(traffic, "b7 = 1", 10) > 0.1


def test_one_row_in_a_thousand_is_due() -> None:
    traffic = Traffic()
    due = sum(traffic.due(100) for _ in range(SAMPLED_ROWS_INTERVAL))
    assert 0.8 * 100 < due < 1.1 * 100
    traffic.hurry()
    assert any(traffic.due(SAMPLED_ROWS_INTERVAL // 8) for _ in range(2))

"""matching/topics/masks.py: the default table. It agrees with the others: test_topic_table.py."""

from __future__ import annotations

import pytest

from headgate.matching.limits import TOPIC_MASKS_MAX
from headgate.matching.topics import Pattern, TopicMasks

ALL_MASKS = [Pattern(("s", *("*" if mask >> bit & 1 else "x" for bit in range(8)))) for mask in range(256)]


def test_masks_beyond_the_bound_go_to_the_tree_and_are_found_there() -> None:
    table: TopicMasks[Pattern] = TopicMasks()
    for pattern in ALL_MASKS:
        table.put(pattern, pattern)
    assert len(table._streams["s"]) == TOPIC_MASKS_MAX and table._rest
    assert set(table.resolve("s/" + "/".join("x" * 8))) == set(ALL_MASKS)
    assert table.resolve("s/" + "/".join("y" * 8)) == [ALL_MASKS[255]]
    for pattern in ALL_MASKS:
        assert table.get(pattern) is pattern
        table.remove(pattern)
        assert table.get(pattern) is None
        with pytest.raises(KeyError):
            table.remove(pattern)
    assert not table._streams and not table._rest


def test_a_pattern_that_overflowed_is_not_shadowed_by_a_mask_that_came_free() -> None:
    table: TopicMasks[Pattern] = TopicMasks()
    for pattern in ALL_MASKS:
        table.put(pattern, pattern)
    table.remove(ALL_MASKS[0])
    late = Pattern(("s", "*", "z"))
    table.put(late, late)
    table.remove(ALL_MASKS[200])
    twin = Pattern(("s", *("y" if level == "x" else level for level in ALL_MASKS[201].levels[1:])))
    table.put(twin, twin)
    assert table.get(late) is late and table.get(twin) is twin and table.get(ALL_MASKS[201]) is ALL_MASKS[201]
    table.remove(ALL_MASKS[201])
    assert table.get(twin) is twin

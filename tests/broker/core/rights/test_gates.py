"""Gates: what is asked of all events of one topic at once is what is asked of each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.rights import Policy, read_roles
from headgate.matching import evaluate, parse_condition
from headgate.protocol.data import make_batch

CONDITIONS = ["", "p > 1", "NOT p > 1", "p IS NULL OR s = 'O'", "s = 'O' AND p < 9", "`#level/1` = 'a'", "1 = 1"]
GRANTS = st.lists(st.tuples(st.sampled_from(["q", "q/a", "q/b"]), st.sampled_from(CONDITIONS)), max_size=3)
ROWS = st.lists(st.tuples(st.sampled_from([None, 0, 2, 9]), st.sampled_from([None, "O", "X"])), min_size=1, max_size=40)


def table(rows: Any) -> list[dict[str, str]]:
    return [{"pattern": pattern, **({"where": where} if where else {})} for pattern, where in rows]


def holds(where: str, topic: str, row: Any) -> bool | None:
    if not where:
        return True
    level = topic.split("/")[1:2]
    values = {"p": row[0], "s": row[1], "#level/1": level[0] if level else None}
    return evaluate(parse_condition(where), values)  # type: ignore[return-value]


@pytest.mark.slow
@given(GRANTS, GRANTS, ROWS, st.sampled_from(["q", "q/a", "q/b/c"]), st.booleans())
def test_at_once_and_one_by_one(allowed: Any, denied: Any, rows: Any, topic: str, listed: bool) -> None:
    said = {"publish": table(allowed), "deny": {"publish": table(denied)}}
    rights = Policy({}, read_roles({"roles": {"r": said}})).rights_of("ann", ("r",))
    assert rights is not None
    topics = [topic] * len(rows) if listed else [topic]
    columns = {"p": [row[0] for row in rows], "s": [row[1] for row in rows]}
    batch = make_batch(topics, columns, [b""] * len(rows), interest=[])

    def may(row: Any) -> bool:
        at = [one for one in allowed if one[0] == topic or topic.startswith(f"{one[0]}/")]
        against = [one for one in denied if one[0] == topic or topic.startswith(f"{one[0]}/")]
        return any(holds(one[1], topic, row) is True for one in at) and all(
            holds(one[1], topic, row) is False for one in against
        )

    assert rights.unpublishable(batch) == [place for place, row in enumerate(rows) if not may(row)]

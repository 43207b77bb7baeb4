"""Schema changes: merged as RFC 7396 has it, told key by key, and never from stored to memory by silence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.clients.schema_changes import changed_schema, changes_of, defaults_of
from headgate.broker.core.delivery import check_settings, read_settings
from headgate.broker.core.keyspace.keys import CELLS_DEFAULT, CELLS_MAX
from headgate.broker.core.placement.planner import declared
from headgate.protocol.errors import Refused

PRICE, SIZE = {"type": "float", "min": 0, "max": 10, "precision": 0.5}, {"type": "int"}


@pytest.mark.parametrize(
    ("before", "given_", "after"),
    [
        (None, {"audit": True}, {"audit": True}),
        ({"placement": "counting"}, {"verify": True}, {"placement": "counting", "verify": True}),
        ({"placement": "counting"}, {"placement": None}, {}),
        ({"attributes": {"a": PRICE}}, {"attributes": {"b": SIZE}}, {"attributes": {"a": PRICE, "b": SIZE}}),
        ({"attributes": {"a": PRICE}}, {"attributes": {"a": SIZE}}, {"attributes": {"a": SIZE}}),
        ({"attributes": {"a": PRICE, "b": SIZE}}, {"attributes": {"a": None}}, {"attributes": {"b": SIZE}}),
        ({"attributes": {"a": PRICE}, "audit": True}, {"attributes": None}, {"audit": True}),
        ({"durability": "stored", "retention_seconds": 5}, {"retention_seconds": None}, {"durability": "stored"}),
        ({"audit": True}, {"audit": False}, {"audit": False, "durability": "stored"}),
        ({"audit": True}, {"audit": False, "durability": "memory"}, {"audit": False, "durability": "memory"}),
    ],
)
def test_a_put_is_merged(before: Any, given_: dict[str, Any], after: dict[str, Any]) -> None:
    assert changed_schema("quotes", before, given_, replace=False) == after
    check_settings(after)


def test_replacing_forgets_what_was() -> None:
    before = {"attributes": {"a": PRICE}, "placement": "counting"}
    assert changed_schema("quotes", before, {"attributes": {"b": SIZE}}, replace=True) == {"attributes": {"b": SIZE}}
    with pytest.raises(Refused, match="stream quotes is stored"):
        changed_schema("quotes", {"audit": True}, {}, replace=True)


_SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "durability": st.sampled_from(["stored", "memory"]),
        "audit": st.booleans(),
        "placement": st.sampled_from(["counting", "anchored"]),
        "attributes": st.dictionaries(st.sampled_from("abc"), st.sampled_from([PRICE, SIZE])),
    },
)


@given(_SCHEMAS, _SCHEMAS, st.booleans())
def test_what_changed_is_all_that_changed(before: dict[str, Any], given_: dict[str, Any], replace: bool) -> None:
    try:
        after = changed_schema("quotes", before, given_, replace)
    except Refused:
        return
    assert read_settings(after).stored or not read_settings(before).stored or given_["durability"] == "memory"
    changed = changes_of(before, after)
    named = {**given_, **{f"attributes.{name}": one for name, one in given_.get("attributes", {}).items()}}
    assert replace or changed.keys() <= {*named, "durability"}
    undone = changed_schema("quotes", after, {**before, "durability": before.get("durability", "memory")}, replace=True)
    assert changes_of(after, undone).keys() >= changed.keys() - {"durability"}


@pytest.mark.parametrize(
    ("entry", "precision"),
    [
        ({"type": "float", "min": 0, "max": 1000}, 1000 / CELLS_DEFAULT),
        ({"type": "float", "min": -1.5, "max": 0.5}, 2 / CELLS_DEFAULT),
        ({"type": "int", "min": 0, "max": 1000}, 1),
        ({"type": "int", "min": 0, "max": 2**60}, 2**40),
        ({"type": "int", "min": 0, "max": CELLS_MAX - 2}, 1),
        ({"type": "float", "min": 0, "max": 10, "precision": 0.5}, None),
        ({"type": "float", "min": 0}, None),
        ({"type": "string", "min": 0, "max": 1}, None),
        ({"type": "float"}, None),
    ],
)
def test_a_range_without_a_precision_has_one_and_says_so(entry: dict[str, Any], precision: float | None) -> None:
    schema = {"attributes": {"price": entry}}
    assert defaults_of(schema) == ({"attributes": {"price": {"precision": precision}}} if precision else {})
    if precision is not None:
        domain = declared("quotes", schema, "price")
        assert domain is not None and domain.precision == precision
    assert defaults_of(None) == defaults_of({"attributes": [1]}) == defaults_of({"attributes": {"a": 1}}) == {}

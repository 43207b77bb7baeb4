"""Asking: what is looked for in documents, cut at the ends of sections; beside the plain rule, by position."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.durable import DurableState, Place, Section
from headgate.broker.core.durable.asking import Asking
from headgate.broker.core.durable.limits import ASKED_BYTES_MAX
from headgate.broker.core.durable.runs import runs_of

ANN, BOB = Place("ann", 1), Place("bob", 1)
CONDITIONS = {"": [], "price > 1": [], "XPATH 'a'": ["a"], "XPATH 'b' AND XPATH 'a'": ["a", "b"], "XPATH 'c'": ["c"]}


@st.composite
def states(draw: st.DrawFn) -> DurableState:
    ends = st.dictionaries(st.sampled_from([ANN, BOB]), st.integers(0, 20))
    conditions = st.sampled_from(list(CONDITIONS))
    sections = draw(st.lists(st.builds(Section, conditions, ends), max_size=4))
    return DurableState("s", condition=draw(conditions), sections=tuple(sections))


@given(states(), st.sampled_from([ANN, BOB]), st.lists(st.integers(0, 25), min_size=1, unique=True).map(sorted))
def test_every_position_is_looked_at_by_all_that_it_was_selected_by(
    state: DurableState, place: Place, positions: list[int]
) -> None:
    found = []
    for asked, runs in Asking(state).parts(place, runs_of(positions)):
        assert runs and len(dict.fromkeys(asked)) == len(asked)
        found += [(position, sorted(asked)) for run in runs for position in range(*run)]
    wanted = []
    for position in positions:
        conditions = [state.condition, *(one.condition for one in state.sections if position < one.ends.get(place, 0))]
        wanted.append((position, sorted({twig for condition in conditions for twig in CONDITIONS[condition]})))
    assert found == wanted


def test_nothing_is_cut_where_nothing_is_asked() -> None:
    state = DurableState("s", condition="price > 1", sections=(Section("price > 0", {ANN: 3}),))
    asking = Asking(state)
    assert not asking.is_any and asking != Asking(DurableState("s", condition="XPATH 'a'"))
    assert Asking(DurableState("s", sections=(Section("XPATH 'a'", {ANN: 3}),))).is_any
    assert list(asking.parts(ANN, [(0, 9)])) == [((), [(0, 9)])]


def test_more_than_a_client_can_be_told_does_not_fit() -> None:
    long = "/".join(["n" * 200] * 15)
    conditions = [f"XPATH '{name}/{long}'" for name in "abcdef"]
    assert Asking(DurableState("s", condition=conditions[0])).fits
    assert Asking(DurableState("s", condition=conditions[0], sections=(Section(conditions[0], {ANN: 1}),) * 9)).fits
    every = tuple(Section(condition, {ANN: 1}) for condition in conditions)
    assert len(conditions[0]) * len(conditions) > ASKED_BYTES_MAX
    assert not Asking(DurableState("s", sections=every)).fits

"""Standing: when a broker may take keys for its own, for each way of having come."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.core.cluster.address_book import AddressBook
from headgate.broker.core.cluster.serving import Serving
from headgate.broker.core.config import NodeConfig
from headgate.broker.core.kv import View
from headgate.broker.core.limits import ALONE_SECONDS, STILL_SECONDS
from headgate.broker.core.membership import Chord, ChordConfig, member_of

ME = member_of("anna", 1, "anna:1")


class Stage:
    def __init__(self, *seeds: str) -> None:
        config = NodeConfig("anna", 1, seeds=seeds)
        self.address_book = AddressBook()
        self.serving = Serving(ME.identifier, config, self.address_book, 0.0)
        self.chord = Chord(ME, seeds, ChordConfig(), Random(1), 0.0)

    def view(self, now: float, *others: int, linked: bool = False) -> View | None:
        predecessor = others[-1] if others else None
        view = self.serving.view(self.chord, predecessor, list(others), linked, now)
        if view is not None:
            self.serving.last = view
        return view

    def serves(self, now: float, *others: int) -> bool:
        view = self.view(now, *others)
        assert view is not None
        return view.serving


def test_who_never_heard_of_anybody_answers_for_everything_at_once() -> None:
    stage = Stage()
    assert stage.serving.before() == View(ME.identifier, ME.identifier, (), True, True)
    stage.serving.begin(10.0)
    view = stage.view(10.0)
    assert view is not None
    assert (view.serving, view.certain, view.after) == (True, True, ME.identifier)


@pytest.mark.parametrize("how", ["seeds", "contacts"])
def test_who_knows_of_others_asks_for_them_first(how: str) -> None:
    stage = Stage(*(["bert:1"] if how == "seeds" else []))
    if how == "contacts":
        stage.address_book.remember(["bert:1"])
    assert not stage.serving.before().serving
    stage.serving.begin(10.0)
    assert not stage.serves(10.0)
    assert not stage.serves(10.0 + ALONE_SECONDS - 0.01)
    view = stage.view(10.0 + ALONE_SECONDS)
    assert view is not None
    assert (view.serving, view.certain) == (True, False)


def test_who_is_told_only_of_itself_is_a_founder_as_if_it_had_been_told_of_nobody() -> None:
    stage = Stage("anna:1", "anna:1")
    stage.address_book.own = "anna:1"
    assert stage.serving.founder()
    view = stage.view(0.0)
    assert view is not None and (view.serving, view.certain) == (True, True)
    stage.address_book.remember(["bert:1"])
    assert not stage.serving.founder()


def test_who_is_refused_does_not_take_itself_for_alone_but_goes_on_when_it_was() -> None:
    stage = Stage("bert:1")
    stage.serving.begin(0.0)
    late = ALONE_SECONDS + 1.0
    view = stage.serving.view(stage.chord, None, [], False, late, refused=True)
    assert view is not None and not view.serving
    assert stage.serves(late)
    view = stage.serving.view(stage.chord, None, [], False, late, refused=True)
    assert view is not None and view.serving


def test_while_there_is_a_link_nobody_is_alone() -> None:
    stage = Stage("bert:1")
    stage.serving.begin(0.0)
    assert stage.view(100.0, linked=True) is None


def test_a_newcomer_looks_round_before_it_answers_and_anew_when_it_sees_somebody_else() -> None:
    stage = Stage("bert:1")
    stage.serving.begin(0.0)
    assert not stage.serves(1.0, 5)
    assert not stage.serves(1.0 + STILL_SECONDS - 0.01, 5, 7)
    assert not stage.serves(1.0 + 2 * STILL_SECONDS - 0.02, 5, 7)
    assert stage.serves(1.0 + 2 * STILL_SECONDS, 5, 7)
    assert stage.serves(1.1 + 2 * STILL_SECONDS, 7), "who answers goes on when somebody leaves"


def test_siblings_come_first_and_then_who_is_further_on() -> None:
    stage = Stage("bert:1")
    view = stage.view(0.0, 1, 2, 3, 4)
    assert view is not None
    assert (view.after, view.siblings, view.further) == (4, (1, 2), (3, 4))

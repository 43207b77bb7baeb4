"""Walks: the member before a place is found with any hints, and past the dead."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import between
from headgate.broker.core.membership import Letter, Member, SuccessorList
from headgate.broker.core.membership.config import WALK_HOPS_MAX
from headgate.broker.core.membership.lookup import Lookup
from headgate.broker.core.membership.members import RING_TOP, after, ideal
from headgate.broker.core.membership.messages import Seen
from tests.support.chord_parts import at, new_identity

PLACES = (100, 200, 300, 400, 500, 600, 700, 800)


def play(
    walk: Lookup, lists: dict[Member, SuccessorList], hints: dict[Member, tuple[Member, ...]], dead: tuple[Member, ...]
) -> None:
    """Answer for every living member; time passes for the dead."""
    now = 0.0
    identity = walk._identity
    while not walk.over:
        asked, identity.effects = identity.effects, []
        number = walk.number
        for effect in asked:
            member = next((one for one in lists if one.address == effect.address), None)  # type: ignore[union-attr]
            if member is not None and member not in dead:
                body = Seen(walk.number, lists[member], hints.get(member, ()))
                walk.saw(Letter(member, None, body), body, now)
        if walk.number == number:
            now += 1.0
            walk.wake(now)


def ring_of(places: tuple[int, ...]) -> dict[Member, SuccessorList]:
    return {member: pointers[1] for member, pointers in ideal([at(place) for place in places], 3).items()}


def test_the_member_before_a_place_is_found_with_its_list() -> None:
    identity = new_identity(450)
    walk = Lookup(identity, identity.me, "b600", (), 0.0)
    play(walk, ring_of(PLACES), {}, ())
    assert walk.found == at(400)
    assert walk.successors[0] == at(500)


@given(st.dictionaries(st.sampled_from(PLACES), st.lists(st.integers(0, 900), max_size=4)), st.integers(1, 99))
def test_any_hints_lead_to_the_same_member(wrong: dict[int, list[int]], offset: int) -> None:
    identity = new_identity(400 + offset)
    hints = {at(place): tuple(at(hint) for hint in offered) for place, offered in wrong.items()}
    walk = Lookup(identity, identity.me, "b500", (), 0.0)
    play(walk, ring_of(PLACES), hints, ())
    assert walk.found == at(400)


@given(st.sets(st.sampled_from(PLACES), max_size=2))
def test_the_dead_are_passed_over(dead: set[int]) -> None:
    identity = new_identity(450)
    start = next(place for place in PLACES if place > 450 and place not in dead)
    walk = Lookup(identity, identity.me, f"b{start}", (), 0.0)
    play(walk, ring_of(PLACES), {}, tuple(at(place) for place in sorted(dead)))
    assert walk.found == at(max(place for place in PLACES if place < 450 and place not in dead))


def test_the_top_may_be_ourselves() -> None:
    lists = ring_of((*PLACES, 900))
    identity = new_identity(900)
    own = lists.pop(at(900))
    walk = Lookup(identity, RING_TOP, identity.me, own, 0.0)
    assert (walk.found, walk.hops) == (at(900), 1)
    elsewhere = Lookup(identity, RING_TOP, "b300", own, 0.0)
    play(elsewhere, lists, {}, ())
    assert elsewhere.found == at(900)
    assert at(800) in elsewhere.shown()


def test_padding_is_nobody() -> None:
    identity = new_identity(450)
    walk = Lookup(identity, identity.me, "b400", (), 0.0)
    play(walk, {at(400): (after(at(400)), after(at(420)))}, {}, ())
    assert walk.found == at(400)


def test_a_walk_that_nobody_answers_comes_to_nothing() -> None:
    identity = new_identity(450)
    walk = Lookup(identity, identity.me, "b400", (), 0.0)
    play(walk, {}, {}, ())
    assert walk.failed and walk.found is None


def test_a_walk_by_lists_takes_no_hints() -> None:
    identity = new_identity(850)
    walk = Lookup(identity, identity.me, "b100", (), 0.0, takes_hints=False)
    play(walk, ring_of(PLACES), {at(100): (at(800),)}, ())
    assert walk.found == at(800) and walk.hops == 4
    quick = Lookup(identity, identity.me, "b100", (), 0.0)
    play(quick, ring_of(PLACES), {at(100): (at(800),)}, ())
    assert quick.found == at(800) and quick.hops == 2


def test_a_liar_cannot_keep_a_walk_going_for_ever() -> None:
    identity = new_identity(0)
    walk = Lookup(identity, identity.me, "b1", (), 0.0)
    place = 1
    while not walk.over:
        body = Seen(walk.number, (at(place + 1),))
        walk.saw(Letter(at(place), None, body), body, 0.0)
        place += 1
    assert walk.failed and walk.hops == WALK_HOPS_MAX + 1
    assert between(at(1), at(place), at(0))

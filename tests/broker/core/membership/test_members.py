"""Members and successor lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import between, hash_identifier
from headgate.broker.core.membership import Member, adopted, member_of
from headgate.broker.core.membership.members import RING_TOP, after, ideal, without_head

lives = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda pair: Member(*pair))


def test_a_member_is_the_hash_of_its_name_in_one_life() -> None:
    member = member_of("broker-1", 7, "10.0.0.1:7401")
    assert (member.identifier, member.incarnation, member.address) == (hash_identifier("broker-1"), 7, "10.0.0.1:7401")
    assert str(member) == "10.0.0.1:7401/7"
    assert str(after(member)) == f"{member.identifier:016x}/7+1"


@given(lives, lives)
def test_nobody_lies_between_a_member_and_the_padding_after_it(last: Member, other: Member) -> None:
    assert not between(last, other, after(last))
    assert after(last).artificial and after(after(last)) > after(last)


def test_the_next_life_comes_directly_after_the_last_and_its_padding() -> None:
    first, second, neighbour = Member(5, 1), Member(5, 2), Member(6, 0)
    assert first < after(after(first)) < second < neighbour


@given(lives)
def test_the_top_of_the_ring_is_before_every_member(member: Member) -> None:
    assert member > RING_TOP


def test_lists_keep_their_length() -> None:
    a, b, c, d = (Member(number, 1) for number in range(4))
    assert adopted(a, (b, c, d)) == (a, b, c)
    assert without_head((b, c, d)) == (c, d, after(d))
    assert without_head(without_head((b, c))) == (after(c), after(after(c)))


def test_the_ideal_ring_by_example() -> None:
    a, b, c = (Member(number, 1) for number in (10, 20, 30))
    assert ideal([c, a, b], 2) == {a: (c, (b, c)), b: (a, (c, a)), c: (b, (a, b))}

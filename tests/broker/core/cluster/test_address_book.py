"""Address book: told, met, forgotten, remembered; nobody who is nonsense, and nobody who is oneself."""

from __future__ import annotations

from headgate.broker.core.cluster.address_book import AddressBook
from headgate.broker.core.keyspace import MESH_BROKERS_MAX
from headgate.broker.core.limits import CONTACTS_KEPT_MAX, STRANGER_SECONDS


def test_who_is_told_of_is_known_for_a_while() -> None:
    some = AddressBook()
    some.own = "a:1"
    assert some.nobody()
    some.told(["a:1", "b:1"], 10.0)
    assert list(some.known) == ["b:1"]
    assert not some.nobody()
    some.forget_strangers(10.0 + STRANGER_SECONDS)
    assert list(some.known) == ["b:1"]
    some.forget_strangers(10.1 + STRANGER_SECONDS)
    assert some.nobody()


def test_a_second_meeting_is_told_from_the_first() -> None:
    some = AddressBook()
    assert not some.met("b:1", 1.0)
    assert some.met("b:1", 2.0)


def test_a_liar_cannot_fill_the_memory() -> None:
    some = AddressBook()
    for start in range(0, 10_000, MESH_BROKERS_MAX):
        some.told([f"x:{number}" for number in range(start, start + MESH_BROKERS_MAX)], 0.0)
    assert len(some.known) <= MESH_BROKERS_MAX * 4


def test_contacts_are_kept_when_they_change_and_the_present_go_first() -> None:
    some = AddressBook()
    some.own = "a:1"
    assert some.new_contacts(["a:1"]) is None
    assert some.new_contacts(["b:1"]) == ["b:1"]
    assert some.new_contacts(["b:1"]) is None
    assert some.new_contacts(["c:1"]) == ["c:1", "b:1"]
    many = [f"x:{number}" for number in range(CONTACTS_KEPT_MAX)]
    assert some.new_contacts(many) == many
    some.remember(["b:1", 7])
    assert some.contacts == ("b:1",)

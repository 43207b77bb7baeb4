"""Who may be linked: nothing speaks against a stranger of the same cluster, and every objection says what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.broker.core.delivery import ClientSession
from headgate.broker.core.keyspace import hash_identifier
from headgate.broker.core.links import PeerInfo
from headgate.broker.core.links import greeting as module
from headgate.broker.core.links.greeting import is_same_broker, objection, objection_to_founder
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import PEER_VERSION, Peer, Scope

MINE = Peer(PEER_VERSION, "ann", 3, "ann:1", "ann:2", "headgate", False, {"replicas": 2, "list_length": 4})
THEIRS = replace(MINE, name="bob", life=7, address="bob:1", client_address="bob:2")


def known(name: str = "bob", life: int = 7, address: str = "bob:1") -> PeerInfo:
    session = ClientSession(b"key", name, None, 0, 0)
    return PeerInfo(name, hash_identifier(name), life, address, "", session)


def test_a_stranger_of_the_same_cluster_and_an_old_acquaintance_are_welcome() -> None:
    for before in (None, known(), known(life=6), known(life=6, address="elsewhere:1")):
        assert objection(MINE, THEIRS, before) is None


@pytest.mark.parametrize(
    ("theirs", "before", "code", "words"),
    [
        (replace(THEIRS, name=""), None, ErrorCode.PROTOCOL, ["says its name"]),
        (replace(THEIRS, address=""), None, ErrorCode.PROTOCOL, ["the address where"]),
        (
            replace(THEIRS, name="ann"),
            None,
            ErrorCode.DUPLICATE,
            ["two brokers are named ann", "ann:1", "bob:1", "--name"],
        ),
        (THEIRS, known(address="two:1"), ErrorCode.DUPLICATE, ["two brokers are named bob", "two:1", "bob:1"]),
        (
            THEIRS,
            replace(known(life=6, address="two:1"), link=5),
            ErrorCode.DUPLICATE,
            ["two brokers are named bob", "two:1", "bob:1", "life 6 is linked", "life 7 may take its place"],
        ),
        (
            THEIRS,
            replace(known(life=6), link=5),
            ErrorCode.DUPLICATE,
            ["two brokers are named bob", "life 6 is linked", "life 7 may take its place"],
        ),
        (
            replace(THEIRS, cluster="staging", fingerprint={}),
            None,
            ErrorCode.OTHER_CLUSTER,
            ["ann is of the cluster 'headgate'", "bob at bob:1 of 'staging'", "--cluster", "--join"],
        ),
        (THEIRS, known(life=8), ErrorCode.DUPLICATE, ["bob is known here in life 8, and this is life 7"]),
        (THEIRS, known(name="eve"), ErrorCode.DUPLICATE, ["bob and eve have the same place"]),
    ],
)
def test_an_objection_names_both_sides(
    theirs: Peer, before: PeerInfo | None, code: ErrorCode, words: list[str]
) -> None:
    error = objection(MINE, theirs, before)
    assert error is not None and (error.code, error.scope) == (code, Scope.CONNECTION)
    assert all(word in error.text for word in words), error.text


@pytest.mark.parametrize(
    ("fingerprint", "words"),
    [
        ({"replicas": 3, "list_length": 4}, ["the same replicas", "ann has 2", "bob has 3"]),
        ({"replicas": 2.0, "list_length": 4}, ["the same replicas", "bob has 2.0"]),
        ({"replicas": 2}, ["the same list_length", "ann has 4", "bob has None"]),
        ({"replicas": 2, "list_length": 4, "more": "x"}, ["the same more", "ann has None", "bob has 'x'"]),
    ],
)
def test_a_setting_in_which_they_differ_is_named_with_both_values(
    fingerprint: dict[str, Any], words: list[str]
) -> None:
    error = objection(MINE, replace(THEIRS, fingerprint=fingerprint), None)
    assert error is not None and error.code == ErrorCode.MISMATCH
    assert all(word in error.text for word in words), error.text


def test_a_founder_is_not_taken_in_from_an_address_that_is_only_remembered() -> None:
    assert objection_to_founder(MINE, THEIRS, "bob:1") is None
    error = objection_to_founder(MINE, replace(THEIRS, founder=True), "bob:1")
    assert error is not None and error.code == ErrorCode.OTHER_CLUSTER
    assert all(word in error.text for word in ["bob was told to join nobody", "--join ann:1", "--cluster"]), error.text


def test_two_names_with_one_place_on_the_ring_cannot_be_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "hash_identifier", lambda name: 5)
    error = objection(MINE, THEIRS, None)
    assert error is not None and "bob and ann have the same place on the ring" in error.text


@pytest.mark.parametrize("field", ["name", "life", "address", "client_address"])
def test_only_ourselves_are_the_same_in_everything(field: str) -> None:
    assert is_same_broker(MINE, replace(MINE))
    assert not is_same_broker(MINE, replace(MINE, **{field: getattr(THEIRS, field)}))

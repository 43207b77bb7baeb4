"""Users, tokens and the door: what is kept of secrets, what changes hold, and what strangers may not find out."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from headgate.broker.daemon.access import (
    AccessError,
    Door,
    DoorLimits,
    Gatekeeper,
    Guest,
    NotLetIn,
    Token,
    User,
    UsersFile,
    hash_password,
    new_token,
)
from headgate.broker.daemon.security import proved_by
from tests.support.waiting import wait_until

ROLES = '[roles.trader]\nsubscribe = [{ pattern = "quotes" }]\n'
HASH = hash_password("correct horse")
SOON = DoorLimits(failure_seconds=0.0)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A file of users, ann with a password and bob without, and one of roles."""
    users, roles = tmp_path / "users.toml", tmp_path / "roles.toml"
    roles.write_text(ROLES)
    with UsersFile(users).changing() as known:
        known["ann"] = User(HASH, ["trader"])
        known["bob"] = User("", ["trader", "gone"], ["cn:bob", "dns:bob.example"])
    return users, roles


async def asked(door: Door, credentials: str, proved: tuple[str, ...] = (), address: str = "1.2.3.4:5") -> Any:
    """What the door says."""
    found: asyncio.Future[Guest | NotLetIn] = asyncio.get_running_loop().create_future()
    door.verify(credentials, proved, address, found.set_result)
    return await asyncio.wait_for(found, 30)


def test_what_is_written_is_read_and_no_secret_is_in_it(files: tuple[Path, Path]) -> None:
    token, number, digest = new_token()
    with UsersFile(files[0]).changing() as users:
        users["ann"].tokens[number] = Token(digest, 2_000_000_000.0)
    users, data = UsersFile(files[0]).read()
    assert users["ann"] == User(HASH, ["trader"], [], {number: Token(digest, 2_000_000_000.0)})
    assert users["bob"].certificates == ["cn:bob", "dns:bob.example"]
    assert token.split("_", 2)[2].encode() not in data and b"correct horse" not in data
    assert files[0].stat().st_mode & 0o777 == 0o600


def test_a_change_that_fails_leaves_the_file(files: tuple[Path, Path]) -> None:
    before = files[0].read_bytes()
    with pytest.raises(RuntimeError), UsersFile(files[0]).changing() as users:
        users.clear()
        raise RuntimeError
    assert files[0].read_bytes() == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[people.ann]\n", "nothing else"),
        ("[users.ann]\npasword = ''\n", "nothing else"),
        ("[users.'a:b']\n", "no name of a user"),
        ("[users.ann]\npassword = 'plain'\n", "no argon2id"),
        ("[users.ann]\nroles = 'trader'\n", "lists of texts"),
        ("[users.ann]\ncertificates = ['bob']\n", "dns:NAME"),
        ("[users.ann.tokens.aaaaaaaa]\nhash = 'x'\n", "has a hash"),
        ("[users.ann.tokens.aaaaaaaa]\nhash = '" + "0" * 64 + "'\nexpires = 7\n", "with its zone"),
        ("[users.a]\ncertificates=['cn:x']\n[users.b]\ncertificates=['cn:x']\n", "a certificate of"),
        ("[users", "not TOML"),
        ("\xff", "not TOML"),
    ],
)
def test_a_damaged_file_changes_nothing(text: str, words: str, files: tuple[Path, Path]) -> None:
    keeper = Gatekeeper(*files, time.time())
    policy = keeper.policy
    files[0].write_bytes(text.encode("latin-1"))
    with pytest.raises(AccessError, match=words):
        keeper.look(time.time())
    assert keeper.policy is policy and not keeper.look(time.time()), "it is told once"
    with pytest.raises(AccessError, match=words):
        Gatekeeper(*files, time.time())


def test_files_are_looked_at_and_tokens_end(files: tuple[Path, Path]) -> None:
    now = 1_000_000.0
    token, number, digest = new_token()
    with UsersFile(files[0]).changing() as users:
        users["ann"].tokens[number] = Token(digest, now + 10)
    keeper = Gatekeeper(*files, now)
    assert keeper.unknown_roles == ("gone",)
    version = keeper.policy.version
    assert keeper.token_of(token, now) == ("ann", f"token:{number}")
    assert keeper.policy.holds("ann", f"token:{number}")
    assert not keeper.look(now + 9)
    assert keeper.look(now + 10) and not keeper.look(now + 11)
    assert not keeper.policy.holds("ann", f"token:{number}") and keeper.token_of(token, now + 10) is None
    assert keeper.token_of(token[:-1] + ("A" if token[-1] != "A" else "B"), now) is None
    assert keeper.policy.version == version
    files[1].write_text(ROLES + "[roles.gone]\n")
    assert keeper.look(now) and keeper.policy.version != version and keeper.unknown_roles == ()


@pytest.mark.slow
async def test_the_door_knows_passwords_tokens_and_certificates(files: tuple[Path, Path]) -> None:
    token, number, digest = new_token()
    with UsersFile(files[0]).changing() as users:
        users["ann"].tokens[number] = Token(digest)
    door = Door(Gatekeeper(*files, time.time()), SOON)
    try:
        for _ in range(2):
            guest = await asked(door, "password ann:correct horse")
            assert guest.user == "ann" and door.keeper.policy.holds("ann", guest.credential)
        assert await asked(door, f"token {token}") == Guest("ann", f"token:{number}")
        assert await asked(door, "", ("dns:x", "cn:bob")) == Guest("bob", "certificate:cn:bob")
        refusals = {
            "password ann:wrong horse": "password",
            "password eve:correct horse": "password",
            "password bob:": "password",
            "token hg_aaaaaaaa_" + "x" * 43: "token",
            "token": "token",
            "password": "malformed",
            "password ann:" + "x" * 200: "malformed",
            "basic ann": "malformed",
            "": "nothing",
        }
        for credentials, kind in refusals.items():
            found = await asked(door, credentials)
            assert isinstance(found, NotLetIn) and found.kind == kind, credentials
        assert (await asked(door, "", ("cn:eve",))).kind == "certificate"
        wrong, nobody = [await asked(door, f"password {name}:wrong") for name in ("ann", "eve")]
        assert wrong == nobody, "the same words whether there is such a user or not"
        assert door.failures == {"password": 5, "token": 2, "malformed": 3, "nothing": 1, "certificate": 1}
    finally:
        door.close()


@pytest.mark.slow
async def test_a_changed_password_is_not_remembered(files: tuple[Path, Path]) -> None:
    door = Door(Gatekeeper(*files, time.time()), SOON)
    try:
        assert isinstance(await asked(door, "password ann:correct horse"), Guest)
        with UsersFile(files[0]).changing() as users:
            users["ann"].password = hash_password("another horse")
        door.keeper.look(time.time())
        assert isinstance(await asked(door, "password ann:correct horse"), NotLetIn)
        assert isinstance(await asked(door, "password ann:another horse"), Guest)
    finally:
        door.close()


@pytest.mark.slow
async def test_what_is_checked_at_a_time_is_bounded_by_address(files: tuple[Path, Path]) -> None:
    door = Door(Gatekeeper(*files, time.time()), DoorLimits(failure_seconds=0.0, waiting=3, waiting_per_address=2))
    try:
        said: list[Guest | NotLetIn] = []
        told: Callable[[Guest | NotLetIn], None] = said.append
        for address in ("1.1.1.1:1", "1.1.1.1:2", "1.1.1.1:3", "2.2.2.2:1", "3.3.3.3:1"):
            door.verify("password ann:correct horse", (), address, told)
        await wait_until(lambda: len(said) == 5, 30)
        assert sorted(isinstance(one, Guest) for one in said) == [False, False, True, True, True]
        assert all(one.busy for one in said if isinstance(one, NotLetIn))
    finally:
        door.close()


def test_strangers_of_an_address_are_counted(files: tuple[Path, Path]) -> None:
    door = Door(Gatekeeper(*files, time.time()), DoorLimits(strangers_per_address=2))
    try:
        assert [door.knock("1.1.1.1:1"), door.knock("1.1.1.1:2"), door.knock("1.1.1.1:3")] == [True, True, False]
        assert door.knock("[::1]:1")
        for port in (1, 2, 3):
            door.forget(f"1.1.1.1:{port}")
        assert door.knock("1.1.1.1:9")
    finally:
        door.close()


def test_of_a_certificate_the_exact_names_count() -> None:
    certificate = {
        "subject": ((("countryName", "GR"),), (("commonName", "ann"),)),
        "subjectAltName": (("DNS", "a.example"), ("email", "ann@x"), ("URI", "urn:ann"), ("IP Address", "1.1.1.1")),
    }
    assert proved_by(certificate) == ("dns:a.example", "email:ann@x", "uri:urn:ann", "cn:ann")
    assert proved_by({"subject": ((("commonName", "ann\0.evil"),),)}) == ()
    assert proved_by(None) == ()


def test_a_file_that_others_write_to_is_as_they_left_it(files: tuple[Path, Path]) -> None:
    os.chmod(files[0], 0o640)
    with UsersFile(files[0]).changing() as users:
        del users["bob"]
    assert files[0].stat().st_mode & 0o777 == 0o640
    assert list(UsersFile(files[0]).read()[0]) == ["ann"]


@pytest.mark.slow
async def test_how_long_it_takes_does_not_tell_whether_there_is_such_a_user(files: tuple[Path, Path]) -> None:
    door = Door(Gatekeeper(*files, time.time()), SOON)
    try:
        spent: dict[str, list[float]] = {"ann": [], "bob": [], "eve": []}
        for _ in range(7):
            for name, times in spent.items():
                began = time.process_time()
                assert isinstance(await asked(door, f"password {name}:wrong horse"), NotLetIn)
                times.append(time.process_time() - began)
        known, without, unknown = (median(times) for times in spent.values())
        assert 0.5 < unknown / known < 2 and 0.5 < without / known < 2
    finally:
        door.close()

"""`headgate user`, `token` and `role`: the files that brokers watch, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.broker.daemon.access import UsersFile
from headgate.ops.cli import main

ROLES = """
[roles.trader]
subscribe = [{ pattern = "quotes", where = "p > 1" }]
durable = ["t-*"]
[roles.op]
admin = true
"""


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the users are to be; `pw` beside it has a password."""
    for name in ("HEADGATE_PASSWORD", "HEADGATE_USERS", "HEADGATE_ROLES"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pw").write_text("correct horse\nsecond line\n")
    return tmp_path / "users.toml"


def user(users: Path, *words: str) -> int:
    return main(["user", *words, "--users", str(users)])


@pytest.mark.slow
def test_users_come_change_and_go(
    users: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    password = str(users.with_name("pw"))
    assert user(users, "add", "ann", "--roles", "trader,op", "--password-file", password) == 0
    assert user(users, "add", "web", "--roles", "trader", "--no-password", "--certificate", "cn:web") == 0
    assert user(users, "add", "ann", "--roles", "trader", "--password-file", password) == 1
    assert "already" in capsys.readouterr().err
    assert user(users, "list", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == {"user": "ann", "roles": ["trader", "op"], "password": True, "tokens": 0, "certificates": []}
    assert rows[1] == {"user": "web", "roles": ["trader"], "password": False, "tokens": 0, "certificates": ["cn:web"]}
    before = UsersFile(users).read()[0]["ann"].password
    monkeypatch.setenv("HEADGATE_PASSWORD", "another horse")
    assert user(users, "passwd", "ann") == 0
    assert UsersFile(users).read()[0]["ann"].password not in ("", before)
    assert user(users, "set", "ann", "--roles", "op") == 0
    assert UsersFile(users).read()[0]["ann"].roles == ["op"]
    assert user(users, "rm", "ann") == 0 and user(users, "rm", "ann") == 1
    assert list(UsersFile(users).read()[0]) == ["web"]


def test_what_is_missing_is_said(users: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert user(users, "add", "ann", "--roles", "trader") == 2
    assert "--password-file" in capsys.readouterr().err
    assert user(users, "add", "ann", "--no-password") == 2
    assert "--roles" in capsys.readouterr().err
    assert user(users, "add", "a:b", "--roles", "trader", "--no-password") == 1
    assert "no name of a user" in capsys.readouterr().err
    users.with_name("pw").write_text("short\n")
    assert user(users, "add", "bob", "--roles", "x", "--password-file", str(users.with_name("pw"))) == 0
    assert "easy to guess" in capsys.readouterr().err
    assert user(users, "rm", "bob") == 0
    users.with_name("pw").write_text("x" * 129)
    assert user(users, "add", "ann", "--roles", "x", "--password-file", str(users.with_name("pw"))) == 2
    assert "at most 128 bytes" in capsys.readouterr().err
    users.unlink()
    assert user(users, "list") == 1
    assert "headgate user add" in capsys.readouterr().err
    assert main(["user", "list"]) == 2
    assert "HEADGATE_USERS" in capsys.readouterr().err


@pytest.mark.slow
def test_tokens_are_shown_once_and_revoked(users: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert user(users, "add", "ann", "--roles", "trader", "--no-password") == 0
    made = []
    for span in ("90d", "never", "45s"):
        assert main(["token", "new", "ann", "--users", str(users), "--expires", span]) == 0
        made.append(capsys.readouterr().out.strip())
    assert all(one.startswith("hg_") and one not in users.read_text() for one in made)
    assert main(["token", "list", "--users", str(users), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(row["expires"] is None for row in rows) == [False, False, True]
    assert main(["token", "revoke", made[0].split("_")[1], "--users", str(users)]) == 0
    assert main(["token", "revoke", made[1], "--users", str(users)]) == 0
    assert main(["token", "revoke", made[1], "--users", str(users)]) == 1
    assert main(["token", "new", "eve", "--users", str(users)]) == 1
    assert main(["token", "new", "ann", "--users", str(users), "--expires", "soon"]) == 2
    assert main(["token", "new", "--users", str(users)]) == 2
    assert len(UsersFile(users).read()[0]["ann"].tokens) == 1


def test_roles_are_checked_and_told(users: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roles = users.with_name("roles.toml")
    roles.write_text(ROLES)
    assert main(["role", "check", "--roles", str(roles)]) == 0
    assert main(["role", "list", "--roles", str(roles)]) == 0
    told = capsys.readouterr().out
    assert "subscribe quotes WHERE `p` > 1" in told and "have durable t-*" in told and "administer" in told
    assert main(["role", "list", "--json", "--roles", str(roles)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[1])["admin"] is True
    roles.write_text("[roles.trader]\nsubscribed = []\n")
    assert main(["role", "check", "--roles", str(roles)]) == 1
    assert "role 'trader': there is no 'subscribed'" in capsys.readouterr().err
    assert main(["role", "check", "--roles", str(users)]) == 1
    assert main(["role", "check"]) == 2

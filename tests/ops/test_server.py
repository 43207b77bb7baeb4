"""Flag before environment before file before default; a client per verb, closed whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from headgate.broker.daemon import Settings
from headgate.ops.exits import UsageError
from headgate.ops.server import answer_of, server_address, until_answered, wait_seconds
from headgate.protocol.errors import ErrorCode, LocalError, Refused
from tests.ops.fakes import FakeClient, use_client


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "headgate.toml"
    path.write_text('server = "10.0.0.3:7400"\nlisten = "127.0.0.1:7400"\n')
    return path


def test_the_precedence(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.delenv("HEADGATE_CONFIG", raising=False)
    assert server_address(Namespace()) == "127.0.0.1:7400"
    assert server_address(Namespace(config=str(file))) == "10.0.0.3:7400"
    monkeypatch.setenv("HEADGATE_CONFIG", str(file))
    assert server_address(Namespace()) == "10.0.0.3:7400"
    monkeypatch.setenv("HEADGATE_SERVER", "10.0.0.2:7400")
    assert server_address(Namespace()) == "10.0.0.2:7400"
    assert server_address(Namespace(server="10.0.0.1:7400")) == "10.0.0.1:7400"


@pytest.mark.parametrize("name", ["SERVR", "SERVERS", "WAITS", "CONF"])
def test_a_misspelt_variable_is_told_before_anybody_is_called(name: str) -> None:
    environment = {"PATH": os.environ["PATH"], f"HEADGATE_{name}": "10.0.0.1:7400"}
    command = [sys.executable, "-m", "headgate.ops.cli", "pub", "a", "--server", "127.0.0.1:1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"HEADGATE_{name} is no setting: is HEADGATE_{name[:2]}" in done.stderr and "connect" not in done.stderr


def test_what_brokers_and_kubernetes_call_by_such_a_name_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *Settings.model_fields,
        "user",
        "server_port",
        "server_service_host",
        "service_port",
        "port_7400_tcp",
        "server_a",
        "server_url",
        "config_dir",
    ):
        monkeypatch.setenv(f"HEADGATE_{name.upper()}", "x")
    assert server_address(Namespace(server="10.0.0.1:7400")) == "10.0.0.1:7400"


@pytest.mark.parametrize(("text", "word"), [("server = 7400", "in quotes"), ("=", "not TOML")])
def test_a_bad_file_is_a_usage_error(file: Path, text: str, word: str) -> None:
    file.write_text(text)
    with pytest.raises(UsageError, match=word):
        server_address(Namespace(config=str(file)))


def test_how_long_to_wait(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.delenv("HEADGATE_CONFIG", raising=False)
    assert wait_seconds(Namespace()) == 0
    file.write_text("wait = 2.5")
    assert wait_seconds(Namespace(config=str(file))) == 2.5
    monkeypatch.setenv("HEADGATE_WAIT", "3")
    assert wait_seconds(Namespace(config=str(file))) == 3
    assert wait_seconds(Namespace(wait="10")) == 10
    client = use_client(monkeypatch, FakeClient({"status": {}}))
    answer_of(Namespace(verb="status"), "status")
    assert client.waits == (3, 30)
    answer_of(Namespace(verb="status", wait="60"), "status")
    assert client.waits == (60, 60)
    client.closed = False
    assert until_answered(Namespace(verb="audit", wait="0", server="h:1")) == "h:1" and not client.closed
    assert until_answered(Namespace(verb="audit", server="h:1")) == "h:1" and client.closed


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "soon", "1e9"])
def test_a_wait_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=f"--wait {text}: a number of seconds"):
        wait_seconds(Namespace(wait=text))


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        server_address(Namespace(config=str(tmp_path / "no")))


def test_a_bad_address_says_how_to_write_one() -> None:
    with pytest.raises(LocalError, match="write host:port"):
        server_address(Namespace(server="nowhere:port"))


def test_several_brokers_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    client = use_client(monkeypatch, FakeClient({"status": {}}))
    monkeypatch.setenv("HEADGATE_SERVER", "a:7400,b")
    answer_of(Namespace(verb="status"), "status")
    assert client.address == "a:7400,b"
    with pytest.raises(LocalError, match="one comma"):
        server_address(Namespace(server="a,,b"))


def test_a_question_is_asked_by_the_name_of_the_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    client = use_client(monkeypatch, FakeClient({"status": {"a": 1}}))
    assert answer_of(Namespace(verb="status", server="h:1"), "status", x=2) == {"a": 1}
    assert (client.address, client.name, client.asked) == ("h:1", "headgate status", [("status", {"x": 2})])
    assert client.closed


def test_a_refused_question_closes_the_client_too(monkeypatch: pytest.MonkeyPatch) -> None:
    client = use_client(monkeypatch, FakeClient({"status": Refused(ErrorCode.NOT_FOUND, "no")}))
    with pytest.raises(Refused):
        answer_of(Namespace(verb="status"), "status")
    assert client.closed

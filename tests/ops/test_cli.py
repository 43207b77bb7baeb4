"""The command as a whole: its verbs, where --server may stand, exit codes, no tracebacks, and a quick start."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace

import pytest

from headgate.ops import cli
from headgate.protocol.errors import ErrorCode, Refused
from tests.ops.fakes import FakeClient, no_broker, use_client


def test_the_verbs_of_the_contract_are_there() -> None:
    contract = "serve pub sub schema status ring streams durable dead subs logs top producers explain tree"
    contract += " demo bench simulate audit cert user token role completion"
    assert list(cli.VERBS) == contract.split()


@pytest.mark.parametrize(
    "words",
    [
        ["--server", "h:1", "status"],
        ["status", "--server", "h:1"],
        ["--server", "g:2", "status", "--server", "h:1"],
    ],
)
def test_the_server_may_stand_before_the_verb_or_after_it(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    client = use_client(monkeypatch, FakeClient({"status": {}}))
    assert cli.main(words) == 0
    assert client.address == "h:1"


@pytest.mark.parametrize(
    "words",
    [["status"], ["ring"], ["streams"], ["subs"], ["schema", "list"], ["explain", "a"], ["pub", "a"], ["sub", "a"]],
)
def test_every_verb_waits(monkeypatch: pytest.MonkeyPatch, words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    no_broker(monkeypatch)
    assert cli.main([*words, "--wait", "soon"]) == 2
    assert "--wait soon: a number of seconds" in capfd.readouterr().err
    assert cli.main(["--wait", "1", *words]) == 3


@pytest.mark.parametrize("words", [[], ["nonsense"], ["status", "more"], ["status", "--mor"], ["schema"]])
def test_usage_errors_exit_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2
    assert "headgate" in capsys.readouterr().err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0 and capsys.readouterr().out.startswith("headgate ")


def test_a_refusal_exits_with_1_and_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_client(monkeypatch, FakeClient({"status": Refused(ErrorCode.NOT_FOUND, "there is no such thing")}))
    assert cli.main(["status"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "headgate status: there is no such thing\n"
    assert captured.out == ""


def test_a_bad_address_exits_with_2() -> None:
    assert cli.main(["--server", "h:p:q", "status"]) == 2


@pytest.mark.parametrize(
    "words",
    [
        *(["status"], ["ring"], ["streams"], ["subs"], ["schema", "list"], ["explain", "a"], ["pub", "a"]),
        *(["sub", "a"], ["schema", "get", "a"], ["schema", "put", "a", "{}"], ["schema", "rm", "a"]),
    ],
)
def test_nobody_there_exits_with_3(
    monkeypatch: pytest.MonkeyPatch, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    no_broker(monkeypatch)
    assert cli.main(words) == 3
    assert "cannot connect to 127.0.0.1:7400" in capfd.readouterr().err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (ModuleNotFoundError("no", name="rich"), 2)])
def test_other_ends_without_traceback(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    def run(arguments: Namespace) -> int:
        raise error

    monkeypatch.setattr("headgate.ops.commands.status.run", run)
    assert cli.main(["status"]) == code


def test_only_the_verb_that_is_called_brings_its_arguments() -> None:
    parser = cli.build_parser(["status"])
    assert parser.parse_args(["status", "--json"]).json
    with pytest.raises(SystemExit):
        parser.parse_args(["streams", "--json"])


@pytest.mark.parametrize("verb", ["pub", "sub"])
def test_scripts_start_quickly(verb: str) -> None:
    program = (
        "import sys; from headgate.ops.cli import main\n"
        f"try: main(['{verb}', 'a', '--server', '127.0.0.1:1'])\n"
        "finally: print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {
        "lark",
        "pydantic",
        "rich",
        "aiohttp",
        "structlog",
        "headgate.matching",
        "headgate.broker",
        "multiprocessing",
    }
    assert heavy & set(found.stdout.split()) == set()

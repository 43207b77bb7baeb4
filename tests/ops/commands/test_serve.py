"""`serve`: every setting has its flag, and flags win over environment and file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.broker.daemon import Settings
from headgate.ops.cli import main
from headgate.ops.commands.serve import FLAGS


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    found: list[Settings] = []

    def run(settings: Settings, reread: Callable[[], Settings]) -> int:
        found.append(settings)
        assert reread() == settings
        return 0

    monkeypatch.setattr("headgate.broker.daemon.run", run)
    monkeypatch.delenv("HEADGATE_CONFIG", raising=False)
    return found


def test_every_setting_has_a_flag() -> None:
    assert set(FLAGS) == set(Settings.model_fields)


def test_flags(served: list[Settings]) -> None:
    words = "--listen :7500 --insecure --join a:1 --join b:2 --name n1 --data d --connections-max 7"
    words += " --slow-consumer disconnect"
    assert main(["serve", *words.split()]) == 0
    (settings,) = served
    assert (settings.listen, settings.join, settings.name) == (":7500", ("a:1", "b:2"), "n1")
    assert (settings.data, settings.connections_max, settings.slow_consumer) == (Path("d"), 7, "disconnect")
    assert settings.admin == "127.0.0.1:7402" and settings.insecure


def test_several_brokers_to_join_stand_behind_one_flag_or_more(served: list[Settings]) -> None:
    assert main(["serve", "--join", "a:1", "b:2", "--name", "n1", "--join", "c:3,d:4"]) == 0
    assert served[0].join == ("a:1", "b:2", "c:3", "d:4")


@pytest.mark.parametrize("way", ["flag", "environment"])
def test_flag_before_environment_before_file(
    served: list[Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    file = tmp_path / "headgate.toml"
    file.write_text('name = "file"\nadmin = "127.0.0.1:1"\nlisten = "127.0.0.1:1"\n')
    monkeypatch.setenv("HEADGATE_NAME", "environment")
    monkeypatch.setenv("HEADGATE_ADMIN", "127.0.0.1:2")
    if way == "environment":
        monkeypatch.setenv("HEADGATE_CONFIG", str(file))
    config = ["--config", str(file)] if way == "flag" else []
    assert main(["serve", "--name", "flag", *config]) == 0
    (settings,) = served
    assert (settings.name, settings.admin, settings.listen) == ("flag", "127.0.0.1:2", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--listen", "nowhere"], "listen"),
        (["--connections-max", "many"], "--connections-max: 'many' is no whole number"),
        (["--data", ""], "--data: the name of the folder is empty"),
        (["--config", "no/such/file"], "cannot read the configuration"),
    ],
)
def test_a_wrong_setting_is_named(
    served: list[Settings], words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *words]) == 2
    assert text in capsys.readouterr().err
    assert served == []

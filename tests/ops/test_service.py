"""The systemd unit: verified by systemd's own tool, and its line is run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from headgate.broker.daemon import Settings, load_settings
from headgate.broker.daemon.limits import CONNECTIONS_MAX_DEFAULT, DESCRIPTORS_RESERVED
from headgate.broker.daemon.main import DISK_UNUSABLE
from headgate.broker.daemon.settings import split_address
from headgate.ops.cli import build_parser
from headgate.ops.exits import USAGE
from tests.support.deployment import BROKERS, DEFAULTS, SERVICES, UNIT, arguments, text, unit_seconds, unit_values
from tests.system.processes import COMMAND, ROOT, environment, wait_until

HOME = "/opt/headgate/bin/headgate"


def test_the_command_of_the_unit_is_ours() -> None:
    (line,) = unit_values("ExecStart")
    program, *words = shlex.split(line)
    assert program == HOME
    assert build_parser().parse_args(words).verb == "serve"


def test_the_example_file_holds_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HEADGATE_")]:
        monkeypatch.delenv(name)
    assert load_settings({}, ROOT / "ops/systemd/headgate.toml").model_dump() == load_settings({}).model_dump()


def test_the_example_file_names_every_setting_but_the_folder_that_the_unit_gives() -> None:
    named = tomllib.loads(text("ops/systemd/headgate.toml"))
    assert set(named) == set(Settings.model_fields) - {"data"}


def test_the_unit_leaves_the_broker_what_it_needs() -> None:
    drain = load_settings({}, ROOT / "ops/systemd/headgate.toml").drain_seconds
    assert unit_seconds("TimeoutStopSec") > drain
    assert float(SERVICES["broker-1"]["stop_grace_period"].removesuffix("s")) > drain
    room = CONNECTIONS_MAX_DEFAULT + DESCRIPTORS_RESERVED
    assert unit_seconds("LimitNOFILE") >= room
    assert all(service["ulimits"]["nofile"] >= room for service in BROKERS.values())
    assert unit_values("Type") == ["notify"]
    assert unit_values("RestartPreventExitStatus") == [f"{USAGE} {DISK_UNUSABLE}"]
    assert (unit_values("DynamicUser"), unit_values("User")) == (["yes"], [])


def test_the_environment_of_a_machine_names_settings_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = unit_values("EnvironmentFile")
    assert file == "-%E/headgate/headgate.env", "a broker without one is alone, and starts"
    lines = [line.removeprefix("#") for line in text("ops/systemd/headgate.env").splitlines()]
    pairs = dict(line.split("=", 1) for line in lines if line.startswith("HEADGATE_"))
    assert set(pairs) >= {"HEADGATE_NAME", "HEADGATE_ADVERTISE", "HEADGATE_JOIN"}
    for name in [name for name in os.environ if name.startswith("HEADGATE_")]:
        monkeypatch.delenv(name)
    for name, value in pairs.items():
        monkeypatch.setenv(name, value)
    settings = load_settings({}, ROOT / "ops/systemd/headgate.toml")
    assert (settings.name, settings.advertise, len(settings.join)) == ("one", "one.example:7401", 3)


def systemd_analyze(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The tool's word on the unit, which names a program that is installed here."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed here")
    unit = tmp_path / "headgate.service"
    unit.write_text(UNIT.read_text(encoding="utf-8").replace(HOME, sys.executable), encoding="utf-8")
    return subprocess.run([program, *words, str(unit)], capture_output=True, text=True, timeout=60, check=False)


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    done = systemd_analyze(tmp_path, "verify", "--man=no")
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_finds_the_unit_well_closed(tmp_path: Path) -> None:
    done = systemd_analyze(tmp_path, "security", "--offline=true", "--threshold=20", "--no-pager")
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze cannot judge a unit that is not loaded")
    assert done.returncode == 0, done.stdout[-400:] + done.stderr


@pytest.mark.slow
def test_the_line_of_the_unit_talks_to_systemd(tmp_path: Path) -> None:
    folders = {"CONFIGURATION_DIRECTORY": str(ROOT / "ops/systemd"), "STATE_DIRECTORY": str(tmp_path)}
    (line,) = unit_values("ExecStart")
    for name, folder in folders.items():
        line = line.replace(f"${{{name}}}", folder)
    # Free ports come from the environment, which counts before the file; the line itself is run as it is written.
    more = {"HEADGATE_LISTEN": "127.0.0.1:0", "HEADGATE_ADMIN": "127.0.0.1:0"}
    more |= {"HEADGATE_PEER_LISTEN": "127.0.0.1:0", "WATCHDOG_USEC": "200000"}
    log = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, log.open("wb") as errors:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        variables = environment(NOTIFY_SOCKET=str(tmp_path / "notify"), **folders, **more)
        process = subprocess.Popen([*COMMAND, *shlex.split(line)[1:]], stderr=errors, env=variables, cwd=tmp_path)
        try:
            assert [manager.recv(100) for _ in range(2)] == [b"READY=1\nSTATUS=ready", b"WATCHDOG=1"], log.read_text()
            wait_until(lambda: "listening" in log.read_text())
            assert healthcheck(log) == 0
            process.send_signal(signal.SIGTERM)
            while (said := manager.recv(100)) == b"WATCHDOG=1":
                pass
            assert said == b"STOPPING=1"
            assert process.wait(30) == 0
            assert healthcheck(log) != 0
        finally:
            process.kill()
            process.wait()


def healthcheck(log: Path) -> int:
    """The image's own check, against the admin port that this log names."""
    admin = next(json.loads(line)["admin"] for line in log.read_text().splitlines() if '"listening"' in line)
    host, port = split_address(admin)
    command = json.loads(arguments("HEALTHCHECK")[0].split("CMD", 1)[1])
    program = command[2].replace(f"'127.0.0.1', {DEFAULTS['admin']}", f"'{host}', {port}")
    assert program != command[2]
    return subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=False).returncode

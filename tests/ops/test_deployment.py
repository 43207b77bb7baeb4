"""What is deployed agrees with the code: images, compose, unit, alerts and dashboard name only what there is.

There need be no Docker and no Prometheus here. Commands are read by the command's own parser, settings by the broker's
own loader, metric names by the broker's own list; the unit is verified by systemd's tool, and its line is run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from broker.daemon.limits import CONNECTIONS_MAX_DEFAULT, DESCRIPTORS_RESERVED
from broker.daemon.metrics import METRICS
from broker.daemon.settings import Settings, load_settings, split_address
from ops.cli import build_parser
from ops.jsonlines import parse_line
from tests.system.processes import COMMAND, ROOT, environment, wait_until

IMAGES = ("python:", "prom/prometheus:", "grafana/grafana:", "headgate:")
CLIENT_SETTINGS = {"HEADGATE_SERVER", "HEADGATE_CONFIG"}
UNIT = ROOT / "ops/systemd/headgate.service"
HOME = "/opt/headgate/bin/headgate"


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def loaded(path: str) -> Any:
    return yaml.safe_load(text(path))


COMPOSE = loaded("docker-compose.yml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("headgate:")}
BROKERS = {name: service for name, service in OURS.items() if service.get("command", ["serve"])[0] == "serve"}
DEFAULTS = {
    name: split_address(str(Settings.model_fields[name].default))[1] for name in ("listen", "peer_listen", "admin")
}


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) of the Dockerfile, with continued lines joined and comments left out."""
    lines = [line for line in text("docker/broker.Dockerfile").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    pairs = (line.split(maxsplit=1) for line in joined.splitlines() if line.strip())
    return [(name, rest) for name, rest in pairs]


def arguments(instruction: str) -> list[str]:
    return [rest for name, rest in instructions() if name == instruction]


def image_environment() -> dict[str, str]:
    words = [word for rest in arguments("ENV") for word in shlex.split(rest)]
    return dict(word.split("=", 1) for word in words)


def unit_values(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text(encoding="utf-8"), flags=re.MULTILINE)


def unit_seconds(key: str) -> float:
    (value,) = unit_values(key)
    return float(value)


def expressions() -> Iterator[tuple[str, str]]:
    """(where, PromQL) of every alert, panel and variable."""
    for group in loaded("ops/prometheus/alerts.yml")["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    dashboard = json.loads(text("ops/grafana/headgate.json"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        yield variable["name"], variable.get("definition", "")


def metric_names(expression: str) -> set[str]:
    """The metrics of ours in an expression, a histogram's parts under its own name."""
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"\bheadgate_\w+", expression)}


def verbs_of(service: dict[str, Any]) -> list[list[str]]:
    """What a service of ours calls `headgate` with, through a shell or straight."""
    words = [str(word) for word in service.get("command", json.loads(arguments("CMD")[0]))]
    if service.get("entrypoint") != ["sh", "-c"]:
        return [words]
    parts = [shlex.split(part) for part in words[0].split("|")]
    return [part[1:] for part in parts if part[0] == "headgate"]


# --- Commands, settings, ports ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
def test_every_command_in_compose_is_one_of_ours(name: str) -> None:
    commands = verbs_of(OURS[name])
    assert commands
    for words in commands:
        build_parser().parse_args(words)


def test_the_commands_of_image_and_unit_are_ours() -> None:
    assert [json.loads(rest) for rest in arguments("ENTRYPOINT")] == [["headgate"]]
    assert build_parser().parse_args(json.loads(arguments("CMD")[0])).verb == "serve"
    (line,) = unit_values("ExecStart")
    program, *words = shlex.split(line)
    assert program == HOME
    assert build_parser().parse_args(words).verb == "serve"


def test_every_setting_is_one_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {f"HEADGATE_{name}".upper() for name in Settings.model_fields} | CLIENT_SETTINGS
    given = [image_environment(), *(service.get("environment", {}) for service in OURS.values())]
    names = {name for variables in given for name in variables if name.startswith("HEADGATE_")}
    assert {"HEADGATE_LISTEN", "HEADGATE_SERVER"} <= names <= known
    for name in [name for name in os.environ if name.startswith("HEADGATE_")]:
        monkeypatch.delenv(name)
    for service in BROKERS.values():
        for name, value in {**image_environment(), **service["environment"]}.items():
            if name != "PATH":
                monkeypatch.setenv(name, str(value))
        assert load_settings({}).data == Path("/var/lib/headgate")


def test_the_example_file_holds_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HEADGATE_")]:
        monkeypatch.delenv(name)
    assert load_settings({}, ROOT / "ops/systemd/headgate.toml").model_dump() == load_settings({}).model_dump()


def test_ports_are_the_defaults() -> None:
    variables = image_environment()
    for name, port in DEFAULTS.items():
        assert split_address(variables[f"HEADGATE_{name}".upper()]) == ("0.0.0.0", port)
    assert sorted(map(int, arguments("EXPOSE")[0].split())) == sorted(DEFAULTS.values())
    assert f"'127.0.0.1', {DEFAULTS['admin']}," in arguments("HEALTHCHECK")[0]
    assert "'/readyz'" in arguments("HEALTHCHECK")[0]
    for service in BROKERS.values():
        assert [int(entry.split(":")[2]) for entry in service["ports"]] == [DEFAULTS["listen"], DEFAULTS["admin"]]
    servers = {service["environment"]["HEADGATE_SERVER"] for name, service in OURS.items() if name not in BROKERS}
    assert servers == {f"{name}:{DEFAULTS['listen']}" for name in BROKERS}


def test_every_port_is_published_on_the_loopback_only_and_once() -> None:
    published = [entry for service in SERVICES.values() for entry in service.get("ports", ())]
    assert all(entry.startswith("127.0.0.1:") for entry in published)
    assert len({entry.split(":")[1] for entry in published}) == len(published)


def test_prometheus_scrapes_every_broker_and_grafana_asks_prometheus() -> None:
    (job,) = loaded("docker/prometheus.yml")["scrape_configs"]
    (static,) = job["static_configs"]
    assert static["targets"] == [f"{name}:{DEFAULTS['admin']}" for name in BROKERS]
    jobs = {found for _, expression in expressions() for found in re.findall(r'job="([^"]*)"', expression)}
    assert jobs == {job["job_name"]}
    (source,) = loaded("docker/grafana/datasource.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    dashboard = json.loads(text("ops/grafana/headgate.json"))
    assert dashboard["templating"]["list"][0]["current"]["value"] == source["uid"]


# --- Files -----------------------------------------------------------------------------------------------------------


def test_every_mounted_and_copied_file_is_there_and_in_the_build() -> None:
    named = {volume for service in SERVICES.values() for volume in service.get("volumes", ())}
    sources = [volume.split(":")[0] for volume in named]
    assert {source for source in sources if not source.startswith("./")} == set(COMPOSE["volumes"])
    assert all((ROOT / source).is_file() for source in sources if source.startswith("./"))
    (builds,) = {json.dumps(service["build"], sort_keys=True) for service in OURS.values()}
    assert (ROOT / json.loads(builds)["dockerfile"]).is_file()
    patterns = [line for line in text(".dockerignore").splitlines() if line and not line.startswith("#")]
    assert patterns[0] == "*"
    copied = [word for rest in arguments("COPY") if "--from" not in rest for word in rest.split()[:-1]]
    assert sorted(pattern[1:] for pattern in patterns if pattern.startswith("!")) == sorted(copied)
    assert all((ROOT / one).exists() for one in copied)
    assert not any(fnmatch(one, pattern) for one in copied for pattern in patterns[1:] if pattern[0] != "!")


def test_files_meet_where_they_are_looked_for() -> None:
    inside = {volume.split(":")[1] for service in SERVICES.values() for volume in service.get("volumes", ())}
    assert set(loaded("docker/prometheus.yml")["rule_files"]) <= inside
    (provider,) = loaded("docker/grafana/dashboards.yml")["providers"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home in inside
    assert str(Path(home).parent) == provider["options"]["path"]
    assert image_environment()["HEADGATE_DATA"] == arguments("VOLUME")[0]
    assert image_environment()["HEADGATE_DATA"] in inside
    scripts = {script for line in SERVICES["publisher"]["command"] for script in re.findall(r"/\S+\.py", line)}
    assert scripts
    assert scripts <= inside


def test_every_image_is_named_by_an_exact_release() -> None:
    stages = [rest.split()[0] for rest in arguments("FROM")]
    images = [*stages, *(service["image"] for service in SERVICES.values())]
    assert len(set(stages)) == 1, "what is installed must run on the Python that it was installed with"
    for image in images:
        assert image.startswith(IMAGES)
        assert re.search(r":v?\d+\.\d+\.\d+(-[\w-]+)?$", image), f"{image}: name an exact release"


def test_the_image_runs_as_nobody_special_and_healthcheck_knows_no_proxy() -> None:
    (user,) = arguments("USER")
    assert user.split(":")[0].isdigit()
    assert int(user.split(":")[0]) > 0
    places = [name for name, _ in instructions()]
    assert places.index("USER") > max(place for place, name in enumerate(places) if name == "RUN")
    assert "urllib" not in arguments("HEALTHCHECK")[0]


def test_versions_agree_with_pyproject_and_constraints() -> None:
    import tomllib

    project = tomllib.loads(text("pyproject.toml"))["project"]
    python = arguments("FROM")[0].removeprefix("python:").split("-")[0]
    assert python in SpecifierSet(project["requires-python"])
    assert f"Programming Language :: Python :: {'.'.join(python.split('.')[:2])}" in project["classifiers"]
    assert {service["image"] for service in OURS.values()} == {f"headgate:{project['version']}"}
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", text("constraints.txt"), flags=re.MULTILINE))
    normal = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    for line in project["dependencies"]:
        wanted = Requirement(line)
        assert normal[re.sub(r"[-_.]+", "-", wanted.name).lower()] in wanted.specifier
    assert any("--constraint constraints.txt" in rest for rest in arguments("RUN"))


# --- Alerts and dashboard --------------------------------------------------------------------------------------------


def test_every_metric_of_alerts_and_dashboard_exists() -> None:
    used = {name: where for where, expression in expressions() for name in metric_names(expression)}
    assert len(used) > 10
    unknown = {name: where for name, where in used.items() if name not in METRICS}
    assert not unknown, f"there is no such metric: {unknown}"


def test_a_part_of_a_histogram_counts_as_the_histogram() -> None:
    assert metric_names('rate(headgate_match_seconds_bucket{job="headgate"}[5m]) / headgate_nothing') == {
        "headgate_match_seconds",
        "headgate_nothing",
    }


def test_brackets_of_expressions_are_balanced() -> None:
    for where, expression in expressions():
        rest = re.sub(r'"[^"]*"', "", expression)
        while (shorter := re.sub(r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}", "", rest)) != rest:
            rest = shorter
        assert not set("()[]{}") & set(rest), f"{where}: {expression}"


def test_reasons_of_drops_are_those_that_there_are() -> None:
    from broker.core.subscribers import Subscribers

    source = Path(sys.modules[Subscribers.__module__].__file__ or "").read_text(encoding="utf-8")
    for where, expression in expressions():
        for reasons in re.findall(r'reason=~?"([^"]*)"', expression):
            for reason in reasons.split("|"):
                assert f'"{reason}": 0' in source, f"{where}: there is no reason {reason}"


def test_every_alert_has_its_words_and_its_row_in_the_runbook() -> None:
    runbook = text("ops/RUNBOOK.md")
    rules = [rule for group in loaded("ops/prometheus/alerts.yml")["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule["annotations"]) == {"summary", "description"}
        assert f"| `{rule['alert']}` | {rule['labels']['severity']} |" in runbook
    explained = re.findall(r"^\| `(Headgate\w+)` \|", runbook, flags=re.MULTILINE)
    assert sorted(explained) == sorted(rule["alert"] for rule in rules)


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = json.loads(text("ops/grafana/headgate.json"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


# --- The service -----------------------------------------------------------------------------------------------------


def test_the_unit_leaves_the_broker_what_it_needs() -> None:
    drain = load_settings({}, ROOT / "ops/systemd/headgate.toml").drain_seconds
    assert unit_seconds("TimeoutStopSec") > drain
    assert float(SERVICES["broker-1"]["stop_grace_period"].removesuffix("s")) > drain
    room = CONNECTIONS_MAX_DEFAULT + DESCRIPTORS_RESERVED
    assert unit_seconds("LimitNOFILE") >= room
    assert all(service["ulimits"]["nofile"] >= room for service in BROKERS.values())
    assert unit_values("Type") == ["notify"]
    assert unit_values("RestartPreventExitStatus") == ["2"]
    assert (unit_values("DynamicUser"), unit_values("User")) == (["yes"], [])


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
    more = {"HEADGATE_LISTEN": "127.0.0.1:0", "HEADGATE_ADMIN": "127.0.0.1:0", "WATCHDOG_USEC": "200000"}
    log = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, log.open("wb") as errors:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        variables = environment(NOTIFY_SOCKET=str(tmp_path / "notify"), **folders, **more)
        process = subprocess.Popen([*COMMAND, *shlex.split(line)[1:]], stderr=errors, env=variables, cwd=tmp_path)
        try:
            assert [manager.recv(100) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"], log.read_text()
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


@pytest.mark.slow
def test_the_quotes_of_compose_are_lines_that_pub_takes() -> None:
    command = [sys.executable, str(ROOT / "docker/quotes.py"), "--count", "50", "--rate", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment(), check=True)
    events = [parse_line(line) for line in done.stdout.splitlines()]
    assert len(events) == 50
    assert all(event.topic.startswith("quotes/") and "price" in event.attributes for event in events)

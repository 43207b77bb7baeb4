"""What is deployed agrees with the code: images and compose name only what there is. There need be no Docker here.

Commands are read by the command's own parser, settings by the broker's own loader.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import ssl
import subprocess
import sys
import urllib.request
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import headgate
from headgate.broker.daemon import Settings, load_settings
from headgate.broker.daemon.settings import split_address
from headgate.ops.cli import build_parser
from headgate.ops.jsonlines import parse_line
from headgate.protocol.addresses import split_addresses
from tests.support.child_broker import child_broker
from tests.support.deployment import (
    BROKERS,
    COMPOSE,
    DEFAULTS,
    OURS,
    SERVICES,
    arguments,
    image_environment,
    instructions,
    loaded,
    text,
    verbs_of,
)
from tests.system.processes import ROOT, environment

IMAGES = ("python:", "prom/prometheus:", "grafana/grafana:", "headgate:")
CLIENT_SETTINGS = {"HEADGATE_SERVER", "HEADGATE_CONFIG"}
CLIENTS = {name: service for name, service in OURS.items() if name not in BROKERS and name != "init"}
SHAPES: dict[str, type | tuple[type, ...]] = {
    "image": str,
    "build": dict,
    "restart": str,
    "init": bool,
    "read_only": bool,
    "cap_drop": list,
    "security_opt": list,
    "command": list,
    "entrypoint": list,
    "environment": dict,
    "depends_on": (dict, list),
    "healthcheck": dict,
    "ulimits": dict,
    "mem_limit": str,
    "logging": dict,
    "stop_grace_period": str,
    "volumes": list,
    "ports": list,
}
"""What the compose specification has for a service, as far as it is used here, and in which of its forms."""


@pytest.mark.parametrize("name", [*BROKERS, *CLIENTS])
def test_every_command_in_compose_is_one_of_ours(name: str) -> None:
    commands = verbs_of(OURS[name])
    assert commands
    for words in commands:
        build_parser().parse_args(words)


def test_the_commands_of_the_image_are_ours() -> None:
    assert [json.loads(rest) for rest in arguments("ENTRYPOINT")] == [["headgate"]]
    assert build_parser().parse_args(json.loads(arguments("CMD")[0])).verb == "serve"


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


def test_ports_are_the_defaults() -> None:
    variables = image_environment()
    for name, port in DEFAULTS.items():
        assert split_address(variables[f"HEADGATE_{name}".upper()]) == ("0.0.0.0", port)
    assert sorted(map(int, arguments("EXPOSE")[0].split())) == sorted(DEFAULTS.values())
    assert f"'127.0.0.1', {DEFAULTS['admin']}," in arguments("HEALTHCHECK")[0]
    assert "'/readyz'" in arguments("HEALTHCHECK")[0]
    for service in BROKERS.values():
        assert [int(entry.split(":")[2]) for entry in service["ports"]] == [DEFAULTS["listen"], DEFAULTS["admin"]]
    (servers,) = {service["environment"]["HEADGATE_SERVER"] for service in CLIENTS.values()}
    assert split_addresses(servers) == tuple(f"{name}:{DEFAULTS['listen']}" for name in BROKERS)


def test_the_brokers_of_compose_find_each_other() -> None:
    assert len(BROKERS) == 3
    peers = {name: f"{name}:{DEFAULTS['peer_listen']}" for name in BROKERS}
    for name, service in BROKERS.items():
        variables = service["environment"]
        assert (variables["HEADGATE_NAME"], variables["HEADGATE_ADVERTISE"]) == (name, peers[name])
        assert variables["HEADGATE_JOIN"].split(",") == list(peers.values())
        own = f"{name}-data:{image_environment()['HEADGATE_DATA']}"
        assert service["volumes"] == [own, "secrets:/etc/headgate:ro"], "each its own, and what all read"


def test_compose_has_the_form_of_its_specification() -> None:
    assert {key for key in COMPOSE if not key.startswith("x-")} == {"name", "services", "volumes"}
    assert all(re.fullmatch(r"[a-zA-Z0-9._-]+", name) for name in [*SERVICES, *COMPOSE["volumes"]])
    for name, service in SERVICES.items():
        for key, value in service.items():
            assert key in SHAPES and isinstance(value, SHAPES[key]), f"{name}: {key}"
        assert service["restart"] == ("no" if name == "init" else "unless-stopped")
        assert all(isinstance(value, str | int) for value in service.get("environment", {}).values())
        for entry in service.get("ports", ()):
            assert re.fullmatch(r"(\d+\.){3}\d+:\d+:\d+", entry), f"{name}: {entry}"
        for entry in service.get("volumes", ()):
            assert re.fullmatch(r"(\./)?[\w./-]+:/[\w./-]+(:ro)?", entry), f"{name}: {entry}"
        needs = service.get("depends_on", {})
        assert set(needs) <= set(SERVICES)
        if isinstance(needs, dict):
            known = {"service_healthy", "service_started", "service_completed_successfully"}
            assert {need["condition"] for need in needs.values()} <= known
        assert set(service.get("build", {})) <= {"context", "dockerfile"}
        assert service.get("healthcheck") in (None, {"disable": True})


def test_a_client_waits_for_brokers_that_are_checked() -> None:
    for name, service in OURS.items():
        if name in BROKERS:
            assert "healthcheck" not in service, "the image's own check tells whether a broker takes clients"
            assert service["depends_on"] == {"init": {"condition": "service_completed_successfully"}}
        elif name != "init":
            assert {need: how["condition"] for need, how in service["depends_on"].items()} == dict.fromkeys(
                BROKERS, "service_healthy"
            )


def test_every_port_is_published_on_the_loopback_only_and_once() -> None:
    published = [entry for service in SERVICES.values() for entry in service.get("ports", ())]
    assert all(entry.startswith("127.0.0.1:") for entry in published)
    assert len({entry.split(":")[1] for entry in published}) == len(published)


def test_every_mounted_and_copied_file_is_there_and_in_the_build() -> None:
    named = {volume for service in SERVICES.values() for volume in service.get("volumes", ())}
    sources = [volume.split(":")[0] for volume in named]
    assert {source for source in sources if not source.startswith("./")} == set(COMPOSE["volumes"])
    assert all((ROOT / source).is_file() for source in sources if source.startswith("./"))
    (build,) = [service["build"] for service in SERVICES.values() if "build" in service]
    assert (ROOT / build["dockerfile"]).is_file()
    patterns = [line for line in text(".dockerignore").splitlines() if line and not line.startswith("#")]
    assert patterns[0] == "*"
    copied = [word for rest in arguments("COPY") if "--from" not in rest for word in rest.split()[:-1]]
    assert sorted(pattern[1:] for pattern in patterns if pattern.startswith("!")) == sorted(copied)
    assert all((ROOT / one).exists() for one in copied)
    assert not any(fnmatch(one, pattern) for one in copied for pattern in patterns[1:] if pattern[0] != "!")


def test_our_image_is_built_once_and_used_by_all() -> None:
    assert [name for name, service in SERVICES.items() if "build" in service] == ["broker-1"]
    assert len({service["image"] for service in OURS.values()}) == 1
    assert not any("pull_policy" in service for service in OURS.values()), "what is built here is not pulled"


def test_no_service_takes_all_memory_or_fills_the_disk_with_its_log() -> None:
    for name, service in SERVICES.items():
        assert re.fullmatch(r"[1-9]\d*[mg]", service["mem_limit"]), name
        logging = service["logging"]
        assert logging["driver"] == "json-file", name
        options = logging["options"]
        assert re.fullmatch(r"[1-9]\d*m", options["max-size"]) and int(options["max-file"]) > 1, name
        assert all(isinstance(value, str) for value in options.values()), "numbers are not taken there"
    unit = {"m": 2**20, "g": 2**30}
    outboxes = Settings.model_fields["outbox_bytes_total"].default
    for name, service in BROKERS.items():
        limit = service["mem_limit"]
        assert int(limit[:-1]) * unit[limit[-1]] >= 2 * outboxes, f"{name}: less than its outboxes may hold"


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
    assert {service["image"] for service in OURS.values()} == {f"headgate:{headgate.__version__}"}
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", text("constraints.txt"), flags=re.MULTILINE))
    normal = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    for line in [*project["dependencies"], *project["optional-dependencies"]["broker"]]:
        wanted = Requirement(line)
        assert normal[re.sub(r"[-_.]+", "-", wanted.name).lower()] in wanted.specifier
    assert any("--constraint constraints.txt" in rest for rest in arguments("RUN"))


@pytest.mark.slow
def test_the_image_of_spark_is_built_as_the_broker_s_is() -> None:
    assert arguments("FROM", "spark") == arguments("FROM")
    assert arguments("COPY", "spark") == arguments("COPY")
    assert arguments("USER", "spark") == arguments("USER")
    (*_, install) = [rest for rest in arguments("RUN", "spark") if "--constraint constraints.txt" in rest]
    assert "'.[broker,spark]'" in install
    found = image_environment("spark")
    assert found["PYSPARK_PYTHON"] == found["PYSPARK_DRIVER_PYTHON"], "driver and executors have one interpreter"
    assert found["PYSPARK_PYTHON"].startswith("/opt/headgate/")


def test_the_quotes_of_compose_are_lines_that_pub_takes() -> None:
    command = [sys.executable, str(ROOT / "docker/quotes.py"), "--count", "50", "--rate", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment(), check=True)
    events = [parse_line(line) for line in done.stdout.splitlines()]
    assert len(events) == 50
    assert all(event.topic.startswith("quotes/") and "price" in event.attributes for event in events)


@pytest.mark.slow
async def test_what_init_makes_is_what_brokers_clients_and_prometheus_want(tmp_path: Path) -> None:
    secrets, authority, programs = tmp_path / "secrets", tmp_path / "authority", tmp_path / "bin"
    for folder in (secrets, authority, programs):
        folder.mkdir()
    (programs / "headgate").write_text(f'#!/bin/sh\nexec {sys.executable} -m headgate.ops.cli "$@"\n')
    (programs / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    places = {"SECRETS": str(secrets), "AUTHORITY": str(authority), "EXAMPLES": str(ROOT / "docker")}
    variables = environment(**places, PATH=f"{programs}:{os.environ['PATH']}")

    def run_init() -> dict[str, bytes]:
        script = str(ROOT / "docker/init.sh")
        subprocess.run(["sh", script], env=variables, check=True, capture_output=True, timeout=120)
        return {file.name: file.read_bytes() for file in secrets.iterdir() if file.is_file()}

    made = await asyncio.to_thread(run_init)
    assert await asyncio.to_thread(run_init) == made, "what is there stays"
    assert "ca.key" not in made
    service = BROKERS["broker-1"]["environment"]
    names = [name for name in service if "TLS" in name or name in ("HEADGATE_USERS", "HEADGATE_ROLES", "HEADGATE_NAME")]
    here = {name: str(service[name]).replace("/etc/headgate", str(secrets)) for name in names}
    assert {name for value in here.values() if (name := Path(value).name) != "broker-1"} <= set(made)
    settings = {name.removeprefix("HEADGATE_").lower(): value for name, value in here.items()}
    (scrape,) = loaded("docker/prometheus.yml")["scrape_configs"]
    account = scrape["basic_auth"]
    async with child_broker(tmp_path, **settings) as child:

        def password(user: str) -> str:
            return (secrets / f"{user}.password").read_text().strip()

        ca = secrets / "ca.pem"
        who = {user: {"user": user, "password": password(user), "tls_ca": ca} for user in ("feed", "watcher")}
        async with (
            await headgate.connect(child.address, **who["watcher"]) as watcher,
            await headgate.connect(child.address, **who["feed"]) as feed,
        ):
            quotes = await watcher.subscribe("quotes")
            for volume in (5, 500):
                await feed.publish("quotes/A", {"volume": volume})
            assert (await anext(quotes)).attributes == {"volume": 500}
        admin = child.lines("listening")[-1]["admin"]
        assert scrape["scheme"] == "https" and Path(account["password_file"]).name in made
        given = base64.b64encode(f"{account['username']}:{password(account['username'])}".encode()).decode()
        request = urllib.request.Request(f"https://{admin}/metrics", headers={"Authorization": f"Basic {given}"})
        context = ssl.create_default_context(cafile=str(ca))
        with await asyncio.to_thread(urllib.request.urlopen, request, timeout=10, context=context) as answer:
            assert b"headgate_uptime_seconds" in answer.read()
        command = [sys.executable, *json.loads(arguments("HEALTHCHECK")[0].partition("CMD ")[2])[1:]]
        command[-1] = command[-1].replace("7402", admin.rpartition(":")[2])
        checked = await asyncio.create_subprocess_exec(*command, env=environment(HEADGATE_TLS_CERT="x"))
        assert await checked.wait() == 0

"""The files of a deployment, read: compose, Dockerfile, unit, alerts and dashboard, for the tests that compare them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import yaml

from headgate.broker.daemon import Settings
from headgate.broker.daemon.settings import split_address
from tests.system.processes import ROOT

__all__ = [
    "BROKERS",
    "COMPOSE",
    "DEFAULTS",
    "OURS",
    "SERVICES",
    "UNIT",
    "arguments",
    "expressions",
    "image_environment",
    "instructions",
    "loaded",
    "metric_names",
    "text",
    "unit_seconds",
    "unit_values",
    "verbs_of",
]

UNIT = ROOT / "ops/systemd/headgate.service"


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def loaded(path: str) -> Any:
    return yaml.safe_load(text(path))


COMPOSE = loaded("docker-compose.yml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("headgate:")}
BROKERS = {
    name: service
    for name, service in OURS.items()
    if service.get("command", ["serve"])[0] == "serve" and "entrypoint" not in service
}
DEFAULTS = {
    name: split_address(str(Settings.model_fields[name].default))[1] for name in ("listen", "peer_listen", "admin")
}


def instructions(image: str = "broker") -> list[tuple[str, str]]:
    """(instruction, arguments) of a Dockerfile, with continued lines joined and comments left out."""
    lines = [line for line in text(f"docker/{image}.Dockerfile").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    pairs = (line.split(maxsplit=1) for line in joined.splitlines() if line.strip())
    return [(name, rest) for name, rest in pairs]


def arguments(instruction: str, image: str = "broker") -> list[str]:
    return [rest for name, rest in instructions(image) if name == instruction]


def image_environment(image: str = "broker") -> dict[str, str]:
    words = [word for rest in arguments("ENV", image) for word in shlex.split(rest)]
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

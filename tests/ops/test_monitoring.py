"""Prometheus, its alerts and the Grafana dashboard name only brokers, metrics and reasons that there are."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from headgate.broker.daemon.metrics import METRICS
from tests.support.deployment import BROKERS, DEFAULTS, expressions, loaded, metric_names, text


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
    from headgate.broker.core.delivery import Subscribers

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


def test_brokers_are_compared_with_those_of_their_own_cluster() -> None:
    """Two clusters in one Prometheus are no cluster that disagrees."""
    (group,) = [one for one in loaded("ops/prometheus/alerts.yml")["groups"] if one["name"] == "headgate-cluster"]
    compared = {}
    for rule in group["rules"]:
        sums = re.findall(r"\b(?:max|min|sum|count)\b(?! by \(cluster\) \()", rule["expr"])
        joins = re.findall(r"\bon \((?!cluster\))", rule["expr"])
        assert not sums and not joins, rule["expr"]
        if "by (cluster)" in rule["expr"]:
            compared[rule["alert"]] = metric_names(rule["expr"])
    assert set(compared) == {"HeadgateBrokersDisagree", "HeadgateBrokerAlone", "HeadgatePeerLinkMissing"}
    labelled = {"headgate_cluster_brokers", "headgate_peer_links"}
    assert set().union(*compared.values()) == labelled, "these have the label"


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

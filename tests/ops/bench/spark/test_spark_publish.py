"""The Spark bench: its rows, its verdict, what it says when a part is missing; and a small run of all of it."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from headgate.ops.bench.limits import SPARK_MQTT_RATIO_MIN, SPARK_ROWS_PER_SECOND_MIN
from headgate.ops.bench.peers import Mosquitto
from headgate.ops.bench.spark import publish
from headgate.ops.bench.spark.publish import Rate, missing_for_mqtt, verdict, write_rows
from headgate.ops.jobs import missing_parts


def arguments(*words: str, **bounds: float) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    publish.add_arguments(parser)
    return parser.parse_args(words, argparse.Namespace(**bounds))


def rate(rows_per_second: float) -> Rate:
    return Rate(1000, 1000 / rows_per_second, 0.5)


def test_the_median_counts_and_both_promises() -> None:
    good, bad = rate(SPARK_ROWS_PER_SECOND_MIN * 2), rate(SPARK_ROWS_PER_SECOND_MIN / 2)
    assert verdict([bad, good, good], None)[0]
    assert not verdict([bad, bad, good], None)[0]
    slow, fast = (rate(good.rows_per_second / SPARK_MQTT_RATIO_MIN * factor) for factor in (0.9, 1.1))
    assert verdict([good], slow)[0]
    kept, text = verdict([good], fast)
    assert not kept
    assert "BROKEN" in text
    assert "times the MQTT loop" in text


def test_what_the_mqtt_loop_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(Mosquitto, "version", lambda self: None)
    assert missing_for_mqtt() == "its client: pip install paho-mqtt and its server: apt install mosquitto"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr(Mosquitto, "version", lambda self: "2.0")
    assert missing_for_mqtt() == ""


def test_without_java_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(publish, "missing_parts", lambda: "Java 17")
    assert publish.run(arguments()) == 1
    assert "Java 17" in capsys.readouterr().err


def test_rows_are_the_same_each_time(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_rows(tmp_path / name, 100)
    first, again = parquet.read_table(tmp_path / "a"), parquet.read_table(tmp_path / "b")
    assert first.equals(again)
    assert first.num_rows == 100
    assert sorted(first.column("id").to_pylist()) == list(range(100))
    assert {len(body) for body in first.column("value").to_pylist()} == {64}


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_small_run(capsys: pytest.CaptureFixture[str]) -> None:
    if missing_parts():
        pytest.skip(f"needs {missing_parts()}")
    assert (
        publish.run(
            arguments("--rows", "5000", "--rounds", "2", "--mqtt-rows", "1000", rows_per_second_min=1, mqtt_ratio_min=0)
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "headgate, stored, round 2" in said
    assert "the promise was kept" in said
    assert "paho-mqtt" in said or "mosquitto, QoS 1" in said

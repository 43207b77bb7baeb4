"""The publish job: what it is told, what it refuses before Spark starts, and a run over real files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.ops.exits import DONE, REFUSED, UNREACHABLE, USAGE, UsageError
from headgate.ops.jobs import publish
from headgate.ops.jobs.publish import add_arguments, main, mapping_of, options_of, reason_of
from headgate.ops.jobs.publish_rows import Columns


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(["quotes.parquet", *words])


def test_expressions_are_taken_as_they_are() -> None:
    words: tuple[str, ...] = (
        "--topic-expr",
        "concat('q/', s)",
        "--attr",
        "price = CAST(p = 1 AS DOUBLE)",
        "--attr",
        "s=s",
    )
    words += ("--body", "to_json(o)", "--id", "uuid", "--where", "p > 0")
    assert mapping_of(parsed(*words)) == Columns(
        "concat('q/', s)", (("price", "CAST(p = 1 AS DOUBLE)"), ("s", "s")), "to_json(o)", "uuid", "p > 0"
    )
    assert mapping_of(parsed("--topic", "q/a")) == Columns("", (), "", "", "")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "--topic"),
        (("--topic", "q", "--topic-expr", "s"), "not both"),
        (("--topic", "q", "--attr", "price"), "NAME=SQL"),
        (("--topic", "q", "--attr", "=1"), "NAME=SQL"),
        (("--topic", "q", "--rate", "0"), "--rate"),
        (("--topic", "q", "--partitions", "0"), "--partitions"),
    ],
)
def test_what_makes_no_sense_is_usage(
    words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=complaint):
        mapping_of(parsed(*words))
    assert main(["quotes.parquet", *words]) == USAGE
    assert capsys.readouterr().err.startswith("publish: ")


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(publish, "missing_parts", lambda: "Java 17")
    assert main(["quotes.parquet", "--topic", "q"]) == REFUSED
    assert "It needs Java 17" in capsys.readouterr().err


def test_nobody_there_is_said_before_java_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(publish, "missing_parts", lambda: "")
    assert main(["quotes.parquet", "--topic", "q", "--server", "127.0.0.1:1"]) == UNREACHABLE
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_options_for_the_reader_of_files() -> None:
    words = ("--topic", "q", "--option", "multiLine=true", "--option", "sep==")
    assert options_of(parsed(*words)) == {"multiLine": "true", "sep": "="}
    with pytest.raises(UsageError, match="KEY=VALUE"):
        options_of(parsed("--topic", "q", "--option", "multiLine"))


def test_a_reason_is_one_line_out_of_many() -> None:
    text = "An exception\n  File x\nprotocol.spark.errors.BadRow: [HEADGATE_BAD_ROW] column 'topic': is NULL\n\tat java"
    assert reason_of(Exception(text)) == "[HEADGATE_BAD_ROW] column 'topic': is NULL"
    missing = "[PATH_NOT_FOUND] Path does not exist: file:/q. SQLSTATE: 42K03\nand more"
    assert reason_of(Exception(missing)) == "[PATH_NOT_FOUND] Path does not exist: file:/q. SQLSTATE: 42K03"
    header = (
        "x\njava.lang.IllegalArgumentException: CSV header does not conform to the schema.\n Header: 1, 2\n Schema: "
    )
    found = reason_of(Exception(header + "a, b\nExpected: a but found: 1\nCSV file: file:/q.csv\n\tat org.apache"))
    assert found is not None and found.startswith("CSV header does not conform") and "header=false" in found
    assert "\n" not in found
    assert reason_of(Exception("a bug")) is None
    assert reason_of(Exception("")) is None


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Any]:
    from tests.support.served_broker import served_broker

    with served_broker(tmp_path) as served:
        served.store("quotes")
        yield served


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_files_become_events(broker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one process, one Java: JSON with structs, CSV with expressions, a mistake, a rerun."""
    from headgate.protocol.blocking import connect_blocking
    from headgate.protocol.data import decode_record, row_batch
    from tests.support.spark_run import spark_session

    lines = [{"symbol": "OTE", "order": {"price": number / 2, "n": number}} for number in range(100)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "b.csv").write_text("symbol,price\nIBM,8.5\nSAP,\n")
    server = ("--server", broker.address)
    with spark_session():
        once = [str(tmp_path / "a.jsonl"), "--topic", "quotes/a", "--producer-id", "job", *server]
        assert main([*once, "--rate", "1000"]) == DONE
        assert "100 new, 0 were there" in capsys.readouterr().out
        assert main(once) == DONE
        assert "0 new, 100 were there" in capsys.readouterr().out
        csv = [str(tmp_path / "b.csv"), "--attr", "price=price * 2", "--body", "symbol", "--partitions", "1", *server]
        assert (
            main([*csv, "--topic-expr", "concat('quotes/', symbol)", "--id", "symbol", "--where", "symbol <> 'X'"])
            == DONE
        )
        plain = ["--topic", "quotes/plain", "--quiet", *server]
        (tmp_path / "c.csv").write_text("IBM,8.5,1\nSAP,9.5,2\n")
        assert main([str(tmp_path / "c.csv"), *plain]) == USAGE
        assert "'8.5', which looks like data: say --option header=false" in capsys.readouterr().err
        assert main([str(tmp_path / "c.csv"), *plain, "--schema", "symbol STRING, price DOUBLE, n INT"]) == REFUSED
        assert "header=false" in capsys.readouterr().err
        renamed = ["--schema", "symbol STRING, value DOUBLE, n INT", "--option", "header=false"]
        assert main([str(tmp_path / "c.csv"), *plain, *renamed, "--attr", "price=value"]) == DONE
        assert "2 new:" in capsys.readouterr().out
        (tmp_path / "d.json").write_text('[{"n": 1},\n {"n": 2}]')
        assert main([str(tmp_path / "d.json"), *plain]) == USAGE
        assert "multiLine=true" in capsys.readouterr().err
        assert main([str(tmp_path / "d.json"), *plain, "--option", "multiLine=true"]) == DONE
        assert "2 new:" in capsys.readouterr().out
        assert main([str(tmp_path / "c.csv"), *plain, "--format", "parquet"]) == REFUSED
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert "c.csv" in line
        assert main([*csv, "--topic-expr", "symbl"]) == REFUSED
        assert "symbl" in capsys.readouterr().err
        assert main([*csv, "--topic", "memory/a"]) == REFUSED
        assert "HEADGATE_REFUSED" in capsys.readouterr().err
    with connect_blocking(broker.address) as client:
        (log,) = client.logs("quotes")
        rows = client.read_log(log.name, 0).rows
    events = [
        (topic, *decode_record(piece)[:2])
        for row in rows
        for topic, piece in zip(
            row.topics.split("\n") if "\n" in row.topics else [row.topics] * row.count,
            row_batch(row).pieces(),
            strict=True,
        )
    ]
    wanted = [("quotes/a", {"symbol": "OTE", "order.price": n / 2, "order.n": n}, b"") for n in range(100)]
    assert sorted(events[:100], key=lambda event: str(event[1]["order.n"]).zfill(3)) == wanted
    assert [event for event in events if event[0] == "quotes/plain"] == [
        ("quotes/plain", {"price": 8.5}, b""),
        ("quotes/plain", {"price": 9.5}, b""),
        ("quotes/plain", {"n": 1}, b""),
        ("quotes/plain", {"n": 2}, b""),
    ]
    named = [event for event in events[100:] if event[0] != "quotes/plain"]
    assert sorted(named, key=lambda event: event[0]) == [
        ("quotes/IBM", {"price": 17.0, "event_id": "IBM"}, b"IBM"),
        ("quotes/SAP", {"event_id": "SAP"}, b"SAP"),
    ]

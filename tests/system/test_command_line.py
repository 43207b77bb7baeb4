"""The command line as scripts use it: real processes, exit codes, signals, pipes."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import headgate as headgate_library
from headgate.protocol.data.records import encode_record
from tests.system.processes import COMMAND, Broker, environment, headgate, running_broker, start, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("broker"), "--name", "b1") as broker:
        yield broker


def run(broker: Broker, *words: str, text: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    done = headgate(*words, text=text, HEADGATE_SERVER=broker.address)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


def subscribe(broker: Broker, *words: str) -> subprocess.Popen[bytes]:
    process = start("sub", *words, "--json", "--server", broker.address)
    assert process.stderr is not None
    assert process.stderr.readline() == b"subscribed\n"
    return process


def deliveries(text: bytes | str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_what_is_asked_for_arrives_and_nothing_else(broker: Broker) -> None:
    process = subscribe(broker, "one/*/OTE", "--where", "price BETWEEN 8.3 AND 8.7 AND volume > 1000", "--count", "2")
    for topic, price, volume in (
        ("one/NYSE/OTE", "8.45", "1200"),
        ("one/NYSE/OTE", "8.45", "1000"),
        ("one/NYSE/IBM", "8.45", "1200"),
        ("one/NYSE/OTE", "9", "1200"),
        ("one/LSE/OTE/deep", "8.3", "1e4"),
    ):
        run(broker, "pub", topic, "--attr", f"price={price}", "--attr", f"volume={volume}", "--body", f"{price} é")
    out, errors = process.communicate(timeout=20)
    first, second = deliveries(out)
    assert process.returncode == 0
    assert errors == b""
    assert set(first) == {"id", "time", "topic", "attrs", "body", "subscription"}
    assert (first["topic"], first["attrs"], first["body"]) == (
        "one/NYSE/OTE",
        {"price": 8.45, "volume": 1200},
        "8.45 é",
    )
    assert second["topic"] == "one/LSE/OTE/deep"
    assert first["id"] != second["id"]
    assert 0 <= second["time"] - first["time"] < 60


def test_exact(broker: Broker) -> None:
    process = subscribe(broker, "two/a", "--exact", "--count", "1")
    run(broker, "pub", "two/a/b")
    run(broker, "pub", "two/a")
    assert [one["topic"] for one in deliveries(process.communicate(timeout=20)[0])] == ["two/a"]


def test_lines_of_every_form_and_through_again(broker: Broker) -> None:
    lines = [
        {"topic": "three/a", "attrs": {"n": 1, "deep": {"x": None}}, "body": "text"},
        {"topic": "three/b", "body_base64": "/w=="},
        {"topic": "three/c", "xml": "<a><b/></a>"},
        {"topic": "three/d", "json": {"order": {"price": 8.5}}},
    ]
    process = subscribe(broker, "three", "--count", "8")
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert run(broker, "pub", "--jsonl", "-", text=text).stderr == "published 4 events\n"
    assert process.stdout is not None
    first = b"".join(process.stdout.readline() for _ in lines)
    run(broker, "pub", "--jsonl", "-", text=first.decode())
    again = deliveries(process.communicate(timeout=20)[0])
    found = deliveries(first)
    assert [(one["topic"], one["attrs"]) for one in found] == [
        ("three/a", {"n": 1, "deep.x": None}),
        ("three/b", {}),
        ("three/c", {}),
        ("three/d", {"body.order.price": 8.5}),
    ]
    assert [one.get("body") for one in found] == ["text", None, "<a><b/></a>", '{"order":{"price":8.5}}']
    assert found[1]["body_base64"] == "/w=="
    keys = ("topic", "attrs", "body", "body_base64")
    assert [[one.get(key) for key in keys] for one in again] == [[one.get(key) for key in keys] for one in found]


def test_a_pipe_from_sub_to_pub_keeps_types_and_bytes(broker: Broker) -> None:
    with headgate_library.connect_blocking(broker.address) as client:
        seen = client.subscribe("copy")
        process = subscribe(broker, "copy/first", "--count", "4")
        price = {"price": math.nan, "low": -math.inf, "note": "NaN", "n": 1, "f": 1.0, "πόλη": "Αθήνα"}
        client.publish("copy/first", price, '{"n": 1}', content_type="application/json")
        client.publish("copy/first", {"price": 8.5}, b"\xff\x00", content_type="image/png")
        client.publish("copy/first", None, "a text")
        client.publish("copy/first", None, b"bytes without a type")
        lines = process.communicate(timeout=20)[0].decode()
        assert "Αθήνα" in lines
        run(broker, "pub", "--jsonl", "-", text=lines)
        events = []
        for event in seen.events(seconds=20):
            events.append((event.topic, encode_record(event.attributes, event.body, event.content_type)))
            if len(events) == 8:
                break
    assert events[:4] == events[4:]


def test_skipped_lines_exit_with_4_and_a_list_is_no_attribute(broker: Broker) -> None:
    text = '{"topic":"skip"}\n{"topic":"skip","attrs":{"tags":["a"]}}\n'
    assert "line 2: attribute 'tags' is a list" in run(broker, "pub", "--jsonl", "-", text=text, code=2).stderr
    done = run(broker, "pub", "--jsonl", "-", "--skip-bad", text=text, code=4)
    assert done.stderr.endswith("published 1 event, skipped 1 bad line\n")


def test_lines_are_published_while_the_pipe_stays_open(broker: Broker) -> None:
    subscriber = subscribe(broker, "four", "--count", "1")
    publisher = start("pub", "four", "--jsonl", "-", "--server", broker.address)
    assert publisher.stdin is not None
    publisher.stdin.write(b'{"attrs": {"n": 1}}\n')
    publisher.stdin.flush()
    assert len(deliveries(subscriber.communicate(timeout=20)[0])) == 1
    assert publisher.poll() is None
    assert publisher.communicate(timeout=20)[1] == b"published 1 event\n"


def test_many_lines_from_a_file_arrive_in_order(broker: Broker, tmp_path: Path) -> None:
    count = 20_000
    file = tmp_path / "events.jsonl"
    file.write_text("".join(f'{{"attrs":{{"n":{number}}}}}\n' for number in range(count)))
    process = subscribe(broker, "five/x", "--where", "n % 2 = 0", "--count", str(count // 2))
    run(broker, "pub", "five/x", "--jsonl", str(file))
    found = deliveries(process.communicate(timeout=30)[0])
    assert [one["attrs"]["n"] for one in found] == list(range(0, count, 2))


def test_a_bad_line_stops_it_with_2_and_what_was_before_is_published(broker: Broker) -> None:
    process = subscribe(broker, "six", "--count", "1")
    done = run(broker, "pub", "--jsonl", "-", text='{"topic":"six"}\n{"topic":"six/"}\n{"topic":"six"}\n', code=2)
    assert "standard input, line 2: " in done.stderr
    assert done.stderr.startswith("published 1 event\n")
    assert len(deliveries(process.communicate(timeout=20)[0])) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_subscriber_that_is_told_to_stop_prints_what_it_has(broker: Broker, number: signal.Signals) -> None:
    process = subscribe(broker, f"seven/{int(number)}")
    for _ in range(3):
        run(broker, "pub", f"seven/{int(number)}")
    process.send_signal(number)
    out, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, b"")
    assert len(deliveries(out)) == 3


def test_a_reader_that_has_enough_ends_it_quietly(broker: Broker) -> None:
    with subscribe(broker, "eight") as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        run(broker, "pub", "eight")
        assert process.wait(20) == 0
        assert process.stderr.read() == b""


def test_what_is_stored_is_removed_with_its_schema_when_that_is_said(broker: Broker) -> None:
    def replayed() -> list[int]:
        done = run(broker, "sub", "kept", "--from", "start", "--timeout", "1", "--json")
        assert ("kept in memory" in done.stderr) == (not done.stdout)
        return [one["attrs"]["n"] for one in deliveries(done.stdout)]

    run(broker, "schema", "put", "kept", '{"durability": "stored"}')
    for number in range(3):
        run(broker, "pub", "kept", "--attr", f"n={number}", "--mode", "stored")
    assert "--purge" in run(broker, "schema", "rm", "kept").stderr
    assert replayed() == [0, 1, 2]
    assert "3 entries of its logs are gone" in run(broker, "schema", "rm", "kept", "--purge").stderr
    assert replayed() == []
    run(broker, "schema", "put", "kept", '{"durability": "stored"}')
    run(broker, "pub", "kept", "--attr", "n=7", "--mode", "stored")
    assert replayed() == [7]
    run(broker, "schema", "rm", "kept", "--purge")
    assert "no schema" in run(broker, "schema", "rm", "kept", "--purge", code=1).stderr


def test_a_time_is_a_place_to_begin(broker: Broker) -> None:
    def numbers(start: str) -> list[int]:
        done = run(broker, "sub", "times", "--from", start, "--timeout", "1", "--json")
        return [one["attrs"]["n"] for one in deliveries(done.stdout)]

    run(broker, "schema", "put", "times", '{"durability": "stored"}')
    for number in range(3):
        run(broker, "pub", "times", "--attr", f"n={number}", "--mode", "stored")
    events = deliveries(run(broker, "sub", "times", "--from", "start", "--count", "3", "--json").stdout)
    second = datetime.fromtimestamp(events[1]["time"])
    assert numbers(second.isoformat()) == [1, 2], "local time"
    assert numbers(second.astimezone(UTC).isoformat()) == [1, 2], "with a zone"
    assert numbers("-1h") == [0, 1, 2]
    assert numbers("-0s") == []


def test_refusals_exit_with_1(broker: Broker) -> None:
    assert "column" in run(broker, "sub", "a", "--where", "price >", code=1).stderr
    assert "leave it out" in run(broker, "sub", "a/#", code=1).stderr
    assert "a twig has a name at each step" in run(broker, "sub", "a", "--where", "XPATH '/a/*'", code=1).stderr
    assert "durable" in run(broker, "sub", "a", "--durable", "mine", code=1).stderr
    assert "is kept in memory" in run(broker, "pub", "a", "--mode", "stored", code=1).stderr
    assert "no schema" in run(broker, "schema", "get", "nothing", code=1).stderr
    caret = run(broker, "explain", "a", "--where", "price BETWEN 1", code=1).stderr
    assert caret.splitlines()[-1].strip() == "^"


def test_usage_exits_with_2(broker: Broker) -> None:
    for words in (["pub"], ["sub"], ["pub", "a", "--attr", "x"], ["sub", "a", "--count", "x"], ["pub", "a//b"]):
        assert run(broker, *words, code=2).stderr


def test_who_waits_begins_when_a_broker_answers_and_hears_why_it_takes_long(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    words = ("--server", address, "--wait", "30")
    subscriber = start("sub", "a", "--count", "2", "--name", "desk", *words)
    publisher = start("pub", "b", *words)
    assert subscriber.stderr is not None
    line = subscriber.stderr.readline().decode()
    assert line == f"headgate sub: still trying: no broker answers at {address}\n"
    with running_broker(tmp_path, "--listen", address) as broker:
        assert subscriber.stderr.readline() == b"subscribed\n"
        assert publisher.communicate(timeout=20)[1].endswith(b"published 1 event\n")
        assert [one["client"] for one in json.loads(run(broker, "subs", "--json").stdout)] == ["desk"]
        run(broker, "pub", "a")
    assert b"still trying: the connection is lost, and no broker answers" in subscriber.stderr.readline()
    with running_broker(tmp_path, "--listen", address) as broker:
        told = [subscriber.stderr.readline() for _ in range(2)]
        assert f"headgate sub: connected to {address} again\n".encode() in told
        wait_until(lambda: json.loads(run(broker, "subs", "--json").stdout))
        run(broker, "pub", "a")
        out, _ = subscriber.communicate(timeout=20)
    assert (subscriber.returncode, len(out.splitlines())) == (0, 2)


def test_nobody_there_exits_with_3() -> None:
    for words in (["status"], ["pub", "a"], ["sub", "a"], ["explain", "a"]):
        done = headgate("--server", "127.0.0.1:1", *words)
        assert (done.returncode, done.stdout) == (3, "")
        assert "cannot connect to 127.0.0.1:1" in done.stderr
    assert headgate("status", "--server", "127.0.0.1:1", "--wait", "0.3").returncode == 3


def test_what_the_broker_says_of_itself(broker: Broker) -> None:
    process = subscribe(broker, "nine/*", "--where", "price > 8")
    run(broker, "pub", "nine/a", "--attr", "price=9")
    status = json.loads(run(broker, "status", "--json").stdout)
    assert status["broker"] == "b1"
    assert status["subscriptions"] >= 1
    (stream,) = (one for one in json.loads(run(broker, "streams", "--json").stdout) if one["stream"] == "nine")
    assert (stream["events"], stream["deliveries"], stream["attributes"]) == (1, 1, ["price"])
    (subscription,) = (one for one in json.loads(run(broker, "subs", "--json").stdout) if one["stream"] == "nine")
    assert (subscription["pattern"], subscription["client"]) == ("nine/*", "headgate sub")
    assert "nine" in run(broker, "streams").stdout
    assert "nine/*" in run(broker, "subs").stdout
    assert "b1" in run(broker, "ring").stdout
    assert "events received" in run(broker, "status").stdout
    process.terminate()
    process.communicate(timeout=20)


def test_explain(broker: Broker) -> None:
    event = '{"topic": "quotes/NYSE/OTE", "attrs": {"price": 8.45}}'
    words = ("explain", "quotes/*/OTE", "--where", "price BETWEEN 8.3 AND 8.7 AND volume > 1000", "--event", event)
    told = json.loads(run(broker, *words, "--json").stdout)
    assert [one["verdict"] for one in told["predicates"]] == ["true", "unknown"]
    assert (told["topic_matches"], told["verdict"], told["delivered"], told["lives_on"]) == (
        True,
        "unknown",
        False,
        ["b1"],
    )
    assert "not delivered: the condition is unknown" in run(broker, *words).stdout


def test_filters_that_no_broker_would_believe_are_refused(broker: Broker) -> None:
    run(broker, "schema", "put", "library", '{"structure.l": 2048}')
    for schema in ('{"verify": true}', '{"audit": true}'):
        refused = run(broker, "schema", "put", "library", schema, code=1).stderr
        assert "structure.l is about" in refused and "a broker never parses a document" in refused
    run(broker, "schema", "put", "library", '{"audit": true, "verify": false}')
    run(broker, "schema", "put", "library", '{"verify": true, "structure.l": null}')


def test_a_schema_put_again_is_merged_and_says_what_it_changed(broker: Broker) -> None:
    price = {"type": "float", "min": 0, "max": 1000}
    run(broker, "schema", "put", "merged", '{"durability": "stored", "retention_seconds": 3600}')
    told = run(broker, "schema", "put", "merged", json.dumps({"attributes": {"price": price}})).stderr
    assert "attributes.price: not set -> " in told and "precision 0.00095367431640625" in told
    kept = {"durability": "stored", "retention_seconds": 3600}
    got = run(broker, "schema", "get", "merged")
    assert json.loads(got.stdout) == {**kept, "attributes": {"price": price}}
    assert "precision 0.00095367431640625" in got.stderr
    where = run(broker, "explain", "merged", "--where", "price BETWEEN 8.3 AND 8.7").stdout
    assert "from 8.29983 to 8.70037" in where and "ranges of price, 0 to 1000" in where
    refused = run(broker, "schema", "put", "merged", "{}", "--replace", code=1)
    assert "is stored, and this would keep it in memory" in refused.stderr
    told = run(broker, "schema", "put", "merged", '{"durability": "memory"}', "--replace").stderr
    assert 'durability: "stored" -> "memory"' in told and "retention_seconds: 3600 -> not set" in told


def test_schemas_survive_a_restart(tmp_path: Path) -> None:
    schema = '{"attributes": {"price": {"type": "float", "min": 0, "max": 1000}}}'
    with running_broker(tmp_path) as broker:
        run(broker, "schema", "put", "quotes", "-", text=schema)
        run(broker, "schema", "put", "other", schema)
        run(broker, "schema", "rm", "other")
    with running_broker(tmp_path) as broker:
        assert json.loads(run(broker, "schema", "get", "quotes").stdout) == json.loads(schema)
        assert [one["stream"] for one in json.loads(run(broker, "schema", "list", "--json").stdout)] == ["quotes"]


def test_a_stop_drains_and_a_subscriber_finds_the_next_broker(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        process = subscribe(broker, "ten", "--count", "2")
        run(broker, "pub", "ten", "--body", "before")
        address = broker.address
        broker.process.terminate()
        assert broker.process.wait(20) == 0
        assert [line["event"] for line in broker.lines()][-1] == "stopped"
    with running_broker(tmp_path, "--listen", address) as broker:
        wait_until(lambda: json.loads(run(broker, "subs", "--json").stdout))
        run(broker, "pub", "ten", "--body", "after")
        out, _ = process.communicate(timeout=20)
    assert [one["body"] for one in deliveries(out)] == ["before", "after"]


def test_settings_come_from_flag_environment_and_file(tmp_path: Path) -> None:
    file = tmp_path / "headgate.toml"
    file.write_text('name = "from-file"\nlog_level = "debug"\n')
    with running_broker(tmp_path, HEADGATE_CONFIG=str(file)) as broker:
        assert json.loads(run(broker, "status", "--json").stdout)["broker"] == "from-file"
    with running_broker(tmp_path, HEADGATE_CONFIG=str(file), HEADGATE_NAME="from-environment") as broker:
        assert json.loads(run(broker, "status", "--json").stdout)["broker"] == "from-environment"
    (tmp_path / "bad.toml").write_text("nmae = 1\n")
    done = headgate("serve", "--config", str(tmp_path / "bad.toml"))
    assert done.returncode == 2
    assert "nmae" in done.stderr
    assert headgate("serve", "--listen", "nonsense").returncode == 2


def test_an_address_in_use_is_told(broker: Broker, tmp_path: Path) -> None:
    done = headgate("serve", "--listen", broker.address, "--admin", "127.0.0.1:0", "--data", str(tmp_path))
    assert done.returncode == 1
    assert "in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_metrics_and_health(broker: Broker) -> None:
    run(broker, "pub", "eleven")
    for path, word in (("metrics", "headgate_events_received_total"), ("healthz", "ok"), ("readyz", "ready")):
        with urllib.request.urlopen(f"http://{broker.admin}/{path}", timeout=10) as answer:
            assert word in answer.read().decode()


def test_ctrl_c_leaves_no_traceback(broker: Broker) -> None:
    process = start("pub", "twelve", "--jsonl", "-", "--server", broker.address)
    assert process.stdin is not None
    process.stdin.write(b"{}\n")
    process.stdin.flush()
    wait_until(lambda: "twelve" in run(broker, "streams").stdout)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130  # before its input ends, which would be an end of its own
    _, errors = process.communicate(timeout=20)
    assert errors == b"published 1 event\n"


@pytest.mark.parametrize(
    ("closed", "words", "text"),
    [
        ("<&-", "pub a --jsonl -", "headgate pub: standard input is closed\n"),
        (">&-", "sub a", "headgate sub: standard output is closed\n"),
    ],
)
def test_a_closed_stream_is_told(broker: Broker, closed: str, words: str, text: str) -> None:
    line = f'"{sys.executable}" -m headgate.ops.cli {words} --server {broker.address} {closed}'
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, env=environment(), timeout=20, check=False)
    assert (done.returncode, done.stderr.decode()) == (2, text)


def test_an_answer_that_nobody_reads_ends_quietly(broker: Broker) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [*COMMAND, "status", "--json", "--server", broker.address]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, env=environment(), timeout=20, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_document_of_a_thousand_values_can_be_asked_about_and_a_larger_one_is_told_what_to_do(broker: Broker) -> None:
    document = {f"part{number}": {"value": number, "lines": [1] * 9} for number in range(1000)}
    process = subscribe(broker, "documents", "--where", "body.part999.value = 999", "--count", "1")
    line = json.dumps({"topic": "documents/one", "json": document})
    run(broker, "pub", "--jsonl", "-", text=line)
    assert json.loads(deliveries(process.communicate(timeout=20)[0])[0]["body"]) == document
    explained = run(broker, "explain", "documents", "--where", "body.part999.value = 999", "--event", line).stdout
    assert "delivered: the condition is true" in explained
    document |= {f"more{number}": number for number in range(100)}
    refused = run(broker, "pub", "documents", "--jsonl", "-", text=json.dumps({"json": document}), code=2)
    assert "at most 1024 attributes" in refused.stderr and "send the document as a plain body" in refused.stderr


def test_explain_says_which_type_was_asked_for_and_what_is_a_comment(broker: Broker) -> None:
    told = run(broker, "explain", "q", "--where", "price > 1 -- x", "--event", '{"price": "8"}').stdout
    assert "condition  `price` > 1\n" in told
    assert told.endswith("the event has `price`, as the string '8', and a number was asked for\n")
    for event in ('{"attrs": {"m": 9223372036854775808}}', '{"json": {"m": 9223372036854775808}}'):
        name = "m" if "attrs" in event else "body.m"
        assert (
            "  true     "
            in run(broker, "explain", "q", "--where", f"{name} = 9223372036854775808D", "--event", event).stdout
        )
    process = subscribe(broker, "large", "--where", "m = 9223372036854775808D", "--count", "2")
    run(broker, "pub", "large", "--attr", "m=9223372036854775808")
    run(broker, "pub", "large", "--jsonl", "-", text='{"attrs": {"m": 9223372036854775808}}')
    assert [one["attrs"] for one in deliveries(process.communicate(timeout=20)[0])] == [{"m": 2.0**63}] * 2


def test_a_watch_list_of_ten_thousand_comes_from_a_file(broker: Broker, tmp_path: Path) -> None:
    watched = [f"US{number:010}" for number in range(0, 20_000, 2)]
    file = tmp_path / "watch.sql"
    file.write_text("isin IN (" + ",\n".join(f"'{one}'" for one in watched) + ") AND price > 1 -- what we hold\n")
    process = subscribe(broker, "watch", "--where", f"@{file}", "--count", "2")
    wanted = json.dumps({"topic": "watch/a", "attrs": {"isin": watched[-1], "price": 2}})
    others = [json.dumps({"topic": "watch/a", "attrs": {"isin": f"US{number:010}", "price": 2}}) for number in (1, 3)]
    run(broker, "pub", "--jsonl", "-", text="\n".join([*others, wanted, wanted.replace(": 2", ": 1"), wanted]))
    assert [one["attrs"]["isin"] for one in deliveries(process.communicate(timeout=20)[0])] == [watched[-1]] * 2
    told = run(broker, "explain", "watch", "--where", f"@{file}", "--event", wanted).stdout
    assert "characters; --json prints all)" in told and "delivered: the condition is true" in told
    assert len(told) < 2_000 and "more than 16 values" in told
    whole = json.loads(run(broker, "explain", "watch", "--where", f"@{file}", "--json").stdout)
    assert whole["spark"].count("US0") == 10_000

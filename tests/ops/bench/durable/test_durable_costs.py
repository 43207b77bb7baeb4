"""The cost of durable subscriptions: everything is measured, and each number is of what was confirmed."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import pytest

from headgate.ops.bench.durable import durable
from headgate.ops.bench.durable.jetstream import JetStream, consume, publish
from headgate.ops.bench.kit import MeasurementFailed


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    durable.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.slow
def test_a_small_run_has_all_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(JetStream, "version", lambda self: None)
    words = ["--events", "2000", "--backlog", "3000", "--idle", "50", "--directory", str(tmp_path)]
    assert durable.run(parsed(*words, "--json", str(tmp_path / "told.json"))) == 0
    assert "nats-server is not installed" in capsys.readouterr().out
    told = json.loads((tmp_path / "told.json").read_text("utf-8"))
    assert [rate["title"] for rate in told["rates"]] == [*durable.CASES, "catching up, batch"]
    assert [rate["events"] for rate in told["rates"]] == [2000] * 5 + [3000]
    assert all(rate["per_second"] > 0 and rate["broker_seconds"] > 0 for rate in told["rates"])
    assert told["idle"]["count"] == 50 and told["idle"]["restart_seconds"] > 0


class _Nats:
    """A server that knows as much of NATS as the measurement says to it: one stream, one consumer, kept in memory."""

    def __init__(self, refuses: bytes = b"") -> None:
        self.acknowledged: list[int] = []
        self.consumer: dict[str, object] = {}
        self._refuses = refuses
        self._stored: list[bytes] = []
        self._pulls: list[list[int]] = []
        self._writer: asyncio.StreamWriter | None = None
        self._sent = 0
        self._serving: list[asyncio.Task[None]] = []

    async def listen(self) -> int:
        """Begin; returns the port."""
        self._server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def end(self) -> None:
        """Wait until all connections are over."""
        self._server.close()
        await asyncio.gather(*self._serving)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.append(task)
        writer.write(b'INFO {"version":"2.10.0","jetstream":true}\r\nPING\r\n')
        while line := await reader.readline():
            verb, *words = line.split()
            if verb != b"PUB":
                continue
            body = (await reader.readexactly(int(words[-1]) + 2))[:-2]
            subject, reply = words[0].decode(), words[1] if len(words) == 3 else b""
            if subject.startswith("$JS.API.CONSUMER.MSG.NEXT."):
                self._writer = writer
                writer.write(b"HMSG %s 1 17 17\r\nNATS/1.0 100 \r\n\r\n\r\n" % reply)
                self._pulls.append([json.loads(body)["batch"]])
            elif subject.startswith("$ACK."):
                self.acknowledged.append(int(subject[5:]))
                assert body == b"+ACK"
                if reply:
                    writer.write(b"MSG %s 1 0\r\n\r\n" % reply)
            elif self._refuses and subject.startswith("$JS.API.STREAM"):
                writer.write(b"MSG %s 1 %d\r\n%s\r\n" % (reply, len(self._refuses), self._refuses))
            else:
                if subject.startswith("$JS"):
                    self.consumer = json.loads(body).get("config", {})
                else:
                    self._stored.append(body)
                writer.write(b'MSG %s 1 9\r\n{"seq":1}\r\n' % reply)
            self._deliver()
        writer.close()

    def _deliver(self) -> None:
        while self._writer is not None and self._pulls and len(self._stored) > (sent := self._sent):
            body = self._stored[sent]
            self._writer.write(b"MSG bench 1 $ACK.%d %d\r\n%s\r\n" % (sent, len(body), body))
            self._sent += 1
            self._pulls[0][0] -= 1
            if not self._pulls[0][0]:
                self._pulls.pop(0)


@pytest.mark.parametrize("case", ["each", "batch", "cumulative"])
async def test_jetstream_is_asked_for_a_durable_pull_consumer_and_confirms(case: str) -> None:
    nats = _Nats()
    port = await nats.listen()
    counted: list[int] = []
    published: list[asyncio.Task[None]] = []

    def ready() -> None:
        work = publish(port, 2500, lambda: counted[-1] if counted else 0)
        published.append(asyncio.get_running_loop().create_task(work))

    async with asyncio.timeout(20):
        await consume(port, case, 2500, ready, counted.append)
        await published[0]
    await nats.end()
    assert counted[-1] == 2500 and counted == sorted(counted)
    assert nats.consumer["ack_policy"] == ("all" if case == "cumulative" else "explicit")
    if case != "cumulative":
        assert nats.acknowledged == list(range(2500))
    assert nats.acknowledged[-1] == 2499


async def test_what_jetstream_refuses_is_no_result() -> None:
    nats = _Nats(b'{"error":{"description":"no store"}}')
    port = await nats.listen()
    with pytest.raises(MeasurementFailed, match="no store"):
        await consume(port, "each", 1, lambda: None, lambda count: None)
    await nats.end()


@pytest.mark.parametrize(("version", "can"), [("2.9.10", False), ("2.10.0", True), ("3.0", True), (None, False)])
def test_jetstream_is_synchronised_where_its_version_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, can: bool
) -> None:
    monkeypatch.setattr(JetStream, "version", lambda self: version)
    assert JetStream().can_synchronise is can
    for peer, told in ((JetStream(), False), (JetStream(synchronised=True), True)):
        assert str(tmp_path / "nats.conf") in peer.command(4222, tmp_path)
        config = (tmp_path / "nats.conf").read_text("ascii")
        assert f'store_dir: "{tmp_path}"' in config and "max_pending" in config
        assert ("sync_interval: always" in config) is told


@pytest.mark.slow
@pytest.mark.skipif(JetStream().version() is None, reason="nats-server is not installed")
@pytest.mark.parametrize("case", durable.JETSTREAM_CASES)
def test_the_installed_jetstream_is_measured(case: str) -> None:
    rate = durable.live_jetstream(JetStream(), case, 3000)
    assert rate.title == f"nats jetstream, {case}" and rate.events == 3000 and rate.per_second > 0

"""Looking inside three real brokers: one address shows all of them, and one that is killed is named as missing."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

import headgate
from headgate.ops.bench.kit import fleet
from tests.system import processes

pytestmark = pytest.mark.slow


async def look(address: str, *words: str) -> tuple[Any, str]:
    """What a verb prints as JSON, and its standard error; it ends with 0."""
    done = await asyncio.to_thread(processes.headgate, *words, "--json", "--server", address)
    assert done.returncode == 0, done
    return json.loads(done.stdout), done.stderr


async def test_one_address_shows_three_brokers_and_names_the_one_that_is_killed(tmp_path: Path) -> None:
    async with fleet(3, tmp_path) as cluster:
        names = {member.name for member in cluster.members}
        first, _, victim = cluster.members
        clients = [await headgate.connect(member.address, name=f"at {member.name}") for member in cluster.members]
        try:
            for number, client in enumerate(clients):
                await client.subscribe("quotes", where=f"n = {number}")
            await clients[0].publish("quotes/a", {"n": 1})

            subs, errors = await look(first.address, "subs")
            assert {(row["broker"], row["client"]) for row in subs} == {(name, f"at {name}") for name in names}
            assert all(row["address"].startswith("127.0.0.1:") and row["pace"] == "ok" for row in subs)
            streams, _ = await look(first.address, "streams", "--stream", "quotes")
            assert {row["broker"] for row in streams} == names
            assert sum(row["events"] for row in streams) == 1
            status, _ = await look(first.address, "status")
            assert {row["broker"] for row in status["cluster"]} == names
            assert (status["broker"], status["missing"], errors) == (first.name, [], "")
            alone, _ = await look(first.address, "subs", "--broker", victim.name)
            assert {row["broker"] for row in alone} == {victim.name}

            victim.stop()
            began = time.monotonic()
            status, errors = await look(first.address, "status")
            assert time.monotonic() - began < 10.0, "who hangs is waited for, and not for ever"
            assert [row["broker"] for row in status["missing"]] == [victim.name]
            assert f"{victim.name} is missing" in errors
            victim.wake()
            await cluster.settled()
            await clients.pop().close()
            victim.kill()
            began = time.monotonic()
            for verb in ("subs", "streams"):
                rows, errors = await look(first.address, verb)
                assert {row["broker"] for row in rows} == names - {victim.name}
                assert f"headgate {verb}: {victim.name} is missing" in errors
            assert time.monotonic() - began < 10.0
        finally:
            for client in clients:
                await client.close()


def test_places_of_logs_are_given_to_sub_as_they_are_printed(tmp_path: Path) -> None:
    with processes.running_broker(tmp_path, "--name", "b1") as broker:

        def run(*words: str) -> str:
            done = processes.headgate(*words, HEADGATE_SERVER=broker.address)
            assert done.returncode == 0, done
            return done.stdout

        run("schema", "put", "trades", '{"durability": "stored"}')
        for body in ("one", "two", "three"):
            run("pub", "trades/a", "--body", body, "--mode", "stored")
        (log,) = json.loads(run("logs", "--stream", "trades", "--json"))
        assert (log["events"], [one["broker"] for one in log["holders"]]) == (3, ["b1"])
        heard = run("sub", "trades", "--from", log["from"], "--count", "3", "--json")
        assert [json.loads(line)["body"] for line in heard.splitlines()] == ["one", "two", "three"]
        advice = run("logs").splitlines()[-1].split()
        run("pub", "trades/a", "--body", "four", "--mode", "stored")
        heard = run(*advice[advice.index("sub") :], "--count", "1", "--json")
        assert json.loads(heard)["body"] == "four"

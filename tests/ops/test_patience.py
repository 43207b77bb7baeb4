"""Patience: a reason is told once when it has lasted, while the context lasts and not behind it."""

from __future__ import annotations

import asyncio

import pytest

from headgate.ops.patience import Patience, unanswered, unconnected
from tests.ops.fakes import FakeClient
from tests.support.waiting import wait_until


class Reasons:
    """What keeps somebody, as the test says it."""

    def __init__(self) -> None:
        self.now = ""

    def __call__(self) -> str:
        return self.now


def test_a_reason_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    why = Reasons()
    patience = Patience("pub", why, 0.0)
    for why.now in ("", "bob is away", "bob is away", "", "ann as well"):
        patience.look(0.0)
    told = capsys.readouterr().err.splitlines()
    assert told == ["headgate pub: still trying: bob is away", "headgate pub: still trying: ann as well"]


def test_what_passes_soon_is_not_worth_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    why = Reasons()
    patience = Patience("sub", why, 2.0, lambda: "all is well")
    for now, why.now in ((0.0, "a"), (1.9, "a"), (2.0, ""), (2.5, "a"), (4.4, "a")):
        patience.look(now)
    assert capsys.readouterr().err == ""
    patience.look(4.5)
    assert capsys.readouterr().err == "headgate sub: still trying: a\n"
    why.now = ""
    for now in (5.0, 6.0):
        patience.look(now)
    assert capsys.readouterr().err == "headgate sub: all is well\n"


def test_a_lost_connection_and_a_silent_broker(capsys: pytest.CaptureFixture[str]) -> None:
    client = FakeClient()
    client.address = "h:1"
    lost, silent = unconnected("sub", client), unanswered("sub", client)
    for now, client.connected in ((0.0, True), (5.0, False), (7.0, False), (8.0, True)):
        lost.look(now)
        silent.look(now)
    assert capsys.readouterr().err.splitlines() == [
        "headgate sub: still trying: the connection is lost, and no broker answers at h:1",
        "headgate sub: connected to h:1 again",
    ]
    silent.look(18.0)
    assert "still trying: h:1 has not answered yet" in capsys.readouterr().err


def test_it_looks_by_itself_and_stops(capsys: pytest.CaptureFixture[str]) -> None:
    why, told = Reasons(), ""

    def is_told() -> bool:
        nonlocal told
        told += capsys.readouterr().err
        return "away" in told

    async def publish() -> None:
        with Patience("pub", why, 0.001) as patience:
            why.now = "bob is away"
            await wait_until(is_told)
            timer = patience._timer
        assert timer is not None and patience._timer is not None and patience._timer.cancelled()

    asyncio.run(publish())

"""Telling: what a client says about its connection."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import pytest

from headgate.protocol.client import Telling
from headgate.protocol.errors import LocalError


def test_everything_is_logged_and_the_hooks_are_called(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "headgate")
    told: list[str] = []
    telling = Telling(None, told.append, told.append)
    telling.disconnected("a:1", "reset", math.inf)
    telling.disconnected("a:1", "reset", 2.5)
    telling.failed("a:1", "refused")
    telling.reconnected("b:1", "bob", False)
    telling.reconnected("a:1", "ann", True)
    telling.ended("a:1,b:1", "refused")
    assert told == ["reset", "reset", "bob", "ann"]
    assert [(record.levelname, record.getMessage().split(", and")[0]) for record in caplog.records] == [
        ("WARNING", "lost the connection to a:1: reset; trying again until a broker answers"),
        ("WARNING", "lost the connection to a:1: reset; trying again for 2.5 seconds"),
        ("DEBUG", "no connection to a:1: refused"),
        (
            "INFO",
            "connected again to broker bob at b:1, in a new session: subscriptions are made again, with a gap",
        ),
        ("INFO", "connected again to broker ann at a:1, with its session"),
        ("ERROR", "gave up the connection to a:1,b:1: refused; this client is of no use any more"),
    ]


def failures(caplog: pytest.LogCaptureFixture) -> list[tuple[type[BaseException] | None, str]]:
    """What the records say failed; the text of a record depends on who formats it (Spark's logger sets JSON)."""
    told = [record.exc_info for record in caplog.records if record.exc_info]
    return [(kind, str(error)) for kind, error, _ in told]


def test_a_hook_waits_for_its_host_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    waiting: list[Callable[[], None]] = []

    def bad(reason: str) -> None:
        raise ZeroDivisionError(reason)

    own = logging.getLogger("tests.own")
    telling = Telling(own, bad)
    telling.later = waiting.append
    telling.disconnected("a:1", "reset", 1.0)
    telling.reconnected("a:1", "ann", True)
    (call,) = waiting
    assert not failures(caplog)
    call()
    assert failures(caplog) == [(ZeroDivisionError, "reset")]
    assert {record.name for record in caplog.records} == {"tests.own"}


async def a_coroutine(reason: str) -> None:
    raise AssertionError("nobody awaits it")


@pytest.mark.parametrize("hook", ["print", 5, a_coroutine])
def test_what_is_no_hook_is_refused(hook: object) -> None:
    with pytest.raises(LocalError, match="on_disconnected is a"):
        Telling(None, hook)  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="on_reconnected is a"):
        Telling(None, None, hook)  # type: ignore[arg-type]


def test_what_is_no_logger_is_refused() -> None:
    Telling(logging.LoggerAdapter(logging.getLogger("tests.own"), {}))
    with pytest.raises(LocalError, match=r"a logging\.Logger or None"):
        Telling("headgate")  # type: ignore[arg-type]

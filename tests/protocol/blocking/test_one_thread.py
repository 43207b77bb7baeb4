"""A lock that refuses instead of waiting."""

from __future__ import annotations

import threading

import pytest

from headgate.protocol.blocking.one_thread import OneThread
from headgate.protocol.errors import LocalError


def test_the_same_thread_may_enter_again_and_another_one_is_told() -> None:
    lock = OneThread()
    told: list[str] = []

    def other() -> None:
        try:
            with lock:
                told.append("entered")
        except LocalError as error:
            told.append(str(error))

    def ask() -> str:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return told.pop()

    with lock, lock:
        assert "one for each thread" in ask()
    assert ask() == "entered"
    with pytest.raises(ValueError, match="inside"), lock:
        raise ValueError("inside")
    assert ask() == "entered"

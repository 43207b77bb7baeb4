"""Deferred: whoever waits is told, whichever comes first, and once."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.deferred import Deferred


@pytest.mark.parametrize("answer", ["yes", None, 0, ValueError("no")])
def test_who_waits_first_is_told_when_it_is_known(answer: Any) -> None:
    deferred, heard = Deferred(), list[Any]()
    deferred.tell = heard.append
    assert heard == [] and deferred.tell is not None
    deferred.say(answer)
    assert heard == [answer]


@pytest.mark.parametrize("answer", ["yes", None, 0])
def test_who_comes_later_is_told_at_once(answer: Any) -> None:
    deferred, heard = Deferred(), list[Any]()
    deferred.say(answer)
    deferred.tell = heard.append
    assert heard == [answer]


def test_only_the_first_answer_counts() -> None:
    deferred, heard = Deferred(), list[Any]()
    deferred.say(None)
    deferred.say("too late")
    deferred.tell = heard.append
    deferred.say("far too late")
    assert heard == [None]


def test_nobody_need_ask() -> None:
    deferred = Deferred()
    deferred.say("yes")
    assert deferred.tell is None

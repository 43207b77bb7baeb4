"""Later: whoever waits is told, whichever comes first, and once."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.deferred import Later


@pytest.mark.parametrize("answer", ["yes", None, 0, ValueError("no")])
def test_who_waits_first_is_told_when_it_is_known(answer: Any) -> None:
    later, heard = Later(), list[Any]()
    later.tell = heard.append
    assert heard == [] and later.tell is not None
    later.say(answer)
    assert heard == [answer]


@pytest.mark.parametrize("answer", ["yes", None, 0])
def test_who_comes_later_is_told_at_once(answer: Any) -> None:
    later, heard = Later(), list[Any]()
    later.say(answer)
    later.tell = heard.append
    assert heard == [answer]


def test_only_the_first_answer_counts() -> None:
    later, heard = Later(), list[Any]()
    later.say(None)
    later.say("too late")
    later.tell = heard.append
    later.say("far too late")
    assert heard == [None]


def test_nobody_need_ask() -> None:
    later = Later()
    later.say("yes")
    assert later.tell is None

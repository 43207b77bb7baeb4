"""Configuration of the ring."""

from __future__ import annotations

import pytest

from headgate.broker.core.membership import ChordConfig


def test_the_defaults_are_those_of_the_design() -> None:
    config = ChordConfig()
    assert (config.list_length, config.ring_size_min) == (4, 5)


def test_whoever_is_silent_has_missed_several_greetings() -> None:
    config = ChordConfig()
    assert config.silence_seconds >= 3 * config.greet_seconds
    assert config.promise_seconds > config.silence_seconds


@pytest.mark.parametrize(("arguments", "word"), [({"list_length": 1}, "at least 2"), ({"attempts": 0}, "once")])
def test_what_cannot_work_is_refused(arguments: dict[str, int], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        ChordConfig(**arguments)

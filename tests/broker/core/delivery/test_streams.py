"""Streams: topics checked once, lanes forgotten in time, interest told when it changed, bounds kept."""

from __future__ import annotations

import pytest

from headgate.broker.core.delivery import Stream, Streams, StreamSettings
from headgate.broker.core.delivery.streams import DEFAULTS
from headgate.broker.core.limits import TOPIC_OVERHEAD_BYTES, Limits
from headgate.matching import TopicError, parse_pattern
from headgate.protocol.limits import INTEREST_ATTRIBUTES_MAX


def test_a_stream_takes_well_formed_topics_of_its_own() -> None:
    stream = Stream("quotes")
    stream.check_topics(["quotes", "quotes/NYSE/OTE"])
    assert stream.known_topics == {"quotes", "quotes/NYSE/OTE"}
    stream.check_topics(["quotes"])


@pytest.mark.parametrize(
    ("topic", "word"),
    [("alerts/x", "stream 'quotes'"), ("quotes//x", "empty level"), ("quotes/*", "no level may be *"), ("", "empty")],
)
def test_a_topic_that_does_not_belong_is_refused(topic: str, word: str) -> None:
    stream = Stream("quotes")
    with pytest.raises(TopicError, match=word.replace("*", r"\*")):
        stream.check_topics(["quotes/x", topic])
    assert topic not in stream.known_topics


def test_what_streams_remember_is_bounded_together() -> None:
    bound = 5 * (len("quotes/1") + TOPIC_OVERHEAD_BYTES)
    every = Streams(Limits(known_topics_bytes=bound))
    both = [stream for name in ("quotes", "alerts") if (stream := every.find(name)) is not None]
    for number in range(10):
        for stream in both:
            stream.check_topics([f"{stream.name}/{number}"])
            stream.keep_lane(f"{stream.name}/{number}", ())
        assert sum(len(stream.known_topics) + len(stream.lanes) for stream in both) <= 5
        every.validate()


def test_interest_changes_only_when_the_attributes_do() -> None:
    stream = Stream("quotes")
    assert not stream.show_interest(())
    assert stream.show_interest(("price", "symbol"))
    assert stream.interest == ("price", "symbol")
    assert not stream.show_interest(("price", "symbol"))
    assert stream.show_interest(())
    assert stream.interest == ()


def test_too_many_attributes_are_asked_for_as_all() -> None:
    stream = Stream("quotes")
    many = [f"a{number}" for number in range(INTEREST_ATTRIBUTES_MAX + 1)]
    assert stream.show_interest(many)
    assert stream.interest is None
    assert not stream.show_interest([*many[1:], "b"])


def test_lanes_are_forgotten_when_subscriptions_change() -> None:
    stream = Stream("quotes")
    stream.keep_lane("quotes/x", ())
    stream.subscriptions_changed()
    assert stream.lanes == {}


def test_streams_come_into_being_by_use_up_to_their_number() -> None:
    every = Streams(Limits(streams=2))
    first, second = every.find("a"), every.find("b")
    assert first is not None and second is not None
    assert every.find("a") is first
    first.index.add(1, parse_pattern("a"))
    second.index.add(2, parse_pattern("b"))
    assert every.find("c") is None
    second.index.remove(2)
    assert every.find("c") is not None, "a stream that nobody uses makes room"
    assert list(every.by_name) == ["a", "c"]
    every.validate()


def test_a_stream_has_the_settings_of_its_schema_whether_it_was_there_before_or_came_later() -> None:
    streams = Streams()
    quotes = streams.find("quotes")
    assert quotes is not None
    assert quotes.plain
    streams.declare("quotes", {"durability": "stored"})
    streams.declare("alerts", {"verify": True})
    streams.declare("quotes", {"durability": "stored", "attributes": {}})
    alerts = streams.find("alerts")
    assert alerts is not None
    assert (quotes.settings, quotes.plain) == (StreamSettings("stored"), False)
    assert (alerts.settings, alerts.plain) == (StreamSettings(verify=True), False)
    streams.undeclare("quotes")
    assert quotes.plain
    assert streams.settings_of("quotes") == DEFAULTS
    streams.validate()
    stored, verified = StreamSettings("stored"), StreamSettings(verify=True)
    assert streams.take_changes() == [
        ("quotes", DEFAULTS, stored),
        ("alerts", DEFAULTS, verified),
        ("quotes", stored, DEFAULTS),
    ], "told when settings change, and not when a schema does"

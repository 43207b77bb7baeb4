"""The workload: what is drawn is well-formed where it should be, bad where it should be, and covers the language."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.simulator.workloads import Traits, Workload, event_name
from headgate.matching import MatchingError, check_topic, parse_condition, parse_pattern
from headgate.protocol.data import Batch, decode_record
from headgate.protocol.errors import ProtocolViolation


def refusal_of(pattern: str, condition: str, exact: bool) -> str:
    try:
        parse_pattern(pattern, exact=exact)
        if condition:
            parse_condition(condition)
    except MatchingError as error:
        return type(error).__name__
    return ""


def test_subscriptions_parse_exactly_when_they_should() -> None:
    workload = Workload(Random(1))
    seen = set()
    for _ in range(500):
        pattern, condition, exact, bad = workload.subscription(0.3)
        refusal = refusal_of(pattern, condition, exact)
        assert bool(refusal) == bad, (pattern, condition)
        seen.add(refusal)
    assert seen == {"", "PatternError", "ConditionError"}


def test_conditions_use_the_whole_language() -> None:
    workload = Workload(Random(2))
    text = " ".join(workload.condition() for _ in range(500))
    for word in ("=", "<>", "BETWEEN", "IN (", "NOT IN", "LIKE", "IS NULL", "IS NOT NULL", "AND", "OR", "NOT (", "*"):
        assert word in text


def test_batches_are_of_one_stream_and_well_formed() -> None:
    workload = Workload(Random(3))
    for number in range(300):
        batch = workload.batch(f"x:{number}", Traits(), {})
        batch.check()
        assert len({topic.split("/")[0] for topic in batch.topic_list()}) == 1
        for topic in batch.topic_list():
            check_topic(topic)
        names = [event_name(decode_record(record)[1]) for record in batch.pieces()]
        assert names == [f"x:{number}:{row}" for row in range(batch.count)]


def test_columns_agree_with_the_records_and_are_sometimes_missing() -> None:
    workload = Workload(Random(4))
    missing = 0
    for number in range(200):
        batch = workload.batch(f"x:{number}", Traits(), {"quotes": ["price"], "alerts": []})
        for name in batch.columns:
            assert repr(list(batch.column(name) or ())) == repr(list(batch.derived(name)))
        missing += not batch.complete
    assert 20 < missing < 180


def is_refused(batch: Batch) -> bool:
    try:
        for topic in batch.topic_list():
            check_topic(topic)
        for name in batch.columns:
            batch.column(name)
    except (MatchingError, ProtocolViolation):
        return True
    return False


def test_a_spoiled_batch_is_one_that_the_broker_must_refuse_if_it_looks() -> None:
    workload = Workload(Random(5))
    for number in range(200):
        batch = workload.batch(f"x:{number}", Traits(), {})
        assert not is_refused(batch)
        assert is_refused(workload.spoil(batch))


def test_all_kinds_of_clients_are_drawn() -> None:
    drawn = [Traits.drawn(Random(seed), 0.5) for seed in range(100)]
    assert {traits.forgetful for traits in drawn} == {True, False}
    assert min(traits.credit for traits in drawn) == 1
    assert any(traits.grant_seconds for traits in drawn)
    assert all(Traits.drawn(Random(seed), 0.0).grant_seconds == 0.0 for seed in range(50))


@pytest.mark.parametrize(
    ("body", "name"), [(b"a:1:2 xxx", "a:1:2"), (b"a:1:2", "a:1:2"), (b"", ""), (b"\xff x", "\ufffd")]
)
def test_an_event_names_itself(body: bytes, name: str) -> None:
    assert event_name(body) == name

"""The simulated producer: it opens itself, sends again what has no answer, and sees when the cluster forgets."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.engine import Violation
from headgate.broker.simulator.scenarios import LogOptions, LogScenario
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Error, Goodbye, Puback, Publish, Scope


def run_of(seconds: float = 4.0) -> LogScenario:
    run = LogScenario(LogOptions(1, nodes=2, seconds=seconds, producers=1, faults=()))
    run.play()
    return run


def test_without_faults_everything_is_published_once_and_acknowledged() -> None:
    run = run_of()
    assert 0 < len(run.history.published) == len(run.history.acknowledged)
    assert run.history.refused == 0
    assert run.stored.checked >= len(run.history.published)


def test_it_sees_when_it_is_told_of_less_than_was_acknowledged() -> None:
    run = run_of()
    producer = run.producers[0]
    producer._open = False
    with pytest.raises(Violation, match="Forgotten"):
        producer._hear(Answer(producer._request, {"next": 0}))


def test_only_the_answer_to_what_it_asked_last_counts() -> None:
    producer = run_of().producers[0]
    producer._open = False
    producer._ask()
    producer._hear(Answer(producer._request - 1, {"next": 0}))
    assert not producer._open
    producer._hear(Answer(producer._request, {"next": producer.numbers}))
    assert producer._open


def test_what_is_refused_for_want_of_disks_is_sent_again_with_the_same_stamp() -> None:
    run = run_of()
    producer, said = run.producers[0], []
    assert producer._connection is not None
    producer._connection.client_send = said.append  # type: ignore[method-assign]
    producer.publish()
    (first,) = said
    assert isinstance(first, Publish)
    producer._hear(Error(ErrorCode.NOT_STORED, Scope.PUBLISH, first.sequence, "full"))
    producer._hear(Puback(first.sequence))
    assert producer.unanswered, "refused is not acknowledged"
    run.world.run_for(1.0)
    again = [message for message in said[1:] if isinstance(message, Publish)]
    if again:
        assert again[0].stamp == first.stamp
    else:
        producer._hear(Answer(producer._request, {"next": producer.unanswered[0].number}))
        assert said[-1].stamp == first.stamp


def test_being_shut_out_without_a_newer_epoch_is_a_broken_promise() -> None:
    producer = run_of().producers[0]
    with pytest.raises(Violation, match="Fenced"):
        producer._hear(Error(ErrorCode.FENCED, Scope.REQUEST, 1, "over"))
    producer._hear(Goodbye(0, ""))
    assert not producer._open

"""A connection for a piece of work: errors come in the words of the source, with the option's name."""

from __future__ import annotations

import pytest

from headgate.protocol import errors as wire
from headgate.protocol.errors import ErrorCode, HeadgateError
from headgate.protocol.spark.connecting import connected, translated
from headgate.protocol.spark.errors import BadRow, ConnectorError, NoBroker, ProducerFenced, RefusedByBroker
from tests.support.fake_broker import fake_broker
from tests.support.threaded import in_thread


@pytest.mark.parametrize(
    ("error", "kind", "word"),
    [
        (wire.Fenced("job/0", 7, "newer"), ProducerFenced, "job/0"),
        (wire.Refused(ErrorCode.UNSUPPORTED, "headgate schema put"), RefusedByBroker, "headgate schema put"),
        (wire.OutOfSequence("job/0", 7, "hole"), RefusedByBroker, "job/0"),
        (wire.CannotConnect("one:7400", "no route"), NoBroker, "no route"),
        (wire.ConnectionLost("reset"), NoBroker, "bootstrap.servers"),
        (wire.UnknownOutcome(5, "gone"), NoBroker, "gone"),
        (wire.LocalError("too large"), ConnectorError, "too large"),
    ],
)
def test_every_error_of_the_client_has_its_words(error: HeadgateError, kind: type, word: str) -> None:
    found = translated(error, "one:7400")
    assert type(found) is kind
    assert word in str(found)


def test_nobody_there() -> None:
    with pytest.raises(NoBroker, match="CANNOT_CONNECT"), connected("127.0.0.1:1", 0.0, "test"):
        pass


def test_a_client_for_the_block_and_its_errors() -> None:
    with in_thread(fake_broker) as broker:
        address = broker.call(lambda fake: fake.address)
        with connected(address, 1.0, "test") as client:
            assert client.connected
        assert not client.connected
        with pytest.raises(BadRow), connected(address, 1.0, "test"):
            raise BadRow("topic", "as it is")
        with pytest.raises(ConnectorError, match="mine"), connected(address, 1.0, "test"):
            raise wire.LocalError("mine")

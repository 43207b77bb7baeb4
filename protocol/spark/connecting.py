"""A connection to the cluster for one piece of work, and the client's errors in the words of this source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headgate.protocol.blocking import BlockingClient, connect_blocking
from headgate.protocol.errors import CannotConnect, ConnectionLost, Fenced, HeadgateError, Refused, UnknownOutcome

from .errors import ConnectorError, NoBroker, ProducerFenced, RefusedByBroker
from .options import Access

__all__ = ["connected", "translated"]

NOBODY = Access()


@contextmanager
def connected(servers: str, seconds: float, name: str, access: Access = NOBODY) -> Iterator[BlockingClient]:
    """A client for the block; brokers that are lost are looked for so many seconds. Raises only ConnectorError."""
    try:
        with connect_blocking(
            servers,
            name=name,
            retry_seconds=seconds,
            wait_seconds=seconds,
            tls_ca=access.tls_ca,
            tls_cert=access.tls_cert,
            tls_key=access.tls_key,
            user=access.user,
            password=access.password,
            token=access.token,
        ) as client:
            yield client
    except ConnectorError:
        raise
    except HeadgateError as error:
        raise translated(error, servers) from error


def translated(error: HeadgateError, servers: str) -> ConnectorError:
    """What a user of Spark is told."""
    if isinstance(error, Fenced):
        return ProducerFenced(error.producer, error.epoch)
    if isinstance(error, Refused):
        return RefusedByBroker(error.code, error.text)
    if isinstance(error, CannotConnect | ConnectionLost | UnknownOutcome):
        return NoBroker(servers, str(error))
    return ConnectorError(str(error))

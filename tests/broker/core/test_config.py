"""NodeConfig: identity of a broker and of a life of it."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest

from headgate.broker.core.config import NodeConfig, broker_id


def test_a_broker_is_the_first_eight_bytes_of_the_hash_of_its_name() -> None:
    assert broker_id("broker-1") == int(hashlib.sha1(b"broker-1").hexdigest()[:16], 16)
    assert 0 <= broker_id("Γεια") < 2**64


def test_an_origin_names_broker_and_life() -> None:
    config = NodeConfig("broker-1", 255)
    assert config.origin == f"{broker_id('broker-1'):016x}-ff"
    assert NodeConfig("broker-1", 256).origin != config.origin != NodeConfig("broker-2", 255).origin


def test_a_configuration_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        NodeConfig("broker-1", 1).name = "other"  # type: ignore[misc]


def test_the_defaults_are_those_of_the_design() -> None:
    config = NodeConfig("broker-1", 1)
    assert config.grace_seconds == 10.0
    assert config.slow_consumer == "drop"

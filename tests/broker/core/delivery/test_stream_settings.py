"""Stream settings: what a schema may say about its stream, what it means, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.delivery import SETTINGS, StreamSettings, check_settings, read_settings
from headgate.broker.core.delivery.streams import DEFAULTS
from headgate.broker.core.limits import RETENTION_BYTES_MIN
from headgate.protocol.errors import Refused


@pytest.mark.parametrize("schema", [{}, {"attributes": {"price": {"type": "int"}}}, None, [1]])
def test_a_schema_that_says_nothing_leaves_everything_as_it_was(schema: Any) -> None:
    assert read_settings(schema) == DEFAULTS == StreamSettings("memory", False, False, None, None, "anchored")
    assert not DEFAULTS.stored


@pytest.mark.parametrize(
    ("schema", "settings"),
    [
        ({"durability": "stored"}, StreamSettings("stored")),
        ({"audit": True}, StreamSettings("stored", audit=True, verify=True)),
        ({"audit": True, "verify": False}, StreamSettings("stored", audit=True)),
        ({"verify": True}, StreamSettings("memory", verify=True)),
        ({"durability": "stored", "retention_seconds": 60}, StreamSettings("stored", retention_seconds=60)),
        (
            {"audit": True, "retention_bytes": RETENTION_BYTES_MIN},
            StreamSettings("stored", True, True, retention_bytes=RETENTION_BYTES_MIN),
        ),
        ({"retention_bytes": None, "retention_seconds": None}, DEFAULTS),
        ({"placement": "counting"}, StreamSettings(placement="counting")),
        ({"dynamic": "local"}, StreamSettings(dynamic="local")),
        (
            {"audit": True, "verify": False, "structure.l": 2048},
            StreamSettings("stored", audit=True, structure_l=2048),
        ),
        (
            {"structure.routing": "flood", "structure.l": 256, "structure.k": 2, "structure.n": 12},
            StreamSettings(structure_routing="flood", structure_l=256, structure_k=2, structure_n=12),
        ),
        ({"structure.map": "fold"}, DEFAULTS),
        ({"structure.map": "3a0c100h"}, StreamSettings(structure_map="3a0c100h")),
    ],
)
def test_settings_are_read_as_they_are_written(schema: dict[str, Any], settings: StreamSettings) -> None:
    check_settings(schema)
    assert read_settings(schema) == settings
    assert settings.stored == (settings.durability == "stored")


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"durability": "disk"}, "memory or stored, not 'disk'"),
        ({"placement": ["anchored"]}, "anchored or counting"),
        ({"dynamic": "mfd"}, "dynamic is auto or local: .* measured, and not served, not 'mfd'"),
        ({"structure.routing": "tree"}, "kbsp or kbpp or flood, not 'tree'"),
        ({"structure.l": 100}, "from 8 to 65536, a multiple of 8, not 100"),
        ({"structure.l": 8.0}, "a whole number"),
        ({"structure.k": 0}, "from 1 to 4, not 0"),
        ({"structure.n": 3}, "from 4 to 12, not 3"),
        ({"structure.n": True}, "from 4 to 12"),
        ({"structure.map": 3}, "structure.map is text, not 3"),
        ({"structure.map": "3i"}, "headgate schema learn"),
        ({"structure.map": "300a", "structure.l": 256}, "headgate schema learn"),
        ({"audit": 1}, "audit is true or false"),
        ({"verify": "yes"}, "verify is true or false"),
        ({"retention_seconds": 0.5}, "from 1 on"),
        ({"retention_seconds": float("nan")}, "from 1 on"),
        ({"retention_seconds": float("inf")}, "from 1 on"),
        ({"retention_bytes": True}, "a number"),
        ({"retention_bytes": "1G"}, "or null"),
        ({"durability": "stored", "retention_bytes": 1024}, "from 4194304 on, or null, not 1024"),
        ({"audit": True, "durability": "memory"}, "durability is stored"),
        ({"verify": True, "structure.l": 2048}, "structure.l is about .* a broker never parses a document"),
        ({"audit": True, "structure.routing": "kbsp"}, "structure.routing is about .* Say verify false"),
        ({"retention_bytes": RETENTION_BYTES_MIN}, "retention_bytes is about a stored stream"),
        ({"durability": "memory", "retention_seconds": 60}, "say durability stored as well, or leave"),
    ],
)
def test_settings_that_make_no_sense_are_refused(schema: dict[str, Any], word: str) -> None:
    with pytest.raises(Refused, match=word):
        check_settings(schema)


_VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["stored", "memory", "counting", ""])
)


@given(st.dictionaries(st.sampled_from(SETTINGS), _VALUES | st.lists(st.integers())))
def test_whatever_another_version_wrote_is_read_and_audit_always_has_a_log(schema: dict[str, Any]) -> None:
    settings = read_settings(schema)
    assert settings.stored or not settings.audit
    assert settings.durability in ("memory", "stored")
    try:
        check_settings(schema)
    except Refused:
        return
    assert all(getattr(settings, name) == value for name, value in schema.items() if name != "durability")

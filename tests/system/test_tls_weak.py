"""TLS that is too weak for the three ports: older versions, and suites without forward secrecy or with old ciphers.

Each handshake offers one thing, by a client that allows everything. That this client could shake hands so is seen at a
listener in memory that allows everything as well: what the system's own OpenSSL cannot say any more proves nothing.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.child_broker import Child, child_broker
from tests.system.test_tls import made, of_clients, of_peers

__all__ = ["made"]

pytestmark = pytest.mark.slow

V = ssl.TLSVersion
EVERYTHING = "ALL:COMPLEMENTOFALL:@SECLEVEL=0"
STRONG = ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305")


def client(made: Path, version: V, suites: str = EVERYTHING) -> ssl.SSLContext:
    """Speaks this version alone, shows a certificate that any port takes, and asks for nobody's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(made / "b.pem", made / "b.key")
    with warnings.catch_warnings():  # of versions that Python advises against, and so do we
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    context.set_ciphers(suites)
    return context


def could(context: ssl.SSLContext, made: Path) -> bool:
    """Whether a listener that allows everything shakes hands with it."""
    listener = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listener.load_cert_chain(made / "a.pem", made / "a.key")
    listener.minimum_version = V.MINIMUM_SUPPORTED
    listener.set_ciphers(EVERYTHING)
    here, there = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [context.wrap_bio(here, there), listener.wrap_bio(there, here, server_side=True)]
    for _ in range(4):
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
            ends.remove(end)
    return not ends


def shakes(context: ssl.SSLContext, address: str) -> bool:
    """Whether that port does, and still stands to it a word later: in TLS 1.3 a client is refused after its part."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), 10) as plain, context.wrap_socket(plain) as secure:
            secure.settimeout(0.2)
            try:
                return secure.recv(1) != b""
            except TimeoutError:
                return True
    except (ssl.SSLError, ConnectionError):
        return False


def ports(child: Child) -> dict[str, str]:
    """Each port that speaks TLS."""
    line: dict[str, Any] = child.lines("listening")[-1]
    return {name: line[name] for name in ("clients", "peers", "admin")}


@pytest.mark.parametrize("setting", ["1.3", "1.2"])
async def test_older_versions_are_refused_at_each_port(setting: str, made: Path, tmp_path: Path) -> None:
    spoken = {V.TLSv1: False, V.TLSv1_1: False, V.TLSv1_2: setting == "1.2", V.TLSv1_3: True}
    files = {**of_clients(made, tls_version=setting), **of_peers(made, "a")}
    async with child_broker(tmp_path, **files) as child:
        for version, expected in spoken.items():
            context = client(made, version)
            if not could(context, made):
                assert version < V.TLSv1_2, "the client of this test does not work"
                continue
            for name, address in ports(child).items():
                assert await asyncio.to_thread(shakes, context, address) is expected, (name, version.name)


async def test_weak_suites_are_refused_at_each_port_where_1_2_is_spoken(made: Path, tmp_path: Path) -> None:
    every = {one["name"] for one in client(made, V.TLSv1_2).get_ciphers() if one["protocol"] != "TLSv1.3"}
    offered = sorted(name for name in every if could(client(made, V.TLSv1_2, f"{name}:@SECLEVEL=0"), made))
    weak = [name for name in offered if name not in STRONG]
    assert set(STRONG) <= set(offered) and "ECDHE-ECDSA-AES128-SHA" in weak, "the client of this test is strong itself"
    files = {**of_clients(made, tls_version="1.2"), **of_peers(made, "a")}
    async with child_broker(tmp_path, **files) as child:
        for name, address in ports(child).items():
            context = partial(client, made, V.TLSv1_2)
            assert not await asyncio.to_thread(shakes, context(f"{':'.join(weak)}:@SECLEVEL=0"), address), name
            for suite in offered:
                there = await asyncio.to_thread(shakes, context(f"{suite}:@SECLEVEL=0"), address)
                assert there is (suite in STRONG), (name, suite)

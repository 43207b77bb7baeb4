"""Web tokens at a real broker: who comes in by one, when that ends, and what is said where of one that is wrong."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import headgate
from headgate.ops.cli import main
from headgate.protocol.blocking import connect_blocking
from headgate.protocol.errors import HeadgateError, Refused, Unauthorised
from tests.broker.daemon.access.test_web_tokens import AUDIENCE, ISSUER, public_keys, raw, signed
from tests.support.child_broker import child_broker
from tests.system.test_rights import ROLES, command

pytestmark = pytest.mark.slow


def token_of(user: str, *roles: str, seconds: float = 60, **claims: Any) -> str:
    return signed(sub=user, roles=list(roles), exp=int(time.time() + seconds), **claims)


async def test_a_web_token_is_a_token_wherever_one_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: tmp_path / f"{name}.toml" for name in ("users", "roles")}
    files["users"].write_text("")
    files["roles"].write_text(ROLES)
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": public_keys()}))
    web = {"jwt_keys": keys, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
    async with child_broker(tmp_path, **files, **web) as child:
        at, admin = child.address, child.lines("listening")[-1]["admin"]

        def metrics(token: str) -> tuple[int, str]:
            request = urllib.request.Request(f"http://{admin}/metrics", headers={"Authorization": f"Bearer {token}"})
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return int(answer.status), answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        wrong = {
            "jwt_expired": token_of("ann", "reader", seconds=-1),
            "jwt_issuer": token_of("ann", "reader", iss="https://evil.example"),
            "jwt_audience": token_of("ann", "reader", aud="other"),
            "jwt_key": token_of("ann", "reader", kid="../../etc/passwd"),
            "jwt_algorithm": raw({"alg": "none", "kid": "r"}, {"sub": "ann"}),
            "jwt_signature": token_of("ann", "reader")[:-8] + "AAAAAAAA",
            "jwt_claims": signed(exp=None),
        }
        said = set()
        for reason, text in wrong.items():
            with pytest.raises(Unauthorised) as refused:
                await headgate.connect(at, token=text)
            said.add(str(refused.value).partition(": ")[2])
            assert child.lines("client not let in")[-1]["reason"] == reason
        assert len(said) == 1 and "unknown, revoked or expired" in said.pop(), "a client is told no more than that"
        assert await asyncio.to_thread(metrics, wrong["jwt_expired"]) == (
            401,
            "this token is unknown, revoked or expired\n",
        )
        with pytest.raises(HeadgateError, match="at most 3000"):
            await headgate.connect(at, token=token_of("ann", more="x" * 3000))

        async with await headgate.connect(at, token=token_of("feed", "feed")) as feed:
            with pytest.raises(Refused, match="feed may not ask status"):
                await feed.ask("status")
            short = token_of("ann", "reader", "offline_access", seconds=4)
            ends = time.time() + 4
            async with await headgate.connect(at, token=short) as ann:
                orders = await ann.subscribe("orders")
                with pytest.raises(Refused, match="has to be in the file of users"):
                    await ann.subscribe("orders", durable="mine")
                await feed.publish("orders", {"n": 1})
                assert (await anext(orders)).attributes == {"n": 1}
                with pytest.raises(HeadgateError, match="the token of ann has expired"):
                    await asyncio.wait_for(anext(orders), 30)
                assert time.time() > ends - 1, "not before its second"
            assert feed.reconnects == 0

        def publish() -> None:
            with connect_blocking(at, token=token_of("feed", "feed")) as client:
                client.publish("orders", {"n": 2})

        await asyncio.to_thread(publish)
        monkeypatch.setenv("HEADGATE_TOKEN", token_of("root", "operator"))
        assert await asyncio.to_thread(main, ["status", "--server", at]) == 0
        assert await command("status", "--server", at, "--token", token_of("root", "auditor")) == 1
        status, text = await asyncio.to_thread(metrics, token_of("prometheus", "auditor"))
        assert status == 200 and 'headgate_not_let_in_total{reason="jwt_key"} 1.0' in text
        assert (await asyncio.to_thread(metrics, token_of("ann", "reader")))[0] == 403

        # The issuer's key is not trusted any more: whoever it let in is gone within a second.
        async with await headgate.connect(at, token=token_of("ann", "reader")) as ann:
            orders = await ann.subscribe("orders")
            keys.write_text(json.dumps({"keys": public_keys()[1:]}))
            with pytest.raises(HeadgateError, match="no longer good"):
                await asyncio.wait_for(anext(orders), 10)
        assert not child.lines("fault while handling an input")
        assert not any(text in child.stderr for text in wrong.values())

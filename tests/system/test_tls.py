"""TLS on the three ports of real brokers: who gets in, who does not and hears why; certificates that are replaced."""

from __future__ import annotations

import asyncio
import datetime
import json
import signal
import socket
import ssl
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import headgate
from headgate.ops.cli import main
from headgate.protocol.blocking import connect_blocking
from headgate.protocol.errors import CannotConnect
from tests.support.child_broker import Child, child_broker
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `headgate cert init` for three brokers."""
    folder = tmp_path_factory.mktemp("certificates")
    assert main(["cert", "init", str(folder), "--brokers", "a,b,c"]) == 0
    return folder


def of_clients(made: Path, name: str = "a", **more: Any) -> dict[str, Any]:
    """Settings of a broker that speaks TLS with clients."""
    return {"tls_cert": made / f"{name}.pem", "tls_key": made / f"{name}.key", **more}


def of_peers(made: Path, name: str, files: str = "", authority: Path | None = None, **more: Any) -> dict[str, Any]:
    """Settings of a broker of that name that shows others the certificate of those files."""
    cert = made / f"{files or name}.pem"
    key = made / f"{files or name}.key"
    ca = authority or made / "ca.pem"
    return {"name": name, "peer_tls_cert": cert, "peer_tls_key": key, "peer_tls_ca": ca, **more}


def shown_by(address: str, made: Path) -> bytes:
    """The certificate that a new handshake shows."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=str(made / "ca.pem"))
    with (
        socket.create_connection((host, int(port)), 10) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        shown = secure.getpeercert(binary_form=True)
    assert shown is not None
    return shown


def told(child: Child, words: str) -> bool:
    """Whether its log says so."""
    return words in child.stderr


def peers_of(child: Child) -> str:
    """Where it listens for other brokers."""
    return str(child.lines("listening")[-1]["peers"])


async def test_clients_of_both_kinds_publish_and_subscribe_over_tls(made: Path, tmp_path: Path) -> None:
    async with child_broker(tmp_path, **of_clients(made)) as child:
        ca, bodies = made / "ca.pem", [f"{number}".encode() + b"x" * 5_000 for number in range(2_000)]
        async with await headgate.connect(f"tls://{child.address}", tls_ca=ca) as client:
            subscription = await client.subscribe("quotes", where="n >= 0")

            def publish() -> None:
                with connect_blocking(child.address, tls_ca=ca) as publisher:
                    for number, body in enumerate(bodies):
                        publisher.publish("quotes", {"n": number}, body)

            publishing = asyncio.get_running_loop().run_in_executor(None, publish)
            got = [await anext(subscription) for _ in bodies]
            await publishing
        assert [event.body for event in got] == bodies

        def read() -> int:
            with connect_blocking(f"tls://{child.address}", tls_ca=ca) as reader:
                heard = reader.subscribe("quotes")
                with connect_blocking(f"tls://{child.address}", tls_ca=ca) as publisher:
                    for body in bodies:
                        publisher.publish("quotes", {}, body)
                return sum(1 for _, _ in zip(bodies, heard, strict=False))

        assert await asyncio.to_thread(read) == len(bodies)


async def test_who_may_not_connect_hears_why(made: Path, tmp_path: Path) -> None:
    assert main(["cert", "init", str(tmp_path / "other"), "--brokers", "a"]) == 0
    async with child_broker(tmp_path, **of_clients(made)) as child:
        refusals = {
            child.address: {},
            f"tls://{child.address}": {},
            f"tls://{child.address} ": {"tls_ca": tmp_path / "other" / "ca.pem"},
        }
        words = ("TLS", "not trusted", "not trusted")
        for (address, files), word in zip(refusals.items(), words, strict=True):
            with pytest.raises(CannotConnect, match=word):
                await headgate.connect(address.strip(), **files)
            with pytest.raises(CannotConnect, match=word):
                await asyncio.to_thread(connect_blocking, address.strip(), **files)
    async with child_broker(tmp_path) as plain:
        with pytest.raises(CannotConnect, match="no TLS connection"):
            await headgate.connect(f"tls://{plain.address}", tls_ca=made / "ca.pem")


@pytest.mark.parametrize("asked", ["optional", "required"])
async def test_clients_show_certificates_where_they_must(asked: str, made: Path, tmp_path: Path) -> None:
    assert main(["cert", "init", str(tmp_path / "other"), "--brokers", "a"]) == 0
    settings = of_clients(made, tls_ca=made / "ca.pem", tls_client_certs=asked)
    ca = made / "ca.pem"
    async with child_broker(tmp_path, **settings) as child:
        address = f"tls://{child.address}"
        own = {"tls_cert": made / "client.pem", "tls_key": made / "client.key"}
        async with await headgate.connect(address, tls_ca=ca, **own) as client:
            await client.publish("quotes", {"n": 1})
        if asked == "optional":
            async with await headgate.connect(address, tls_ca=ca) as client:
                await client.publish("quotes", {"n": 1})
        else:
            with pytest.raises(CannotConnect):
                await headgate.connect(address, tls_ca=ca)
        others = {"tls_cert": tmp_path / "other" / "client.pem", "tls_key": tmp_path / "other" / "client.key"}
        with pytest.raises(CannotConnect):
            await headgate.connect(address, tls_ca=ca, **others)


KINDS = {
    "expired": (-10, -1, True, "certificate has expired"),
    "not yet valid": (1, 10, True, "certificate is not yet valid"),
    "signed by itself": (-1, 10, False, "self-signed certificate"),
}
"""What is wrong -> days until it is valid, and until it ends, whether our authority signed it, and OpenSSL's words."""


def certificate(folder: Path, made: Path, kind: str, name: str) -> tuple[Path, Path]:
    """A pair whose certificate is wrong in this way alone, and proves that name."""
    begins, ends, is_signed, _ = KINDS[kind]
    authority = x509.load_pem_x509_certificate((made / "ca.pem").read_bytes())
    signer = serialization.load_pem_private_key((made / "ca.key").read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    title = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(title)
        .issuer_name(authority.subject if is_signed else title)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=begins))
        .not_valid_after(now + datetime.timedelta(days=ends))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), x509.DNSName("localhost")]), critical=False)
        .sign(signer if is_signed else key, hashes.SHA256())  # type: ignore[arg-type]
    )
    pair = folder / f"{name}.pem", folder / f"{name}.key"
    pair[0].write_bytes(built.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pair[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return pair


@pytest.mark.parametrize("asked", ["optional", "required"])
@pytest.mark.parametrize("kind", list(KINDS))
async def test_a_clients_certificate_that_is_not_good_is_refused_and_its_broker_hears_why(
    kind: str, asked: str, made: Path, tmp_path: Path
) -> None:
    cert, key = certificate(tmp_path, made, kind, "client")
    settings = of_clients(made, tls_ca=made / "ca.pem", tls_client_certs=asked)
    async with child_broker(tmp_path, **settings) as child:
        with pytest.raises(CannotConnect) as refused:
            await headgate.connect(f"tls://{child.address}", tls_ca=made / "ca.pem", tls_cert=cert, tls_key=key)
        assert "valid today" in str(refused.value)
        with pytest.raises(CannotConnect) as refused:
            await asyncio.to_thread(
                connect_blocking, f"tls://{child.address}", tls_ca=made / "ca.pem", tls_cert=cert, tls_key=key
            )
        assert "valid today" in str(refused.value)
        await wait_until(lambda: bool(child.lines("TLS handshake failed")), 10)
        line = child.lines("TLS handshake failed")[0]
        assert (line["port"], line["reason"]) == ("clients", KINDS[kind][3])
        own = {"tls_cert": made / "client.pem", "tls_key": made / "client.key"}
        async with await headgate.connect(f"tls://{child.address}", tls_ca=made / "ca.pem", **own) as client:
            await client.publish("quotes", {"n": 1})


def shake_hands(address: str, made: Path, cert: Path, key: Path) -> bool:
    """Whether that side lets a connection with this pair live: over TLS 1.3 it says so behind the handshake."""
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(made / "ca.pem")
    context.load_cert_chain(cert, key)
    try:
        with (
            socket.create_connection((host, int(port)), 10) as plain,
            context.wrap_socket(plain) as secure,
        ):
            secure.settimeout(1.0)
            return secure.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


async def test_a_brokers_certificate_that_is_not_good_is_refused_with_its_reason(made: Path, tmp_path: Path) -> None:
    for name in ("a", "client", *KINDS):
        (tmp_path / name).mkdir()
    async with child_broker(tmp_path / "a", **of_peers(made, "a")) as one:
        for kind, (*_, words) in KINDS.items():
            pair = certificate(tmp_path / kind, made, kind, "b")
            assert not await asyncio.to_thread(shake_hands, peers_of(one), made, *pair)
            reasons = [(line["port"], line["reason"]) for line in one.lines("TLS handshake failed")]
            assert reasons[-1] == ("peers", words)
        assert await asyncio.to_thread(shake_hands, peers_of(one), made, made / "b.pem", made / "b.key")
        metrics = await asyncio.to_thread(metrics_of, one)
        assert f'headgate_tls_handshakes_failed_total{{port="peers"}} {len(KINDS)}.0' in metrics
        # A certificate of the authority that is good, and no broker's: what clients have.
        async with child_broker(tmp_path / "client", **of_peers(made, "client", join=peers_of(one))) as client:
            await wait_until(partial(told, client, "its certificate is for nobody"), 30)
            assert not one.lines("broker linked") and not client.lines("broker linked")


def metrics_of(child: Child) -> str:
    """What its admin port tells."""
    with urllib.request.urlopen(f"http://{child.lines('listening')[-1]['admin']}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


async def test_tls_1_2_is_spoken_only_where_a_setting_says_so(made: Path, tmp_path: Path) -> None:
    for version, spoken in (("1.3", False), ("1.2", True)):
        async with child_broker(tmp_path, **of_clients(made, tls_version=version)) as child:
            context = ssl.create_default_context(cafile=str(made / "ca.pem"))
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            host, _, port = child.address.rpartition(":")

            def shake(context: ssl.SSLContext = context, host: str = host, port: str = port) -> bool:
                try:
                    with socket.create_connection((host, int(port)), 10) as plain:
                        context.wrap_socket(plain, server_hostname=host).close()
                except ssl.SSLError:
                    return False
                return True

            assert await asyncio.to_thread(shake) is spoken


async def test_a_certificate_is_replaced_and_no_connection_ends(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    assert main(["cert", "init", str(folder), "--brokers", "a"]) == 0
    async with child_broker(tmp_path, **of_clients(folder)) as child:
        address = f"tls://{child.address}"
        async with await headgate.connect(address, tls_ca=folder / "ca.pem") as client:
            subscription = await client.subscribe("quotes")
            before = await asyncio.to_thread(shown_by, child.address, folder)
            key = (folder / "a.key").read_bytes()
            assert main(["cert", "init", str(folder), "--brokers", "a"]) == 0
            whole = (folder / "a.key").read_bytes()
            (folder / "a.key").write_bytes(key)  # half of a change: the new certificate with the old key
            child.signal(signal.SIGHUP)
            await wait_until(lambda: bool(child.lines("certificate not read again")), 10)
            assert await asyncio.to_thread(shown_by, child.address, folder) == before
            (folder / "a.key").write_bytes(whole)
            child.signal(signal.SIGHUP)
            await wait_until(lambda: bool(child.lines("certificate read again")), 10)
            assert await asyncio.to_thread(shown_by, child.address, folder) != before
            await client.publish("quotes", {"n": 1})
            assert (await anext(subscription)).attributes == {"n": 1}
            assert client.reconnects == 0


async def test_brokers_link_by_the_names_in_their_certificates(made: Path, tmp_path: Path) -> None:
    for name in "abcx":
        (tmp_path / name).mkdir()
    assert main(["cert", "init", str(tmp_path / "other"), "--brokers", "x"]) == 0
    async with child_broker(tmp_path / "a", **of_peers(made, "a")) as one:
        join = {"join": peers_of(one)}
        async with child_broker(tmp_path / "b", **of_peers(made, "b", **join)) as other:
            await wait_until(lambda: bool(other.lines("ready")), 30)
            async with (
                await headgate.connect(one.address) as publisher,
                await headgate.connect(other.address) as reader,
            ):
                subscription = await reader.subscribe("quotes", where="n > 1")
                await publisher.publish("quotes", {"n": 1})
                await publisher.publish("quotes", {"n": 2})
                assert (await anext(subscription)).attributes == {"n": 2}
            # One of the same authority that has another's certificate, one of another authority, and one that has none.
            async with (
                child_broker(tmp_path / "c", **of_peers(made, "c", files="b", **join)) as liar,
                child_broker(
                    tmp_path / "x", **of_peers(tmp_path / "other", "x", authority=made / "ca.pem", **join)
                ) as stranger,
                child_broker(tmp_path, name="plain", **join) as plain,
            ):
                await wait_until(partial(told, liar, "its certificate is for b"), 30)
                for outsider in (stranger, plain):
                    await wait_until(partial(told, outsider, "without a word"), 30)
                for child in (one, other, liar, stranger, plain):
                    linked = {line["broker"] for line in child.lines("broker linked")}
                    assert linked <= {"a", "b"}, child.stderr


async def test_the_admin_port_speaks_tls_too(made: Path, tmp_path: Path) -> None:
    async with child_broker(tmp_path, **of_clients(made)) as child:
        admin = child.lines("listening")[-1]["admin"]
        context = ssl.create_default_context(cafile=str(made / "ca.pem"))

        def get(path: str) -> str:
            with urllib.request.urlopen(f"https://{admin}{path}", context=context, timeout=10) as answer:
                return str(answer.read().decode())

        assert await asyncio.to_thread(get, "/healthz") == "ok\n"
        metrics = await asyncio.to_thread(get, "/metrics")
        assert 'headgate_certificate_expiry_timestamp_seconds{port="clients"} 1.' in metrics


async def test_the_command_line_speaks_it(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with child_broker(tmp_path, **of_clients(made, name="a")) as child:
        words = ["--server", f"tls://{child.address}", "--tls-ca", str(made / "ca.pem")]
        assert await asyncio.to_thread(main, ["status", "--json", *words]) == 0
        assert 800 < json.loads(capsys.readouterr().out)["certificate_days"]["clients"] < 826
        monkeypatch.setenv("HEADGATE_TLS_CA", str(made / "ca.pem"))
        assert await asyncio.to_thread(main, ["pub", "quotes", "--attr", "n=1", "--server", child.address]) == 0
        monkeypatch.setenv("HEADGATE_TLS_CA", str(made / "nothing.pem"))
        assert await asyncio.to_thread(main, ["pub", "quotes", "--attr", "n=1", "--server", child.address]) == 2
        assert "cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tls_cert": "a.pem"}, "a certificate needs its key"),
        ({"tls_client_certs": "required"}, "--tls-client-certs needs --tls-ca"),
        ({"peer_tls_cert": "a.pem", "name": "a"}, "brokers show each other"),
        ({"tls_cert": "none.pem", "tls_key": "none.key"}, "cannot be used"),
    ],
)
async def test_what_cannot_be_used_ends_the_start(settings: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=words):
        async with child_broker(tmp_path, **settings):
            pass

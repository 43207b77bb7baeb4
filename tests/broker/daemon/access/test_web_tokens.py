"""Web tokens: what a broker believes of them, and the known ways to make one believe more."""

from __future__ import annotations

import base64
import functools
import hmac
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from headgate.broker.daemon.access import AccessError, Door, DoorLimits, Gatekeeper, Guest, NotLetIn, WebTokenRules
from headgate.broker.daemon.access.limits import WEB_TOKEN_EARLY_SECONDS, WEB_TOKEN_LENGTH_MAX
from headgate.broker.daemon.access.web_tokens import Unproved, WebTokens, is_web_token
from tests.broker.daemon.access.test_access import asked

NOW = 1_800_000_000.0
ISSUER, AUDIENCE = "https://id.example", "headgate"
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "roles": ["trader"], "exp": NOW + 60}


@functools.cache
def rsa_key(bits: int = 2048) -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@functools.cache
def ec_key() -> Any:
    return ec.generate_private_key(ec.SECP256R1())


@functools.cache
def ed_key() -> Any:
    return ed25519.Ed25519PrivateKey.generate()


def jwk(algorithm: Any, key: Any, **more: Any) -> dict[str, Any]:
    return {**json.loads(algorithm.to_jwk(key)), **more}


def oct_jwk(secret: bytes, **more: Any) -> dict[str, Any]:
    return {"kty": "oct", "k": base64.urlsafe_b64encode(secret).rstrip(b"=").decode(), **more}


def public_keys() -> list[dict[str, Any]]:
    return [
        jwk(RSAAlgorithm, rsa_key().public_key(), kid="r", use="sig"),
        jwk(ECAlgorithm, ec_key().public_key(), kid="e", alg="ES256"),
        jwk(OKPAlgorithm, ed_key().public_key(), kid="d"),
    ]


def rules(folder: Path, keys: Any = None, **more: Any) -> WebTokenRules:
    file = folder / "jwks.json"
    file.write_text(json.dumps({"keys": public_keys() if keys is None else keys}))
    return WebTokenRules(file, ISSUER, AUDIENCE, **more)


def tokens(folder: Path, keys: Any = None, **more: Any) -> WebTokens:
    found = rules(folder, keys, **more).read()[0]
    assert found is not None
    return found


def signed(key: Any = None, algorithm: str = "RS256", kid: str | None = "r", **claims: Any) -> str:
    said = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return jwt.encode(said, key or rsa_key(), algorithm, headers=None if kid is None else {"kid": kid})


def raw(header: Mapping[str, Any], claims: Any, signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> WebTokens:
    """Made once: a property looks at it, and nothing in it changes."""
    return tokens(tmp_path_factory.mktemp("keys"))


def why_not(known: WebTokens, text: str, now: float = NOW) -> str:
    with pytest.raises(Unproved) as caught:
        known.prove(text, now)
    return caught.value.kind


def test_a_token_names_its_user_and_roles_and_its_key_is_the_credential(tmp_path: Path) -> None:
    known = tokens(tmp_path)
    for key, algorithm, kid in ((rsa_key(), "RS256", "r"), (rsa_key(), "PS256", "r"), (ec_key(), "ES256", "e")):
        proved = known.prove(signed(key, algorithm, kid), NOW)
        assert proved[0] == "ann" and proved[2:] == (("trader",), NOW + 60) and proved.credential in known.credentials
    assert known.prove(signed(ed_key(), "EdDSA", "d", aud=["other", AUDIENCE]), NOW).user == "ann"
    assert len(known.credentials) == 3
    only = tokens(tmp_path, [jwk(RSAAlgorithm, rsa_key().public_key())])
    assert only.prove(signed(kid=None), NOW).roles == ("trader",)


@pytest.mark.parametrize(
    ("claim", "said", "roles"),
    [
        ("roles", {"roles": "a b"}, ("a", "b")),
        ("roles", {"roles": ["b", "a", "b"]}, ("a", "b")),
        ("roles", {"roles": []}, ()),
        ("realm_access.roles", {"realm_access": {"roles": ["a"]}}, ("a",)),
        ("https://x.example/roles", {"https://x.example/roles": ["a"]}, ("a",)),
        ("a.b", {"a.b": ["exact"], "a": {"b": ["path"]}}, ("exact",)),
    ],
)
def test_where_the_roles_are(claim: str, said: dict[str, Any], roles: tuple[str, ...], tmp_path: Path) -> None:
    assert tokens(tmp_path, roles_claim=claim).prove(signed(**{"roles": None, **said}), NOW).roles == roles


@pytest.mark.parametrize(
    ("claims", "kind"),
    [
        ({"exp": NOW}, "jwt_expired"),
        ({"exp": NOW - 1e6}, "jwt_expired"),
        ({"exp": None}, "jwt_claims"),
        ({"exp": str(int(NOW + 60))}, "jwt_claims"),
        ({"exp": True}, "jwt_claims"),
        ({"exp": float("inf")}, "jwt_claims"),
        ({"exp": float("nan")}, "jwt_claims"),
        ({"exp": [NOW + 60]}, "jwt_claims"),
        ({"nbf": NOW + WEB_TOKEN_EARLY_SECONDS + 1}, "jwt_early"),
        ({"nbf": "now"}, "jwt_claims"),
        ({"iss": "https://id.example/"}, "jwt_issuer"),
        ({"iss": "https://evil.example"}, "jwt_issuer"),
        ({"iss": None}, "jwt_issuer"),
        ({"aud": "other"}, "jwt_audience"),
        ({"aud": ["other", "headgate2"]}, "jwt_audience"),
        ({"aud": None}, "jwt_audience"),
        ({"aud": {"headgate": 1}}, "jwt_audience"),
        ({"sub": None}, "jwt_claims"),
        ({"sub": 7}, "jwt_claims"),
        ({"sub": ""}, "jwt_claims"),
        ({"sub": "ann\n"}, "jwt_claims"),
        ({"sub": "a b"}, "jwt_claims"),
        ({"sub": "a" * 129}, "jwt_claims"),
        ({"roles": None}, "jwt_claims"),
        ({"roles": {"trader": True}}, "jwt_claims"),
        ({"roles": [["trader"]]}, "jwt_claims"),
    ],
)
def test_each_wrong_claim_has_its_reason(claims: dict[str, Any], kind: str, tmp_path: Path) -> None:
    known = tokens(tmp_path)
    # jwt.encode checks some claims of its own: signed by hand, with the key of the issuer.
    said = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    text = raw({"alg": "EdDSA", "kid": "d"}, said).rstrip(".")
    signature = base64.urlsafe_b64encode(ed_key().sign(text.encode())).rstrip(b"=").decode()
    assert why_not(known, f"{text}.{signature}") == kind


def test_what_is_a_little_early_is_an_issuers_clock(tmp_path: Path) -> None:
    assert tokens(tmp_path).prove(signed(nbf=int(NOW + WEB_TOKEN_EARLY_SECONDS - 1)), NOW).user == "ann"


def test_no_algorithm_and_one_that_is_not_allowed(tmp_path: Path) -> None:
    known = tokens(tmp_path)
    for name in ("none", "None", "NONE", "", None, 7, ["RS256"], "HS256", "rs256", "ES512"):
        assert why_not(known, raw({"alg": name, "kid": "r"}, CLAIMS)) == "jwt_algorithm", name
        assert why_not(known, raw({"alg": name, "kid": "r"}, CLAIMS, b"x" * 256)) == "jwt_algorithm", name
    assert why_not(known, raw({"kid": "r"}, CLAIMS)) == "jwt_algorithm"
    # Allowed here, and not for that key.
    assert why_not(known, signed(rsa_key(), "RS256", "e")) == "jwt_algorithm"
    assert why_not(known, signed(ec_key(), "ES256", "r")) == "jwt_algorithm"
    assert why_not(tokens(tmp_path, algorithms=("ES256",)), signed()) == "jwt_algorithm"


def test_a_public_key_is_no_secret(tmp_path: Path) -> None:
    """RFC 8725, 2.1: HS256 with the bytes of the RSA key that everybody has."""
    public = rsa_key().public_key()
    secret = b"s" * 32
    keys = [*public_keys(), oct_jwk(secret, kid="h")]
    known = tokens(tmp_path, keys, algorithms=("RS256", "ES256", "EdDSA", "HS256"))
    assert known.prove(signed(secret, "HS256", "h"), NOW).user == "ann"
    forms = [
        public.public_bytes(encoding, form)
        for encoding, form in (
            (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
            (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
            (serialization.Encoding.PEM, serialization.PublicFormat.PKCS1),
            (serialization.Encoding.DER, serialization.PublicFormat.PKCS1),
        )
    ]
    modulus = json.loads(json.dumps(public_keys()[0]))["n"].encode()
    for said in (*forms, modulus, json.dumps(public_keys()[0]).encode(), b""):
        text = raw({"alg": "HS256", "kid": "r"}, CLAIMS).rstrip(".")
        signature = base64.urlsafe_b64encode(hmac.digest(said, text.encode(), "sha256")).rstrip(b"=").decode()
        assert why_not(known, f"{text}.{signature}") == "jwt_algorithm"
        other = raw({"alg": "HS256", "kid": "h"}, CLAIMS).rstrip(".")
        signature = base64.urlsafe_b64encode(hmac.digest(said, other.encode(), "sha256")).rstrip(b"=").decode()
        assert why_not(known, f"{other}.{signature}") == "jwt_signature"


def test_a_key_is_found_by_its_name_and_by_nothing_else(tmp_path: Path) -> None:
    known = tokens(tmp_path)
    evil = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (tmp_path / "evil").write_text(json.dumps({"keys": [jwk(RSAAlgorithm, evil.public_key(), kid="evil")]}))
    names = [
        "evil",
        "../evil",
        str(tmp_path / "evil"),
        "/dev/null",
        "r\0",
        "R",
        "r' OR 1=1",
        "x" * 500,
    ]
    for name in names:
        assert why_not(known, signed(evil, kid=name)) == "jwt_key", name
    assert why_not(known, signed(evil, kid="")) == "jwt_key"
    assert why_not(known, signed(evil, kid=None)) == "jwt_key"
    for name in (7, ["r"], {"r": 1}, None):
        assert why_not(known, raw({"alg": "RS256", "kid": name}, CLAIMS, b"x")) in ("jwt_key", "jwt_malformed")
    assert why_not(known, signed(evil)) == "jwt_signature"
    own = jwk(RSAAlgorithm, evil.public_key())
    for header in ({"jwk": own}, {"jku": (tmp_path / "evil").as_uri()}, {"x5u": "https://evil.example"}):
        text = jwt.encode(CLAIMS, evil, "RS256", headers={"kid": "r", **header})
        assert why_not(known, text) == "jwt_signature"


def test_extensions_that_have_to_be_understood_are_not(tmp_path: Path) -> None:
    known = tokens(tmp_path)
    for header in ({"crit": ["exp"], "exp": 1}, {"crit": []}, {"b64": False, "crit": ["b64"]}, {"b64": False}):
        assert why_not(known, raw({"alg": "RS256", "kid": "r", **header}, CLAIMS, b"x")) == "jwt_malformed"


def test_what_is_no_token_and_what_is_too_long(tmp_path: Path) -> None:
    known = tokens(tmp_path)
    good = signed()
    assert is_web_token(good) and not is_web_token("hg_aaaaaaaa_" + "x" * 43) and not is_web_token(f"{good}.a.b")
    deep = base64.urlsafe_b64encode(b'{"alg":' + b"[" * 1900).rstrip(b"=").decode()
    for text in ("", ".", "..", "a.b.c", "e30.e30.", f"{good}\n", f" {good}", f"{good}=", f"{deep}.e30.", "é.e30."):
        assert why_not(known, text) in ("jwt_malformed", "jwt_algorithm"), text
    assert why_not(known, signed(more="x" * WEB_TOKEN_LENGTH_MAX)) == "jwt_malformed"
    assert why_not(known, raw({"alg": "RS256", "kid": "r"}, [1], b"x")) == "jwt_signature"


@pytest.mark.slow
@given(st.data())
def test_a_token_that_was_touched_proves_nothing(known: WebTokens, data: st.DataObject) -> None:
    good = _cached_token()
    place = data.draw(st.integers(0, len(good) - 1))
    letter = data.draw(st.sampled_from("ABCxyz019-_.=~ \0é"))
    touched = good[:place] + letter + good[place + 1 :]
    cut = data.draw(st.integers(0, 3)) * (data.draw(st.booleans()))
    touched = touched[: len(touched) - cut]
    if touched == good:
        assert known.prove(good, NOW).user == "ann"
    else:
        with pytest.raises(Unproved):
            known.prove(touched, NOW)


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "zip"]),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(max_size=9)
            | st.just("RS256")
            | st.just("r"),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        ),
    ),
    st.binary(max_size=300),
)
def test_whatever_a_header_holds_the_answer_is_no(known: WebTokens, header: dict[str, Any], signature: bytes) -> None:
    with pytest.raises(Unproved):
        known.prove(raw(header, CLAIMS, signature), NOW)


@functools.cache
def _cached_token() -> str:
    return signed(ed_key(), "EdDSA", "d")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[" * 5000, "not JSON"),
        ("[]", "a JWK set"),
        ('{"keys": {}}', "a JWK set"),
        ('{"keys": ["r"]}', "a JWK set"),
        ('{"keys": []}', "has no key"),
        ('{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "r"}]}', "key 'r'"),
        ('{"keys": [{"kty": "RSA", "kid": "r"}]}', "cannot be used"),
        ('{"keys": [{"kty": "none", "kid": "r"}]}', "has no key"),
        ('{"keys": [' + "{}," * 64 + "{}]}", "at most 64"),
        (" " * (256 * 1024 + 1), "more than"),
    ],
)
def test_a_damaged_file_of_keys_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text(text)
    with pytest.raises(AccessError, match=words):
        WebTokenRules(tmp_path / "jwks.json", ISSUER, AUDIENCE).read()


def test_keys_that_must_not_be_used(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"cannot read .*jwks_uri"):
        WebTokenRules(tmp_path / "none", ISSUER, AUDIENCE).read()
    with pytest.raises(AccessError, match="is private"):
        tokens(tmp_path, [jwk(RSAAlgorithm, rsa_key(), kid="r")])
    with pytest.raises(AccessError, match="1024 bits"):
        tokens(tmp_path, [jwk(RSAAlgorithm, rsa_key(1024).public_key(), kid="r")])
    with pytest.raises(AccessError, match="too short"):
        tokens(tmp_path, [oct_jwk(b"s" * 31, kid="h")], algorithms=("HS256",))
    with pytest.raises(AccessError, match="has no key"):
        tokens(tmp_path, [oct_jwk(b"s" * 32, kid="h")])  # a secret counts where HS is asked for alone
    first, second = public_keys()[:2]
    for rows in ([first, first], [first, {**second, "kid": 7}], [{**first, "kid": ""}, second]):
        with pytest.raises(AccessError, match="kid"):
            tokens(tmp_path, rows)
    bad = {"kty": "oct", "k": "!!hunter2!!", "kid": "h"}
    with pytest.raises(AccessError) as caught:
        tokens(tmp_path, [bad, {**bad, "kid": "i", "k": 7}], algorithms=("HS256",))
    assert "hunter2" not in str(caught.value)
    passed_over = [*public_keys(), {**first, "kid": "enc", "use": "enc"}, {"kty": "XYZ"}]
    assert len(tokens(tmp_path, passed_over).credentials) == 3


@pytest.mark.slow
async def test_the_door_lets_in_whom_a_web_token_names(tmp_path: Path) -> None:
    users, roles = tmp_path / "users.toml", tmp_path / "roles.toml"
    users.write_text("")
    roles.write_text('[roles.trader]\nsubscribe = [{ pattern = "quotes" }]\n')
    keeper = Gatekeeper(users, roles, NOW, rules(tmp_path))
    version = keeper.policy.version
    now = [NOW]
    door = Door(keeper, DoorLimits(failure_seconds=0.0), lambda: now[0])
    try:
        for _ in range(2):  # the second time it is remembered
            guest = await asked(door, f"token {signed()}")
            assert guest == Guest("ann", guest.credential, ("trader",), NOW + 60)
            assert keeper.policy.holds("ann", guest.credential)
            rights = keeper.policy.rights_of("ann", guest.roles)
            assert rights is not None and rights.reads("quotes") and keeper.policy.rights_of("ann") is None
        refusals = [await asked(door, f"token {text}") for text in (signed(aud="x"), signed(kid="x"), "hg_x", "a.b.c")]
        assert [one.kind for one in refusals] == ["jwt_audience", "jwt_key", "token", "jwt_malformed"]
        assert {one.text for one in refusals} == {"this token is unknown, revoked or expired"}
        now[0] = NOW + 60
        assert (await asked(door, f"token {signed()}")).kind == "jwt_expired"
        now[0] = NOW
        # The issuer has other keys: who was let in by the former one is to go, also when it is remembered.
        rules(tmp_path, public_keys()[1:])
        assert keeper.look(NOW) and keeper.policy.version != version
        assert not keeper.policy.holds("ann", guest.credential)
        assert (await asked(door, f"token {signed()}")).kind == "jwt_key"
        (tmp_path / "jwks.json").write_text("{}")
        with pytest.raises(AccessError):
            keeper.look(NOW)
        assert (await asked(door, f"token {signed(ec_key(), 'ES256', 'e')}")).user == "ann"
    finally:
        door.close()


async def test_without_keys_a_web_token_is_a_token_that_nobody_knows(tmp_path: Path) -> None:
    users, roles = tmp_path / "users.toml", tmp_path / "roles.toml"
    users.write_text("")
    roles.write_text("")
    door = Door(Gatekeeper(users, roles, time.time()), DoorLimits(failure_seconds=0.0))
    try:
        found = await asked(door, f"token {signed()}")
        assert isinstance(found, NotLetIn) and found.kind == "token"
    finally:
        door.close()

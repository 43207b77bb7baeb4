"""Web tokens (JWT, RFC 7519): an issuer says who a client is and which roles it has, and signs that with its key.

    issuer, audience, algorithms   are settings: what a token says of itself never decides how it is checked
    keys                           a set of JWK (RFC 7517), in a file or fetched; a token names one by its `kid`
    claims                         `sub`, the user; `exp`, when it ends; and one with the names of its roles

A key serves the algorithms of its own kind alone (RFC 8725, 3.1), so a public key, which everybody has, is never taken
for a secret; and a key is found by comparing names in memory, never by an address or a path that the token has.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .limits import WEB_KEYS_BYTES_MAX, WEB_KEYS_MAX, WEB_RSA_BITS_MIN, WEB_TOKEN_EARLY_SECONDS, WEB_TOKEN_LENGTH_MAX
from .users import AccessError

__all__ = ["ALGORITHMS", "ALGORITHMS_DEFAULT", "Proved", "Unproved", "WebTokenRules", "WebTokens", "is_web_token"]

_BY_KIND = {
    ("RSA", ""): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("oct", ""): ("HS256", "HS384", "HS512"),
}
"""Kind of key and its curve -> the algorithms that it may be used for."""

ALGORITHMS = tuple(name for names in _BY_KIND.values() for name in names)
"""What may be allowed at all: `none` is none of them."""

ALGORITHMS_DEFAULT = ("RS256", "PS256", "ES256", "EdDSA")
"""Those that need no secret at the brokers."""

_FORM = re.compile(r"[\w-]+\.[\w-]*\.[\w-]*", re.ASCII)
_USER = re.compile(r"[!-~]{1,128}")
_SECRET = ("d", "p", "q", "dp", "dq", "qi", "oth")


class Proved(NamedTuple):
    """What a token proves: `credential` names the key that signed it."""

    user: str
    credential: str
    roles: tuple[str, ...]
    ends: float


class Unproved(Exception):
    """A token proves nothing; `kind` says why, for people who run brokers."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class WebTokenRules:
    """Which web tokens are good, as settings say it."""

    keys: Path | str
    """A file, or an address to fetch them from."""
    issuer: str
    audience: str
    algorithms: tuple[str, ...] = ALGORITHMS_DEFAULT
    roles_claim: str = "roles"

    @property
    def file(self) -> Path | None:
        """The file of keys, where they are in one."""
        return self.keys if isinstance(self.keys, Path) else None

    def read(self) -> tuple[WebTokens | None, bytes]:
        """The keys of the file as they are now, and the bytes that all of this is. Raises AccessError."""
        rules = (self.issuer, self.audience, self.algorithms, self.roles_claim)
        if self.file is None:
            # Brokers fetch the keys at different moments: not what they are, but where, is the same at all of them.
            return None, repr((*rules, self.keys)).encode()
        try:
            with self.file.open("rb") as stream:
                data = stream.read(WEB_KEYS_BYTES_MAX + 1)
        except OSError as error:
            text = (
                f"cannot read the keys {self.keys}: {error.strerror}; get them from the issuer, as its `jwks_uri` says"
            )
            raise AccessError(text) from error
        return self.tokens_by(data), data + repr(rules).encode()

    def tokens_by(self, data: bytes) -> WebTokens:
        """What checks tokens by that set of keys. Raises AccessError."""
        if len(data) > WEB_KEYS_BYTES_MAX:
            raise AccessError(f"{self.keys} has more than {WEB_KEYS_BYTES_MAX} bytes: that is no set of keys")
        try:
            said = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise AccessError(f"{self.keys} is not JSON: {error}") from error
        return WebTokens(self, _keys_of(said, self))


class _Key(NamedTuple):
    credential: str
    key: Any
    algorithms: tuple[str, ...]


class WebTokens:
    """Checks tokens by one reading of the keys; threads may share it, for nothing in it changes."""

    def __init__(self, rules: WebTokenRules, keys: Mapping[str, _Key]) -> None:
        self._rules = rules
        self._keys = keys

    @property
    def credentials(self) -> frozenset[str]:
        """All keys by their names: who was let in by another one is to go."""
        return frozenset(key.credential for key in self._keys.values())

    def prove(self, text: str, now: float) -> Proved:
        """Who that is. Raises Unproved, whatever the text holds."""
        import jwt  # a broker without web tokens starts without it

        if len(text) > WEB_TOKEN_LENGTH_MAX or not is_web_token(text):
            raise Unproved("jwt_malformed")
        rules = self._rules
        try:
            key, algorithm = self._key_of(jwt.get_unverified_header(text))
            options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_sub": False}
            claims = jwt.decode(
                text,
                key.key,
                algorithms=[algorithm],
                audience=rules.audience,
                issuer=rules.issuer,
                options=options | {"verify_jti": False, "require": ["iss", "aud"]},
            )
        except jwt.InvalidSignatureError as error:
            raise Unproved("jwt_signature") from error
        except jwt.InvalidAudienceError as error:
            raise Unproved("jwt_audience") from error
        except jwt.InvalidIssuerError as error:
            raise Unproved("jwt_issuer") from error
        except jwt.MissingRequiredClaimError as error:
            raise Unproved({"iss": "jwt_issuer", "aud": "jwt_audience"}[error.claim]) from error
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise Unproved("jwt_malformed") from error
        return self._proved(claims, key, now)

    def _key_of(self, header: Mapping[str, Any]) -> tuple[_Key, str]:
        """The key that it names, and the algorithm, if both are ours. Raises Unproved."""
        algorithm, name = header.get("alg"), header.get("kid")
        if "crit" in header or "b64" in header:  # extensions that must be understood: we understand none
            raise Unproved("jwt_malformed")
        if algorithm not in self._rules.algorithms:
            raise Unproved("jwt_algorithm")
        if name is None and len(self._keys) == 1:
            key: _Key | None = next(iter(self._keys.values()))
        else:
            key = self._keys.get(name) if type(name) is str and name else None
        if key is None:
            raise Unproved("jwt_key")
        if algorithm not in key.algorithms:
            raise Unproved("jwt_algorithm")
        return key, str(algorithm)

    def _proved(self, claims: Mapping[str, Any], key: _Key, now: float) -> Proved:
        """What signed claims say. Raises Unproved."""
        user = claims.get("sub")
        ends: Any = claims.get("exp")
        begins: Any = claims.get("nbf", 0)
        if type(user) is not str or not _USER.fullmatch(user) or not _is_time(ends) or not _is_time(begins):
            raise Unproved("jwt_claims")
        roles = _claim(claims, self._rules.roles_claim)
        if type(roles) is str:
            roles = roles.split()
        if type(roles) is not list or not all(type(one) is str for one in roles):
            raise Unproved("jwt_claims")
        if float(ends) <= now:
            raise Unproved("jwt_expired")
        if begins > now + WEB_TOKEN_EARLY_SECONDS:
            raise Unproved("jwt_early")
        # In one order, since issuers have none: the next token of a user may go on with its session.
        return Proved(user, key.credential, tuple(sorted(dict.fromkeys(roles))), float(ends))


def is_web_token(text: str) -> bool:
    """Whether it has the form of one."""
    return _FORM.fullmatch(text) is not None


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e12  # and so neither NaN nor without end


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim of that name, or the one that its parts lead to, as in `realm_access.roles`."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if type(found) is dict else None
    return found


def _keys_of(said: Any, rules: WebTokenRules) -> dict[str, _Key]:
    """The keys of a set that can sign tokens, by name. Raises AccessError."""
    where = str(rules.keys)
    rows = said.get("keys") if type(said) is dict else None
    if type(rows) is not list or len(rows) > WEB_KEYS_MAX or not all(type(row) is dict for row in rows):
        raise AccessError(f'{where} is {{"keys": [...]}}, a JWK set (RFC 7517) of at most {WEB_KEYS_MAX} keys')
    found: dict[str, _Key] = {}
    used = 0
    for row in rows:
        kind = _BY_KIND.get((str(row.get("kty")), str(row.get("crv", ""))))
        if kind is None or row.get("use", "sig") != "sig":
            continue  # of a kind that we do not know, or to encrypt with: RFC 7517, 5, has us pass over it
        algorithms = tuple(one for one in kind if one in rules.algorithms and row.get("alg", one) == one)
        if not algorithms:
            continue
        used += 1
        name = row.get("kid", "")
        if type(name) is not str or name in found:
            raise AccessError(f"{where}: two keys are called {name!r}, or their `kid` is no text")
        found[name] = _key_of(row, algorithms, f"{where}, key {name!r}")
    if not found or ("" in found and used > 1):
        text = f"{where} has no key for {', '.join(rules.algorithms)}, or several of which one has no `kid`"
        raise AccessError(text)
    return found


def _key_of(row: Mapping[str, Any], algorithms: tuple[str, ...], where: str) -> _Key:
    import jwt

    is_secret = row["kty"] == "oct"
    if not is_secret and any(part in row for part in _SECRET):
        raise AccessError(f"{where} is private: brokers need the public part of it alone")
    try:
        key = jwt.PyJWK(dict(row), algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        # The words of a library may hold the key, and a secret is not logged.
        raise AccessError(f"{where} cannot be used{'' if is_secret else f': {error}'}") from None
    if is_secret:
        algorithms = tuple(one for one in algorithms if len(key) * 8 >= int(one[2:]))
        if not algorithms:
            raise AccessError(f"{where} is too short: a secret has as many bits as its algorithm's name says")
    elif row["kty"] == "RSA" and key.key_size < WEB_RSA_BITS_MIN:
        raise AccessError(f"{where} has {key.key_size} bits: less than {WEB_RSA_BITS_MIN} can be broken")
    text = json.dumps(row, sort_keys=True).encode()
    return _Key(f"key:{hashlib.sha256(text).hexdigest()[:16]}", key, algorithms)

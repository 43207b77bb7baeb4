"""Flag, environment, file, default: in that order; and every error names the setting and what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.broker.daemon import Settings, SettingsError, load_settings
from headgate.broker.daemon.settings import split_address


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"HEADGATE_{name}".upper(), raising=False)


def toml(directory: Path, text: str) -> Path:
    path = directory / "headgate.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(flags: dict[str, object], file: Path | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(flags, file)
    return str(caught.value)


def test_the_defaults_are_those_of_the_manual() -> None:
    settings = load_settings({})
    assert (settings.listen, settings.peer_listen, settings.admin) == (
        "127.0.0.1:7400",
        "127.0.0.1:7401",
        "127.0.0.1:7402",
    )
    assert settings.data == Path("headgate-data")
    assert settings.slow_consumer == "drop"


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = toml(tmp_path, 'listen = "1.1.1.1:1"\nadmin = "1.1.1.1:2"\nname = "file"\ndrain_seconds = 3\n')
    monkeypatch.setenv("HEADGATE_LISTEN", "2.2.2.2:1")
    monkeypatch.setenv("HEADGATE_ADMIN", "2.2.2.2:2")
    settings = load_settings({"listen": "3.3.3.3:1", "admin": None, "insecure": True}, file)
    assert settings.listen == "3.3.3.3:1"
    assert settings.admin == "2.2.2.2:2"
    assert settings.name == "file"
    assert settings.drain_seconds == 3


def test_the_environment_wins_over_the_file_in_lower_case_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("headgate_name", "environment")
    assert load_settings({}, toml(tmp_path, 'name = "file"')).name == "environment"


def test_an_unknown_key_of_the_file_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    text = complaint({}, toml(tmp_path, "conections_max = 10"))
    assert "unknown setting 'conections_max'" in text
    assert "connections_max" in text
    assert "headgate.toml" in text


def test_an_unknown_flag_is_an_error() -> None:
    assert "nonsense" in complaint({"nonsense": 1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:7400", ("127.0.0.1", 7400)),
        (" broker.example:1 ", ("broker.example", 1)),
        (":0", ("0.0.0.0", 0)),
        ("[::1]:7400", ("::1", 7400)),
        ("[fe80::1%eth0]:65535", ("fe80::1%eth0", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert split_address(text) == expected


@pytest.mark.parametrize("text", ["", "7400", "host", "host:", "host:port", "::1:7400", "host:65536", "a b:1", "[x]:1"])
def test_what_is_no_address_is_told_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an address: write host:port, like 127\.0\.0\.1:7400"):
        split_address(text)


@pytest.mark.parametrize("setting", ["listen", "peer_listen", "admin"])
def test_a_bad_address_names_its_setting(setting: str) -> None:
    assert complaint({setting: "nowhere"}).startswith(f"--{setting.replace('_', '-')}: 'nowhere' is not an address")


@pytest.mark.parametrize(
    ("flags", "start"),
    [
        ({"connections_max": 0}, "--connections-max: 0 is too little: it is at least 1"),
        ({"connections_max": "many"}, "--connections-max: 'many' is no whole number"),
        ({"outbox_bytes": 1}, "--outbox-bytes: 1 is too little: it is at least 65536"),
        ({"outbox_bytes_total": 1}, "--outbox-bytes-total: 1 is too little"),
        ({"grace_seconds": -1}, "--grace-seconds: -1 is too little: it is at least 0"),
        ({"drain_seconds": 3601}, "--drain-seconds: 3601 is too much: it is at most 3600"),
        ({"slow_consumer": "shout"}, "--slow-consumer: 'shout' is none of 'drop' or 'disconnect'"),
        ({"log_level": "loud"}, "--log-level: 'loud' is none of 'debug', "),
        ({"log_format": "xml"}, "--log-format: 'xml' is none of 'auto', "),
        ({"loop": "fast"}, "--loop: 'fast' is none of 'auto', "),
        ({"name": "two words"}, "--name: 'two words' is no name: it has letters, digits and . _ : - only"),
        ({"name": "n" * 129}, "--name: a name has at most 128 characters"),
        ({"join": "nowhere"}, "--join: 'nowhere' is not an address"),
        ({"join": [7401]}, "--join: [7401] is no list of addresses"),
        ({"join": 7401}, "--join: 7401 is no list of addresses"),
        ({"cluster": ""}, "--cluster: the name is empty"),
        ({"grace_seconds": "soon"}, "--grace-seconds: 'soon' is no number"),
        ({"grace_seconds": "nan"}, "--grace-seconds: "),
        ({"connections_max": 1.5}, "--connections-max: 1.5 is no whole number"),
        ({"data": ""}, "--data: the name of the folder is empty"),
        ({"data": 7}, "--data: 7 is no path"),
        ({"jwt_algorithms": "RS256,none"}, "--jwt-algorithms: 'RS256,none' is no list of algorithms that sign"),
        ({"jwt_algorithms": ""}, "--jwt-algorithms: '' is no list of algorithms"),
        ({"jwt_algorithms": "rs256"}, "--jwt-algorithms: 'rs256' is no list"),
        ({"jwt_roles_claim": ""}, "--jwt-roles-claim: the name is empty"),
        ({"listen": 7400}, "--listen: 7400 is no text: write it between quotes"),
    ],
)
def test_a_bad_value_names_its_setting(flags: dict[str, object], start: str) -> None:
    assert complaint(flags).startswith(start)


def test_an_error_says_where_the_value_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = toml(tmp_path, "log_copies = 0")
    assert complaint({}, file) == f"log_copies in {file}: 0 is too little: it is at least 1"
    monkeypatch.setenv("headgate_log_copies", "9")
    assert complaint({}, file) == "headgate_log_copies: '9' is too much: it is at most 8"
    assert complaint({"log_copies": "two"}, file) == "--log-copies: 'two' is no whole number"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HEADGATE_LOG_COPEIS", "is HEADGATE_LOG_COPIES meant?"),
        ("headgate_lisen", "is HEADGATE_LISTEN meant?"),
        ("HEADGATE_CLUSTER_NAME", "is HEADGATE_CLUSTER meant?"),
        ("HEADGATE_ZZZ", "take it away"),
    ],
)
def test_a_name_that_nobody_reads_is_an_error_and_the_nearest_one_is_told(
    monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.setenv(name, "3")
    text = complaint({})
    assert f"{name.upper()} is no setting" in text and words in text


@pytest.mark.parametrize(
    "name",
    [
        *("SERVER", "CONFIG", "PURE", "USER", "PASSWORD", "TOKEN"),
        *("PORT", "PORT_7400_TCP", "PORT_7400_TCP_ADDR", "SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_ADMIN"),
        *("ADMIN_SERVICE_HOST", "ADMIN_PORT_7402_TCP_PROTO"),
    ],
)
def test_names_of_clients_and_those_that_kubernetes_sets_may_stand_beside(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"HEADGATE_{name}", "" if name == "CONFIG" else "x:1")
    load_settings({})


def test_an_empty_folder_is_not_the_one_that_we_are_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_DATA", "")
    assert complaint({}).startswith("HEADGATE_DATA: the name of the folder is empty")
    monkeypatch.setenv("HEADGATE_DATA", ".")
    assert load_settings({}).data == Path()


def test_two_mistakes_are_told_at_once() -> None:
    text = complaint({"listen": "a", "connections_max": 0})
    assert "--listen: " in text and "; --connections-max: " in text


def test_a_file_that_is_not_there_or_no_toml_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert complaint({}, missing) == f"cannot read the configuration {missing}: No such file or directory"
    assert complaint({}, toml(tmp_path, "listen =")).startswith(f"{tmp_path / 'headgate.toml'} is not TOML: ")
    (tmp_path / "headgate.toml").write_bytes(b"\xff\xfe")
    assert "is not TOML" in complaint({}, tmp_path / "headgate.toml")


def test_seeds_come_as_text_or_as_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings({"join": ["a:1", "b:2"]}).join == ("a:1", "b:2")
    assert load_settings({"join": ["a:1,b:2", "c:3"]}).join == ("a:1", "b:2", "c:3")
    assert complaint({"join": [""]}).startswith("--join: '' is not an address")
    assert load_settings({}, toml(tmp_path, 'join = ["a:1"]')).join == ("a:1",)
    monkeypatch.setenv("HEADGATE_JOIN", "a:1, b:2 c:3")
    assert load_settings({}).join == ("a:1", "b:2", "c:3")


def test_a_broker_without_a_name_is_called_by_its_host_and_port() -> None:
    assert load_settings({"name": "ann"}).broker_name == "ann"
    assert load_settings({"listen": "127.0.0.1:9"}).broker_name.endswith(":9")


def test_uvloop_can_only_be_asked_for_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert complaint({"loop": "uvloop"}) == "--loop: uvloop is not installed here: install it, or say auto or asyncio"
    assert load_settings({"loop": "asyncio"}).loop == "asyncio"


@pytest.mark.parametrize(
    ("advertise", "peers", "clients", "told", "told_clients"),
    [
        ("", "127.0.0.1:7401", "127.0.0.1:7400", "127.0.0.1:7401", "127.0.0.1:7400"),
        ("", "0.0.0.0:7401", "0.0.0.0:7400", "here:7401", "here:7400"),
        ("", "[::]:7401", "[::1]:7400", "here:7401", "[::1]:7400"),
        ("one.example:9", "0.0.0.0:7401", "0.0.0.0:7400", "one.example:9", "one.example:7400"),
        ("one.example:9", "10.0.0.1:7401", "10.0.0.2:7400", "one.example:9", "10.0.0.2:7400"),
    ],
)
def test_others_are_told_where_they_reach_us(
    monkeypatch: pytest.MonkeyPatch, advertise: str, peers: str, clients: str, told: str, told_clients: str
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    settings = load_settings({"advertise": advertise})
    assert (settings.peer_address(peers), settings.client_address(clients)) == (told, told_clients)


@pytest.mark.parametrize("address", ["0.0.0.0:7401", ":7401", "[::]:7401", "nowhere"])
def test_an_advertised_address_is_one_that_can_be_reached(address: str) -> None:
    assert complaint({"advertise": address}).startswith("--advertise: ")


def test_peers_are_needed_when_somebody_asked_for_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not load_settings({}).needs_peers
    assert load_settings({"join": "a:1"}).needs_peers
    assert load_settings({"peer_listen": "127.0.0.1:7401"}).needs_peers
    assert load_settings({}, toml(tmp_path, 'peer_listen = "127.0.0.1:7401"')).needs_peers
    monkeypatch.setenv("HEADGATE_PEER_LISTEN", "127.0.0.1:7401")
    assert load_settings({}).needs_peers


PAIR = {"tls_cert": "a.pem", "tls_key": "a.key"}
PEERS = {"peer_tls_cert": "a.pem", "peer_tls_key": "a.key", "peer_tls_ca": "ca.pem", "name": "a"}
NAMES = {"users": "users.toml", "roles": "roles.toml"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"listen": "0.0.0.0:7400"}, "--listen 0.0.0.0:7400 is for more than this machine"),
        ({"listen": "10.0.0.1:7400", **PAIR}, "no names"),
        ({"listen": "broker.example:7400", **NAMES}, "no TLS"),
        ({"listen": "[::]:7400", **PAIR, "tls_ca": "ca.pem", "tls_client_certs": "optional"}, "--insecure"),
        ({"admin": "0.0.0.0:7402"}, "--admin 0.0.0.0:7402"),
        ({"peer_listen": ":7401"}, "--peer-listen :7401"),
        ({"peer_listen": "0.0.0.0:7401", **PAIR, **NAMES}, "brokers show no certificates"),
        ({"users": "users.toml"}, "give --users and --roles"),
    ],
)
def test_a_broker_is_not_opened_by_mistake(flags: dict[str, Any], words: str) -> None:
    assert words in complaint(flags)
    if "--insecure" in complaint(flags):
        assert load_settings({**flags, "insecure": True}).insecure


@pytest.mark.parametrize(
    "flags",
    [
        {"listen": "localhost:7400", "admin": "[::1]:7402", "peer_listen": "127.8.8.8:7401"},
        {"listen": "0.0.0.0:7400", "admin": "0.0.0.0:7402", **PAIR, **NAMES},
        {"listen": "0.0.0.0:7400", **PAIR, "tls_ca": "ca.pem", "tls_client_certs": "required"},
        {"peer_listen": "0.0.0.0:7401", **PEERS},
    ],
)
def test_a_broker_is_open_where_it_knows_who_comes(flags: dict[str, Any]) -> None:
    load_settings(flags)


def test_web_tokens_are_of_an_issuer_for_us_and_name_roles() -> None:
    whole = {"jwt_keys": "k", "jwt_issuer": "https://i", "jwt_audience": "a", "users": "u", "roles": "r"}
    settings = load_settings(whole)
    assert settings.jwt_keys == Path("k") and not any(name.startswith("HS") for name in settings.jwt_algorithms)
    assert load_settings({**whole, "jwt_algorithms": "ES256, HS256"}).jwt_algorithms == ("ES256", "HS256")
    assert load_settings({**whole, "jwt_keys": "https://i/jwks"}).jwt_keys == "https://i/jwks"
    assert "--jwt-keys: 'http://i/jwks': keys come over https://" in complaint({**whole, "jwt_keys": "http://i/jwks"})
    for missing in ("jwt_keys", "jwt_issuer", "jwt_audience"):
        text = complaint({name: value for name, value in whole.items() if name != missing})
        assert "give --jwt-keys, --jwt-issuer and --jwt-audience" in text
    assert "--jwt-keys needs --roles" in complaint({**whole, "users": "", "roles": ""})

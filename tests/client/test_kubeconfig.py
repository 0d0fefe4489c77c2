from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from instar.wire.client.kubeconfig import KubeconfigError, in_cluster, load_access, read_kubeconfig


def _config(**user: Any) -> dict[str, Any]:
    return {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "ns"}},
            {"name": "bare", "context": {"cluster": "c"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1/"}}],
        "users": [{"name": "u", "user": user}],
    }


def _write(path: Path, config: Any) -> Path:
    path.write_text(yaml.safe_dump(config))
    return path


def test_current_context_gives_server_token_and_namespace(tmp_path: Path) -> None:
    access = load_access(_write(tmp_path / "config", _config(token="secret")))

    assert (access.server, access.bearer(), access.namespace) == (
        "https://127.0.0.1:1",
        "secret",
        "ns",
    )


def test_named_context_wins_over_current(tmp_path: Path) -> None:
    access = load_access(_write(tmp_path / "config", _config(token="secret")), "bare")

    assert (access.bearer(), access.namespace) == (None, "default")


def test_relative_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    config = _config(tokenFile="token")
    config["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"
    (tmp_path / "ca.crt").write_bytes(b"pem")

    access = load_access(_write(tmp_path / "config", config))

    assert (access.ca, access.bearer()) == (b"pem", "from-file")


def test_inline_client_certificate_loads_into_the_tls_context(tmp_path: Path) -> None:
    pair = trustme.CA().issue_cert("someone@example.com")
    key, cert = pair.private_key_pem.bytes(), pair.cert_chain_pems[0].bytes()
    config = _config(
        **{
            "client-certificate-data": base64.b64encode(cert).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        }
    )

    access = load_access(_write(tmp_path / "config", config))

    assert access.client_cert == cert
    assert access.ssl_context() is not None


def test_a_provider_of_old_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = _write(tmp_path / "config", _config(**{"auth-provider": {"name": "gcp"}}))

    with pytest.raises(KubeconfigError, match=r"auth-provider 'gcp'.*use exec"):
        load_access(path)


def test_unknown_context_lists_the_known_ones(tmp_path: Path) -> None:
    path = _write(tmp_path / "config", _config())

    with pytest.raises(KubeconfigError, match="no context named 'nope'; it defines: bare, here"):
        load_access(path, "nope")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a list", "not a kubeconfig"),
        ("a: [", "config:2: not readable as YAML"),
        ("{}", "defines no contexts"),
        ("current-context: x\ncontexts: [{name: x, context: {cluster: gone}}]", "'gone' is not"),
        ("contexts: {x: {}}", "contexts: must be a list"),
        ("users: [x]", "every item of users needs a name and a user"),
        (
            "clusters: [{name: c, cluster: here}]",
            "every item of clusters needs a name and a cluster",
        ),
    ],
)
def test_broken_files_say_what_is_wrong(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)

    with pytest.raises(KubeconfigError, match=message):
        load_access(path)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"token": 12345}, "user 'u': token: a string was expected"),
        ({"as-groups": "admins", "as": "jane"}, "as-groups: a list was expected"),
        ({"client-certificate-data": "eA=="}, "client-certificate without client-key"),
        ({"client-key-data": "eA=="}, "client-key without client-certificate"),
        ({"client-key-data": "ä", "client-certificate-data": "ä"}, "-data is not base64"),
        ({"token": "t", "username": "jane"}, "a token and a password: only one of them"),
        ({"token": "t", "exec": {"command": "c"}}, "a token and exec: only one of them"),
        ({"exec": {"command": ["c"]}}, "exec.command: a string was expected"),
        ({"tokenFile": True}, "tokenFile: a string was expected"),
    ],
)
def test_a_user_that_cannot_be_is_refused(
    tmp_path: Path, user: dict[str, Any], message: str
) -> None:
    config = _config()
    config["users"][0]["user"] = user

    with pytest.raises(KubeconfigError, match=message):
        load_access(_write(tmp_path / "config", config))


def test_an_authority_and_no_verification_exclude_each_other(tmp_path: Path) -> None:
    config = _config()
    both = {"insecure-skip-tls-verify": True, "certificate-authority-data": "eA=="}
    config["clusters"][0]["cluster"] |= both

    with pytest.raises(KubeconfigError, match="exclude each other"):
        load_access(_write(tmp_path / "config", config))


def test_an_unknown_field_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = _config(token="t", tokenfile="mistyped")
    config["users"].append({"name": "unused", "user": {"whatever": 1}})

    load_access(_write(tmp_path / "config", config))

    [record] = caplog.records
    assert record.getMessage().endswith("user 'u': unknown field tokenfile")


def test_a_user_without_a_password_is_shown_all_the_same(tmp_path: Path) -> None:
    config = _config()
    config["users"][0]["user"] = {"username": "jane"}

    assert load_access(_write(tmp_path / "config", config)).basic == ("jane", "")


def test_first_file_naming_an_entry_wins(tmp_path: Path) -> None:
    other = _config(token="second")
    other["users"].append({"name": "v", "user": {"token": "extra"}})
    other["contexts"].append({"name": "more", "context": {"cluster": "c", "user": "v"}})
    files = [
        _write(tmp_path / "one", _config(token="first")),
        _write(tmp_path / "two", other),
    ]

    assert read_kubeconfig(files).bearer() == "first"
    assert read_kubeconfig(files, "more").bearer() == "extra"


def test_in_cluster_reads_the_mounted_account_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    for name, text in {"token": "one", "ca.crt": "pem", "namespace": "mine"}.items():
        (tmp_path / name).write_text(text)
    access = in_cluster(tmp_path)
    (tmp_path / "token").write_text("two")

    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "mine")
    assert access.bearer() == "two"


def test_nothing_anywhere_names_the_places_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(KubeconfigError, match="absent"):
        load_access()

"""Encryption at rest as an operator and a client see it, on every engine."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.server.settings import EncryptionSettings
from instar.wire.storage.store import Record, Write, unwrapped_store
from tests.encryption import oracles
from tests.encryption.kms_plugin import KmsPlugin
from tests.support.crds import loose_crd
from tests.support.server import LiveServer, live_server
from tests.support.storages import ENGINES, Storages, storages
from tests.support.waiting import eventually

FOOS = "/apis/ex.io/v1/namespaces/default/foos"
SECRET1, SECRET2 = bytes(range(32)), bytes(range(32, 64))
PLAIN: dict[str, Any] = {"identity": {}}
TEXT = "a text that must not lie about"


def keys(kind: str, **named: bytes) -> dict[str, Any]:
    listed = [{"name": name, "secret": b64encode(key).decode()} for name, key in named.items()]
    return {kind: {"keys": listed}}


def write_config(path: Path, *providers: Any, resources: tuple[str, ...] = ("*.*",)) -> Path:
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": list(resources), "providers": list(providers)}],
    }
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(document))
    fresh.rename(path)
    return path


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storages]:
    with storages(tmp_path_factory.mktemp("stores")) as found:
        yield found


def encrypted(path: Path, *providers: Any, reload: bool = False, **more: Any) -> EncryptionSettings:
    return EncryptionSettings(config=write_config(path, *providers, **more), reload=reload)


def lying(server: LiveServer, key: str) -> bytes:
    """What the disk sees."""

    async def read() -> Record | None:
        return await unwrapped_store(server.running.machinery.backend.store).get(key)

    record = server.run(read())
    assert record is not None
    return record.value


def make(server: LiveServer, name: str, text: str = TEXT) -> dict[str, Any]:
    body = {
        "apiVersion": "ex.io/v1",
        "kind": "Foo",
        "metadata": {"name": name},
        "spec": {"a": text},
    }
    answer = server.request("POST", FOOS, body)
    assert answer.status == 201, answer.text
    return dict(answer.json)


OPENERS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "aescbc": lambda data, place: oracles.cbc_open(SECRET1, data),
    "aesgcm": lambda data, place: oracles.gcm_open(SECRET1, data[:12], data[12:], place),
    "secretbox": lambda data, place: oracles.secretbox_open(SECRET1, data[:24], data[24:]),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", list(OPENERS))
def test_stored_bytes_have_upstreams_encrypted_form_and_clients_see_plain_objects(
    kind: str, engine: str, places: Storages, tmp_path: Path
) -> None:
    settings = encrypted(tmp_path / "e.yaml", keys(kind, key1=SECRET1), PLAIN)
    url = places.empty(engine)
    with live_server(storage=url, encryption=settings) as server:
        server.create_crd(loose_crd("ex.io"))
        make(server, "f1")

        value = lying(server, "ex.io/foos/default/f1")
        prefix = f"k8s:enc:{kind}:v1:key1:".encode()
        root = f"/{url.rpartition('/')[2]}" if engine == "etcd" else "/registry"
        opened = OPENERS[kind](value[len(prefix) :], f"{root}/ex.io/foos/default/f1".encode())

        assert value.startswith(prefix)
        assert TEXT.encode() not in value
        assert json.loads(opened)["spec"] == {"a": TEXT}
        assert server.request("GET", f"{FOOS}/f1").json["spec"] == {"a": TEXT}
        assert [item["spec"]["a"] for item in server.request("GET", FOOS).json["items"]] == [TEXT]
        metrics = server.request("GET", "/metrics").text
        assert f'transformer_prefix="k8s:enc:{kind}:v1:",status="OK"' in metrics


@pytest.mark.parametrize("engine", ["sqlite", "etcd"])
def test_a_restart_reads_what_was_sealed_and_values_of_another_writer(
    engine: str, places: Storages, tmp_path: Path
) -> None:
    settings = encrypted(tmp_path / "e.yaml", keys("aesgcm", key1=SECRET1), PLAIN)
    url = places.empty(engine)
    with live_server(storage=url, encryption=settings) as server:
        server.create_crd(loose_crd("ex.io"))
        make(server, "f1")
        if engine == "etcd":
            prefix, place = (
                b"k8s:enc:aesgcm:v1:key1:",
                f"/{url.rpartition('/')[2]}/ex.io/foos/default/f2",
            )
            plain = oracles.gcm_open(
                SECRET1,
                *_parts(lying(server, "ex.io/foos/default/f1")[len(prefix) :]),
                (place.removesuffix("f2") + "f1").encode(),
            ).replace(b'"f1"', b'"f2"')
            foreign = (
                prefix + bytes(12) + oracles.gcm_seal(SECRET1, bytes(12), plain, place.encode())
            )
            server.run(
                unwrapped_store(server.running.machinery.backend.store).commit(
                    Write("ex.io/foos/default/f2", foreign, 0)
                )
            )
            eventually(lambda: server.request("GET", f"{FOOS}/f2").status == 200)

    with live_server(storage=url, encryption=settings) as server:
        found = [item["metadata"]["name"] for item in server.request("GET", FOOS).json["items"]]

    assert found == (["f1", "f2"] if engine == "etcd" else ["f1"])


def _parts(data: bytes) -> tuple[bytes, bytes]:
    return data[:12], data[12:]


def test_keys_are_rotated_by_writing_the_same_again_once(tmp_path: Path) -> None:
    path, url = tmp_path / "e.yaml", f"sqlite:{tmp_path / 's.db'}"
    with live_server(storage=url, encryption=encrypted(path, keys("aescbc", key1=SECRET1))) as one:
        one.create_crd(loose_crd("ex.io"))
        made = make(one, "f1")
        kept = one.request("PUT", f"{FOOS}/f1", made).json
    rotated = encrypted(path, keys("aesgcm", key2=SECRET2), keys("aescbc", key1=SECRET1))
    with live_server(storage=url, encryption=rotated) as two:
        before = lying(two, "ex.io/foos/default/f1")
        census = two.request("GET", "/instar/census").json["encryption"]["foos.ex.io"]
        first = two.request("PUT", f"{FOOS}/f1", kept).json
        second = two.request("PUT", f"{FOOS}/f1", first).json
        after = lying(two, "ex.io/foos/default/f1")

    assert kept["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert before.startswith(b"k8s:enc:aescbc:v1:key1:")
    assert after.startswith(b"k8s:enc:aesgcm:v1:key2:")
    assert census == {"current": "k8s:enc:aesgcm:v1:key2", "objects": {"k8s:enc:aescbc:v1:key1": 1}}
    assert int(first["metadata"]["resourceVersion"]) > int(kept["metadata"]["resourceVersion"])
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_storage_migration_puts_everything_under_the_new_key(tmp_path: Path) -> None:
    path, url = tmp_path / "e.yaml", f"sqlite:{tmp_path / 's.db'}"
    migrations = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
    with live_server(storage=url) as server:  # nothing was sealed yet
        server.create_crd(loose_crd("ex.io"))
        for number in range(20):
            make(server, f"f{number}")
    with live_server(
        storage=url, encryption=encrypted(path, keys("secretbox", k=SECRET1), PLAIN)
    ) as server:
        served = server.request("GET", "/apis/storagemigration.k8s.io").json
        migrations = f"/apis/{served['preferredVersion']['groupVersion']}/storageversionmigrations"
        answer = server.request(
            "POST",
            migrations,
            {
                "apiVersion": served["preferredVersion"]["groupVersion"],
                "kind": "StorageVersionMigration",
                "metadata": {"name": "m"},
                "spec": {"resource": {"group": "ex.io", "version": "v1", "resource": "foos"}},
            },
        )
        assert answer.status == 201, answer.text

        def sealed() -> bool:
            census = server.request("GET", "/instar/census").json["encryption"]["foos.ex.io"]
            return bool(census["objects"] == {"k8s:enc:secretbox:v1:k": 20})

        eventually(sealed)


def test_a_value_no_key_opens_fails_alone_and_can_be_deleted_as_upstream_allows(
    tmp_path: Path,
) -> None:
    path, url = tmp_path / "e.yaml", f"sqlite:{tmp_path / 's.db'}"
    with live_server(storage=url, encryption=encrypted(path, keys("aescbc", key1=SECRET1))) as one:
        one.create_crd(loose_crd("ex.io"))
        make(one, "lost")
    other = encrypted(path, keys("aescbc", key2=SECRET2), PLAIN, resources=("foos.ex.io",))
    crds = keys("aescbc", key1=SECRET1)
    document = json.loads(other.config.read_text())
    document["resources"].append({"resources": ["*.*"], "providers": [crds]})
    other.config.write_text(json.dumps(document))
    with live_server(storage=url, encryption=other) as two:
        make(two, "fine")
        got, listed = two.request("GET", f"{FOOS}/lost"), two.request("GET", FOOS)
        refused = two.request("DELETE", f"{FOOS}/lost")
        fine = two.request("GET", f"{FOOS}/fine")
        unsafe = two.request(
            "DELETE",
            f"{FOOS}/lost",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "ignoreStoreReadErrorWithClusterBreakingPotential": True,
            },
        )
        mended = two.request("GET", FOOS)

    told = "Internal error occurred: no matching key was found for the provided AES transformer"
    assert (got.status, got.json["reason"], got.json["message"]) == (500, "InternalError", told)
    assert (listed.status, refused.status, fine.status) == (500, 500, 200)
    assert unsafe.status == 200, unsafe.text
    assert [item["metadata"]["name"] for item in mended.json["items"]] == ["fine"]


def test_a_changed_file_is_used_without_a_restart_and_a_broken_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    settings = encrypted(path, keys("aescbc", key1=SECRET1), reload=True)
    with live_server(encryption=settings) as server:
        server.create_crd(loose_crd("ex.io"))
        make(server, "f1")
        path.write_text("resources: nonsense")
        counted = "apiserver_encryption_config_controller_automatic_reloads_total"
        eventually(
            lambda: f'{counted}{{status="failure"}} 1' in server.request("GET", "/metrics").text
        )
        make(server, "f2")
        write_config(path, keys("aesgcm", key2=SECRET2), keys("aescbc", key1=SECRET1))
        eventually(
            lambda: f'{counted}{{status="success"}} 1' in server.request("GET", "/metrics").text
        )
        make(server, "f3")
        found = server.request("GET", FOOS).json["items"]
        values = [lying(server, f"ex.io/foos/default/f{number}") for number in (1, 2, 3)]
        ready = server.request("GET", "/readyz/kms-providers")

    assert len(found) == 3
    assert ready.status == 200
    assert [value.split(b":")[2] for value in values] == [b"aescbc", b"aescbc", b"aesgcm"]


def test_a_kms_plugin_wraps_a_seed_once_and_is_called_again_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 's.db'}"
    with KmsPlugin(tmp_path / "k.sock") as plugin:
        kms = {"kms": {"apiVersion": "v2", "name": "n", "endpoint": plugin.endpoint}}
        settings = encrypted(tmp_path / "e.yaml", kms, PLAIN)
        with live_server(storage=url, encryption=settings) as server:
            server.create_crd(loose_crd("ex.io"))
            for number in range(10):
                make(server, f"f{number}")
            value = lying(server, "ex.io/foos/default/f1")
            calls = list(plugin.calls)
        plugin.key_id = "kek-2"
        with live_server(storage=url, encryption=settings) as server:
            listed = server.request("GET", FOOS).json["items"]
            census = server.request("GET", "/instar/census").json["encryption"]["foos.ex.io"]
            unwrapped = plugin.calls.count("Decrypt")
    assert value.startswith(b"k8s:enc:kms:v2:n:")
    assert TEXT.encode() not in value
    assert calls == ["Status", "Encrypt"]
    assert len(listed) == 10
    assert unwrapped == 1
    assert census == {
        "current": "k8s:enc:kms:v2:n:kek-2",
        "objects": {"k8s:enc:kms:v2:n:kek-1": 10},
    }


def test_an_unreachable_kms_plugin_is_reported_awaited_and_used_again(tmp_path: Path) -> None:
    socket, url = tmp_path / "k.sock", f"sqlite:{tmp_path / 's.db'}"
    kms = {
        "kms": {"apiVersion": "v2", "name": "n", "endpoint": f"unix://{socket}", "timeout": "1s"}
    }
    settings = encrypted(tmp_path / "e.yaml", kms, PLAIN, resources=("*.ex.io",))
    with live_server(storage=url, encryption=settings) as server:
        server.create_crd(loose_crd("ex.io"))
        body = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "f"}}
        refused = server.request("POST", FOOS, body)
        ready = server.request("GET", "/readyz", token=None)
        with KmsPlugin(socket):
            eventually(lambda: server.request("POST", FOOS, body).status == 201)
            eventually(lambda: server.request("GET", "/readyz", token=None).status == 200)
        assert lying(server, "ex.io/foos/default/f").startswith(b"k8s:enc:kms:v2:n:")

    assert refused.status == 503
    assert "KMS provider n cannot be used" in refused.json["message"]
    assert ready.status == 500
    assert "kms-providers" in ready.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("a: [", "it is no YAML"),
        ("kind: Pod\napiVersion: v1\n", 'no kind "Pod" is registered for version "v1"'),
        ("kind: Pod\nkind: Pod\n", 'key "kind" already set in map'),
        (None, "No such file or directory"),
    ],
)
def test_a_broken_file_is_one_line_at_start(text: str | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    if text is not None:
        path.write_text(text)

    ran = subprocess.run(
        [
            *(sys.executable, "-m", "instar", "serve", "--listen", "127.0.0.1:0"),
            *("--storage", "memory:", "--encryption-provider-config", str(path)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 2
    assert told in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1

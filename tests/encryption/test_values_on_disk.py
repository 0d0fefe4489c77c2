"""Values that lie sealed in the file and are read from it each time somebody asks."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import orjson
import pytest

from instar.server.lifecycle.lifetime import running
from instar.server.registry.stored import uniform_views
from instar.server.registry.stored.lazy_entry import LazyEntry
from instar.server.settings import EncryptionSettings, Settings
from tests.support.inside import asked

_SECRETS = "/api/v1/namespaces/default/secrets"
_TEXT = base64.b64encode(b"nobody reads this").decode()
_KEY = base64.b64encode(b"1" * 32).decode()
_CONFIG = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "EncryptionConfiguration",
    "resources": [
        {
            "resources": ["secrets"],
            "providers": [
                {
                    "aesgcm": {
                        "keys": [{"name": "k", "secret": base64.b64encode(b"1" * 32).decode()}]
                    }
                }
            ],
        }
    ],
}


def secret(number: int) -> dict[str, object]:
    metadata = {"name": f"s{number:02d}", "labels": {"odd": str(number % 2)}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": _TEXT}}


def test_sealed_values_are_opened_when_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uniform_views, "_LONGEST_IN_MEMORY", 5)
    config, file = tmp_path / "encryption.json", tmp_path / "s.db"
    config.write_bytes(orjson.dumps(_CONFIG))
    settings = Settings(
        port=0,
        storage=f"sqlite:{file}",
        values="disk",
        encryption=EncryptionSettings(config=config),
    )

    async def scenario() -> None:
        async with running(settings) as server:
            for number in range(12):
                assert (await asked(server.machinery, "POST", _SECRETS, secret(number)))[0] == 201
        async with running(settings) as server:
            machinery = server.machinery
            status, one = await asked(machinery, "GET", f"{_SECRETS}/s07")
            assert (status, one["data"]) == (200, {"a": _TEXT})
            _, some = await asked(machinery, "GET", _SECRETS, labelSelector="odd=1")
            assert len(some["items"]) == 6
            _, all_ = await asked(machinery, "GET", _SECRETS)
            assert {item["data"]["a"] for item in all_["items"]} == {_TEXT}
            entries = machinery.backend.collection("core/secrets/").entries
            assert {type(entry) for entry in entries.values()} == {LazyEntry}
            assert {entry.seal.name for entry in entries.values() if entry.seal is not None} == {
                "k8s:enc:aesgcm:v1:k"
            }

    asyncio.run(scenario())

    assert _TEXT.encode() not in file.read_bytes()

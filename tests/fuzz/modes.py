"""Which server is fuzzed: its storage, audit log, encryption and processes.

A mode is a name that a state file and a find keep, so that a run goes on where it was and a find
is tried again on the same kind of server.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.world import AUDIT_LOG
from tests.storage.etcd_server import EtcdCluster
from tests.storage.postgres_server import postgres_node
from tests.support.background import audit_kubeconfig

Arguments = Callable[[Path], list[str]]
"""Of one server, by its folder."""


@dataclass(frozen=True)
class _Mode:
    storage: str
    audit: str = ""
    encrypted: bool = False
    more: tuple[str, ...] = ()


MODES = {
    "memory": _Mode("memory:"),
    "audit-batch": _Mode("memory:", "batch"),
    "audit-blocking": _Mode("sqlite", "blocking"),
    "audit-strict": _Mode("sqlite", "blocking-strict"),
    "sqlite": _Mode("sqlite"),
    "encrypted": _Mode("sqlite", "batch", encrypted=True),
    "disk": _Mode("sqlite", more=("--values", "disk")),
    "disk-encrypted": _Mode("sqlite", "blocking", encrypted=True, more=("--values", "disk")),
    "workers": _Mode("sqlite", "blocking", more=("--workers", "2")),
    "etcd": _Mode("etcd", "blocking-strict"),
    "etcd-workers": _Mode("etcd", "batch", encrypted=True, more=("--workers", "2")),
    "postgres": _Mode("postgres", "blocking"),
}


@contextmanager
def engine(name: str, folder: Path) -> Iterator[Arguments]:
    """Starts what the mode's servers need; each server gets a part of the store of its own."""
    mode = MODES[name]
    with ExitStack() as stack:
        store = ""
        if mode.storage == "etcd":
            [store] = stack.enter_context(EtcdCluster(folder, members=1)).addresses
        elif mode.storage == "postgres":
            node = stack.enter_context(postgres_node())
            yield lambda own: _arguments(mode, own, node.url(f"fuzz{uuid.uuid4().hex}"))
            return
        yield lambda own: _arguments(mode, own, store)


def _arguments(mode: _Mode, folder: Path, store: str) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    found = [*mode.more]
    number = uuid.uuid4().hex
    match mode.storage:
        case "sqlite":
            found += ["--storage", f"sqlite:{folder / 'db'}"]
        case "etcd":
            found += ["--storage", f"etcd://{store}/{number}"]
        case "postgres":
            found += ["--storage", store]
        case _:
            found += ["--storage", mode.storage]
    if mode.audit:
        policy = _written(folder / "policy.yaml", _policy())
        webhook = _written(folder / "audit-webhook.yaml", audit_kubeconfig("http://127.0.0.1:9/"))
        found += ["--audit-policy-file", policy, "--audit-log-path", str(folder / AUDIT_LOG)]
        found += ["--audit-log-mode", mode.audit, "--audit-webhook-config-file", webhook]
        found += ["--audit-log-maxsize", "20", "--audit-log-maxbackup", "2"]
    if mode.encrypted:
        sealing = _written(folder / "sealing.yaml", _sealing())
        found += ["--encryption-provider-config", sealing]
    return found


def _written(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value))
    return str(path)


def _policy() -> Any:
    kind = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
    return {**kind, "rules": [{"level": "RequestResponse"}]}


def _sealing() -> Any:
    key = {"name": "k", "secret": base64.b64encode(b"0" * 32).decode()}
    provider = {"aescbc": {"keys": [key]}}
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["*.*"], "providers": [provider, {"identity": {}}]}],
    }

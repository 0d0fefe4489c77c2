"""Writes the kubeconfig that makes kubectl use this server."""

from __future__ import annotations

import base64
from pathlib import Path

import orjson

from instar.server.certificates import write_private


def kubeconfig(server: str, ca: bytes, token: str) -> bytes:
    """JSON is YAML: every kubeconfig reader takes it, and nothing has to be imported."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "instar",
                "cluster": {
                    "server": server,
                    "certificate-authority-data": base64.b64encode(ca).decode(),
                },
            }
        ],
        "users": [{"name": "instar-admin", "user": {"token": token}}],
        "contexts": [{"name": "instar", "context": {"cluster": "instar", "user": "instar-admin"}}],
        "current-context": "instar",
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def write_kubeconfig(path: Path, server: str, ca: bytes, token: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, kubeconfig(server, ca, token))

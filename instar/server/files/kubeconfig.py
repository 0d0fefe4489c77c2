"""Kubeconfig writer: files that point kubectl at this server.

``lifecycle/credentials.py`` calls it when the address is known.
"""

from __future__ import annotations

import base64
from pathlib import Path

import orjson

from instar.server.files.certificates import write_private


def kubeconfig(server: str, ca: bytes, user: str, credential: dict[str, str]) -> bytes:
    """The text of a kubeconfig, as JSON, which is valid YAML and needs no import."""
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
        "users": [{"name": user, "user": credential}],
        "contexts": [{"name": "instar", "context": {"cluster": "instar", "user": user}}],
        "current-context": "instar",
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def write_kubeconfig(path: Path, server: str, ca: bytes, token: str) -> None:
    _write(path, kubeconfig(server, ca, "instar-admin", {"token": token}))


def write_user_kubeconfig(
    path: Path, server: str, ca: bytes, user: str, pair: tuple[bytes, bytes]
) -> None:
    """``pair``: the user's certificate and its key, PEM."""
    names = ("client-certificate-data", "client-key-data")
    shown = (base64.b64encode(part).decode() for part in pair)
    _write(path, kubeconfig(server, ca, user, dict(zip(names, shown, strict=True))))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, data)

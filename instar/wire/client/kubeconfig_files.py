"""Finds and merges kubeconfig files as kubectl does, and checks the shape of each entry.

Used by ``kubeconfig.py``, which interprets the entries. An unknown field is logged as a warning,
because a mistyped name would be a credential that is never sent.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from instar.base.config_shapes import ShapeMismatch, unknown_fields
from instar.base.fast_dataclass import dataclass
from instar.kube.api.encoding.manifests import UnreadableManifest, only_document

log = logging.getLogger(__name__)

_EXTENSIONS = [{"name": str, "extension": None}]
_EXEC = {
    "apiVersion": str,
    "command": str,
    "args": [str],
    "env": [{"name": str, "value": str}],
    "installHint": str,
    "interactiveMode": str,
    "provideClusterInfo": bool,
}
_SHAPES: dict[str, dict[str, Any]] = {
    "cluster": {
        "server": str,
        "tls-server-name": str,
        "insecure-skip-tls-verify": bool,
        "certificate-authority": str,
        "certificate-authority-data": str,
        "proxy-url": str,
        "disable-compression": bool,
        "extensions": _EXTENSIONS,
    },
    "user": {
        "client-certificate": str,
        "client-certificate-data": str,
        "client-key": str,
        "client-key-data": str,
        "token": str,
        "tokenFile": str,
        "as": str,
        "as-uid": str,
        "as-groups": [str],
        "as-user-extra": None,
        "username": str,
        "password": str,
        "auth-provider": None,
        "exec": _EXEC,
        "extensions": _EXTENSIONS,
    },
    "context": {"cluster": str, "user": str, "namespace": str, "extensions": _EXTENSIONS},
}


class KubeconfigError(Exception):
    """The kubeconfig cannot be used; ``str()`` names the file, the entry and the cause."""


@dataclass(frozen=True, slots=True)
class KubeconfigEntry:
    """One cluster, user or context."""

    kind: str
    name: str
    body: Mapping[str, Any]
    file: Path

    def __str__(self) -> str:
        return f"{self.file}: {self.kind} {self.name!r}"

    def pem(self, name: str) -> bytes | None:
        """Return ``<name>-data`` inline, or the file ``<name>`` beside the kubeconfig."""
        inline = self.body.get(f"{name}-data")
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except (binascii.Error, ValueError):
                raise KubeconfigError(f"{self}: {name}-data is not base64") from None
        named = self.body.get(name)
        return read(self.file.parent / Path(named).expanduser()) if named else None

    def has_pem(self, name: str) -> bool:
        return bool(self.body.get(f"{name}-data") or self.body.get(name))

    def checked(self) -> KubeconfigEntry:
        """Return the entry if every field has the right type."""
        try:
            unknown = unknown_fields(self.body, _SHAPES[self.kind])
        except ShapeMismatch as error:
            raise KubeconfigError(f"{self}: {error}") from None
        if unknown:
            log.warning("%s: unknown field %s", self, ", ".join(unknown))
        return self


class ChosenContext(NamedTuple):
    """The cluster and user of a context."""

    context: KubeconfigEntry
    cluster: KubeconfigEntry
    user: KubeconfigEntry | None


Entries = dict[str, dict[str, KubeconfigEntry]]
"""By kind and name."""


def choose(files: list[Path], context: str | None) -> ChosenContext:
    """Return the named context, or the current one."""
    entries: Entries = {kind: {} for kind in _SHAPES}
    current = ""
    for file in files:
        raw = _parse(file)
        current = current or str(raw.get("current-context") or "")
        for kind, known in entries.items():
            for entry in _entries(raw.get(f"{kind}s"), kind, file):
                known.setdefault(entry.name, entry)
    if not entries["context"]:
        raise KubeconfigError(f"{files[0]}: defines no contexts; is it a kubeconfig?")
    wanted, names = context or current, ", ".join(sorted(entries["context"]))
    if not wanted:
        raise KubeconfigError(
            f"{files[0]}: no current-context is set; pass --context, one of: {names}"
        )
    found = entries["context"].get(wanted)
    if found is None:
        raise KubeconfigError(f"{files[0]}: no context named {wanted!r}; it defines: {names}")
    cluster = _find_entry(entries, found.checked(), "cluster")
    user = _find_entry(entries, found, "user") if found.body.get("user") else None
    return ChosenContext(found, cluster, user)


def _entries(listed: Any, kind: str, file: Path) -> list[KubeconfigEntry]:
    """Parse a list of entries; the content of unused entries is not checked."""
    if not isinstance(listed or [], list):
        raise KubeconfigError(f"{file}: {kind}s: must be a list")
    found: list[KubeconfigEntry] = []
    for item in listed or ():
        body = (item.get(kind) or {}) if isinstance(item, dict) else None
        if not isinstance(body, dict):
            raise KubeconfigError(f"{file}: every item of {kind}s needs a name and a {kind}")
        found.append(KubeconfigEntry(kind, str(item.get("name", "")), body, file))
    return found


def _find_entry(entries: Entries, context: KubeconfigEntry, kind: str) -> KubeconfigEntry:
    name = str(context.body.get(kind) or "")
    entry = entries[kind].get(name)
    if entry is None:
        raise KubeconfigError(f"{context.file}: the context's {kind} {name!r} is not defined")
    return entry.checked()


def _parse(file: Path) -> dict[str, Any]:
    try:
        raw = only_document(read(file).decode(), str(file))
    except UnicodeDecodeError:
        raise KubeconfigError(f"{file}: not a text file") from None
    except UnreadableManifest as error:
        raise KubeconfigError(str(error)) from None
    if not isinstance(raw, dict):
        raise KubeconfigError(f"{file}: not a kubeconfig")
    return raw


def read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{file}: {error.strerror}") from None

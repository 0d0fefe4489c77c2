"""Keeps what a restore is about to overwrite: one JSON file per object, private to its owner.

``restore_object.py`` calls it before it updates an object that exists. ``instar restore --from
FILE`` reads such a file, so a restore can be taken back on any cluster, also one without history.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import orjson

from instar.base.escaping import file_name
from instar.base.json_values import Object
from instar.tools.restorer.errors import RestoreError
from instar.tools.restorer.object_history import NamedObject

_LONGEST = 150
_KEPT = 100
"""Files in the folder; older ones are removed."""


def folder() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home) / "instar" / "restore"


def keep(named: NamedObject, current: Object) -> Path:
    """Write the object to a file, flushed to disk. Raises ``RestoreError``."""
    revision = current["metadata"].get("resourceVersion", "")
    words = [named.type.name, named.namespace, named.name, revision]
    text = ".".join(filter(None, words))
    mark = hashlib.sha256(repr(words).encode()).hexdigest()[:8]
    path = folder() / f"{file_name(text[:_LONGEST])}-{mark}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(orjson.dumps(current, option=orjson.OPT_INDENT_2))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RestoreError(
            f"{named} was not written, because its present state cannot be kept: {error}"
        ) from None
    _remove_old(path.parent)
    return path


def _remove_old(where: Path) -> None:
    files = sorted(where.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    for path in files[:-_KEPT]:
        path.unlink(missing_ok=True)

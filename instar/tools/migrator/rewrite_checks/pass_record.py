"""The record of a complete migration pass: evidence that all objects are at the storage version.

Written beside the progress file when a run has rewritten and verified every object and trimmed
``storedVersions``. Read by ``instar census``, ``instar versions`` and ``instar upgrade``, which do
not rely on ``storedVersions`` alone. The record is valid for one CRD (uid) in one state (generation
and storage version): an edit of the CRD that did not go through ``instar versions`` invalidates it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

from instar.base.fast_dataclass import dataclass
from instar.base.text_files import read_text
from instar.tools.migrator.live_crd import LiveCrd
from instar.tools.migrator.progress_file import default_path


@dataclass(frozen=True, slots=True)
class PassRecord:
    """Record of a complete pass over the objects of a CRD."""

    server: str
    crd: str
    uid: str
    generation: int
    storage: str
    crd_revision: str
    """The CRD's resourceVersion when the pass began."""
    revision: str
    """A resourceVersion of the collection: every later write used the storage version."""
    objects: int
    finished: str
    """When the pass ended, in RFC 3339."""

    def proves(self, live: LiveCrd) -> bool:
        """Return whether the record proves that all objects of the current CRD are at the storage
        version.
        """
        return (
            bool(self.uid)
            and self.uid == live.crd.uid
            and self.generation == live.crd.generation
            and self.storage == live.storage
            and not live.old_versions
        )


def record_path(crd: str, server: str) -> Path:
    """Return the file with the proof that a whole pass was done, beside the progress file."""
    return default_path(crd, server).with_suffix(".pass")


def load_record(crd: str, server: str) -> PassRecord | None:
    """Return the record of the last pass; None if there is none or it cannot be read."""
    try:
        document = json.loads(read_text(record_path(crd, server)))
        return PassRecord(**document)
    except (OSError, ValueError, TypeError):
        return None


def save_record(record: PassRecord) -> None:
    """Write the record atomically. Raises ``OSError``."""
    path = record_path(record.crd, record.server)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(".pass-draft")
    handle = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def follow_edit(server: str, before: LiveCrd, after: LiveCrd) -> None:
    """Keep the record valid after an edit by this tool that did not change the storage version.
    Raises ``OSError``.
    """
    record = load_record(before.name, server)
    if record is not None and record.proves(before) and before.storage == after.storage:
        save_record(replace(record, generation=after.crd.generation))

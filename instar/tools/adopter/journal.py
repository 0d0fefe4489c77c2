"""Journal of a move: the steps that are done, and facts that the cluster does not show.

``adopt.py`` and ``return_group.py`` write it before and after each step; it is on disk (fsync)
before the next one begins. The cluster shows which server has the group, so a lost journal costs
only the report of earlier steps, and for a return the uids that changed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from instar.base.json_values import Object
from instar.tools.adopter.errors import AdoptError
from instar.tools.file_lock import lock_beside

_FORMAT = 1


class JournalledStep(NamedTuple):
    """A step that is done, when, and what it reported."""

    step: str
    at: float
    text: str


class MoveJournal:
    """The journal of one group in one cluster; the file is locked while a run uses it."""

    def __init__(self, path: Path | None, group: str, server: str) -> None:
        """``None``: in memory. Raises ``AdoptError`` if the file is of another move or in use."""
        self._path, self._subject = path, {"format": _FORMAT, "group": group, "server": server}
        self._lock: IO[str] | None = None
        self.steps: list[JournalledStep] = []
        self.facts: Object = {}
        if path is not None:
            self._lock = _locked(path)
            self._read(path)

    def note(self, step: str, text: str = "", **facts: Any) -> None:
        """Record a step that is done, or facts of it."""
        self.steps.append(JournalledStep(step, time.time(), text))
        self.facts.update(facts)
        self._write()

    def begin_anew(self) -> None:
        """Drop the steps and facts of an earlier run."""
        self.steps.clear()
        self.facts.clear()
        self._write()

    def close(self) -> None:
        """Release the lock of the file."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        try:
            document = orjson.loads(path.read_bytes())
            subject = {name: document[name] for name in self._subject}
            steps = [JournalledStep(*step) for step in document["steps"]]
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise AdoptError(f"{path} is not a journal of instar adopt: {error}") from None
        if subject != self._subject:
            where = f"{subject['group']} in {subject['server']}"
            raise AdoptError(f"{path} is the journal of {where}; give another --journal")
        self.steps, self.facts = steps, document["facts"]

    def _write(self) -> None:
        if self._path is None:
            return
        document = {**self._subject, "steps": [[*step] for step in self.steps], "facts": self.facts}
        fresh = self._path.with_name(f"{self._path.name}.new")
        try:
            with open(fresh, "wb", opener=_private) as file:
                file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self._path)
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise AdoptError(f"cannot write the journal {self._path}: {error}") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _locked(path: Path) -> IO[str]:
    try:
        return lock_beside(path)
    except BlockingIOError:
        raise AdoptError(f"another instar adopt is using {path}") from None
    except OSError as error:
        raise AdoptError(f"cannot write the journal {path}: {error}") from None

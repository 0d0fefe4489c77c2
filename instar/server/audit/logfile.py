"""Audit log file: appends lines, and rotates by size, age and number with kube-apiserver's names.

``sinks.py`` calls it in its thread. Several processes may write to one file: each process locks the
file while it writes, and checks that the file still has that name.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from instar.base.fast_dataclass import dataclass

_MEGABYTE = 1 << 20
_STAMP = "%Y-%m-%dT%H-%M-%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """0 is no limit."""

    megabytes: int = 100
    days: int = 366
    backups: int = 100
    compress: bool = False


class Unwritten(Exception):
    """The last ``lines`` lines could not be written; ``str()`` is the reason."""

    def __init__(self, lines: int, why: str) -> None:
        super().__init__(why)
        self.lines = lines


class LogOutput(Protocol):
    """Where the lines of the audit log go."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Raises ``Unwritten``."""
        ...

    def close(self) -> None: ...


class Stdout:
    """Writes the lines of the audit log to standard output."""

    def write(self, lines: Sequence[bytes]) -> None:
        try:
            _write_all(sys.stdout.fileno(), b"".join(lines))
        except OSError as error:
            raise Unwritten(len(lines), f"standard output: {error.strerror}") from error

    def close(self) -> None:
        return None


class LogFile:
    """The file of the audit log."""

    def __init__(
        self,
        path: Path,
        rotation: Rotation,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path, self._rotation, self._now = path, rotation, now
        self._file = -1

    def check(self) -> None:
        """Raises ``OSError`` if the file cannot be written; leaves it closed."""
        with self._locked():
            pass
        self.close()

    def write(self, lines: Sequence[bytes]) -> None:
        """Write the lines, and rotate the file where they exceed its size."""
        most = self._rotation.megabytes * _MEGABYTE
        done = 0
        try:
            with self._locked():
                size = os.fstat(self._file).st_size
                while done < len(lines):
                    part = _lines_that_fit(lines[done:], most - size) if most else list(lines)
                    if not part and size:
                        self._rotate()
                        size = 0
                        continue
                    part = part or [lines[done]]  # larger than a whole file: it gets one alone
                    size += _append(self._file, b"".join(part), size)
                    done += len(part)
        except OSError as error:
            self.close()
            raise Unwritten(len(lines) - done, f"{self._path}: {error.strerror}") from error

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        while True:
            if self._file < 0:
                self._file = self._open()
            fcntl.flock(self._file, fcntl.LOCK_EX)
            if self._is_current():
                break
            self.close()  # another process has rotated the file; closing ends the lock
        try:
            yield
        finally:
            if self._file >= 0:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _open(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return os.open(self._path, flags, 0o600)

    def _is_current(self) -> bool:
        try:
            named = os.stat(self._path)
        except FileNotFoundError:
            return False
        own = os.fstat(self._file)
        return (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)

    def _rotate(self) -> None:
        os.rename(self._path, self._free_name())
        fresh = self._open()
        fcntl.flock(fresh, fcntl.LOCK_EX)
        os.close(self._file)
        self._file = fresh
        self._clean_up()

    def _free_name(self) -> Path:
        moment = self._now()
        while True:
            stamp = f"{moment:{_STAMP}}.{moment.microsecond // 1000:03}"
            name = self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}")
            if not name.exists() and not name.with_name(f"{name.name}.gz").exists():
                return name
            moment += timedelta(milliseconds=1)

    def _clean_up(self) -> None:
        """Remove backups beyond age and number, compress the others. A failure loses no event."""
        kept = sorted(self._backups(), reverse=True)
        most, days = self._rotation.backups, self._rotation.days
        oldest = self._now() - timedelta(days=days)
        for number, (moment, path) in enumerate(kept):
            with contextlib.suppress(OSError):
                if (most and number >= most) or (days and moment < oldest):
                    path.unlink()
                elif self._rotation.compress and path.suffix != ".gz":
                    _gzip_file(path)

    def _backups(self) -> list[tuple[datetime, Path]]:
        found = []
        lead, suffix = f"{self._path.stem}-", self._path.suffix
        for path in self._path.parent.iterdir():
            name = path.name.removesuffix(".gz")
            if name.startswith(lead) and name.endswith(suffix):
                stamp = name[len(lead) : len(name) - len(suffix)]
                with contextlib.suppress(ValueError):
                    moment = datetime.strptime(stamp, f"{_STAMP}.%f").replace(tzinfo=UTC)
                    found.append((moment, path))
        return found


def _lines_that_fit(lines: Sequence[bytes], room: int) -> list[bytes]:
    found = []
    for line in lines:
        room -= len(line)
        if room < 0:
            break
        found.append(line)
    return found


def _append(file: int, data: bytes, size: int) -> int:
    """Append all of the data or nothing: half a line would make the next one invalid."""
    try:
        _write_all(file, data)
        return len(data)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(file, size)
        raise


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _gzip_file(path: Path) -> None:
    packed = path.with_name(f"{path.name}.gz")
    half = path.with_name(f".{packed.name}.tmp")
    try:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with (
            path.open("rb") as plain,
            os.fdopen(descriptor, "wb") as raw,
            gzip.GzipFile(fileobj=raw, mode="wb") as out,
        ):
            shutil.copyfileobj(plain, out)
        os.replace(half, packed)
        path.unlink()
    except OSError:
        half.unlink(missing_ok=True)
        raise

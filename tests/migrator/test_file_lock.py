"""The lock beside a file: one holder at a time, and free again when it is closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from instar.tools.file_lock import lock_beside


def test_a_locked_file_cannot_be_locked_again_until_the_lock_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "made" / "journal"
    held = lock_beside(path)

    with pytest.raises(BlockingIOError):
        lock_beside(path)
    held.close()

    lock_beside(path).close()


def test_a_folder_that_cannot_be_made_is_another_error_than_a_held_lock(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OSError, match="file") as failure:
        lock_beside(tmp_path / "file" / "journal")

    assert not isinstance(failure.value, BlockingIOError)

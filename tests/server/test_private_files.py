"""Keys and tokens are written where nobody else can read them, or have them written elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from instar.server.files.certificates import write_private


def test_only_the_owner_can_read_it_whatever_was_there(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    elsewhere, path = tmp_path / "elsewhere", tmp_path / "key"
    elsewhere.write_bytes(b"theirs")
    path.symlink_to(elsewhere)
    write_private(path, b"secret")
    assert not path.is_symlink()
    assert elsewhere.read_bytes() == b"theirs"


def test_a_name_that_exists_already_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    real = os.open

    def noting(path: str, flags: int, mode: int = 0o777) -> int:
        opened.append(flags)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", noting)
    write_private(tmp_path / "key", b"secret")
    assert opened
    assert all(flags & os.O_EXCL and flags & os.O_CREAT for flags in opened)


def test_nothing_is_left_of_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="no"):
        write_private(tmp_path / "key", b"secret")
    assert list(tmp_path.iterdir()) == []

"""Health tells the truth: a store that cannot be written, is gone, or is not what is shown."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from instar.cli.main import main
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.consistency import Consistency
from instar.wire.storage.group_commit import GroupCommit
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import StoreLost, Unavailable, Write

KEY = "core/configmaps/default/a"
VALUE = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"u"}}\n'


async def filled(path: Path) -> SqliteStore:
    store = SqliteStore(str(path))
    await store.commit(Write(KEY, VALUE, 0))
    return store


@pytest.mark.parametrize("harm", ["remove", "empty", "replace"])
def test_a_file_that_is_gone_is_noticed_and_takes_no_more_writes(tmp_path: Path, harm: str) -> None:
    async def told() -> None:
        path = tmp_path / "s.db"
        store = await filled(path)
        await store.check()
        if harm == "remove":
            path.unlink()
        elif harm == "empty":
            path.write_bytes(b"")
        else:
            path.rename(tmp_path / "old.db")
            path.write_bytes(b"x" * 4096)
        store._identified = 0.0  # as if a moment had passed
        with pytest.raises(StoreLost, match="while in use"):
            await store.check()
        with pytest.raises(StoreLost):
            await store.commit(Write("core/configmaps/default/b", VALUE, 0))
        await store.close()

    asyncio.run(told())


@pytest.mark.parametrize("held", [0.0, 1000.0])
def test_a_failed_write_is_reported_until_one_succeeds_for_a_while(
    monkeypatch: pytest.MonkeyPatch, held: float
) -> None:
    """A full disk takes a small write now and then: one that succeeds says nothing at once."""
    monkeypatch.setattr("instar.server.registry.stored.backend._REFUSED_SECONDS", held)

    class Full(MemoryStore):
        full = True

        async def commit(self, write: Write) -> int:
            if self.full:
                raise Unavailable("disk full")
            return await super().commit(write)

        async def check(self) -> None:
            if self.full:
                raise Unavailable("disk full")

    async def told() -> list[str | None]:
        store = Full()
        backend = Backend(store)
        await backend.start()
        backend.cache.revision = backend.cache.revision or 1
        before = backend.trouble
        with pytest.raises(Exception, match="disk full"):
            await backend.remove(backend.collection("core/configmaps/"), "default/a", 1)
        during = backend.trouble
        store.full = False
        await backend.probe()
        after = backend.trouble
        await backend.stop()
        return [before, during, after]

    assert asyncio.run(told()) == [None, "disk full", "disk full" if held else None]


def test_a_write_with_a_failed_commit_is_reported_as_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an fsync that failed some of the writes answered 503 were there later."""
    commit = GroupCommit._commit

    def fails(self: GroupCommit) -> Exception | None:
        return commit(self) or OSError("fsync")

    async def told() -> None:
        store = await filled(tmp_path / "s.db")
        monkeypatch.setattr(GroupCommit, "_commit", fails)
        with pytest.raises(Unavailable, match="not known whether the write will be there"):
            await store.commit(Write("core/configmaps/default/b", VALUE, 0))
        await store.close()

    asyncio.run(told())


def test_a_check_writes_and_moves_no_revision(tmp_path: Path) -> None:
    async def told() -> tuple[int, int, int]:
        store = await filled(tmp_path / "s.db")
        before, commits = await store.barrier(), store.commits
        await store.check()
        after = await store.barrier()
        written = store.commits - commits
        await store.close()
        return before, after, written

    before, after, written = asyncio.run(told())
    assert (before, written) == (after, 1)


def test_a_cache_gone_astray_is_noticed(tmp_path: Path) -> None:
    async def told() -> None:
        store = await filled(tmp_path / "s.db")
        backend = Backend(store)
        await backend.start()
        consistency = Consistency(backend)
        assert await consistency.check()
        assert consistency.trouble is None
        entries = backend.collection("core/configmaps/").entries
        entry = entries.pop("default/a")
        assert not await consistency.check()
        entries["default/a"] = entry
        entry.revision += 5
        assert not await consistency.check() or entry.revision > backend.revision
        entry.revision -= 5
        assert await consistency.check()
        entries["default/phantom"] = entry
        assert not await consistency.check()
        assert consistency.differences == ["core/configmaps/default/phantom"]
        assert consistency.trouble == "the cache differs from the store in 1 keys"
        assert consistency.checks.value(("different",))
        await backend.stop()

    asyncio.run(told())


def test_verify_reads_every_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.db"

    async def fill() -> None:
        store = await filled(path)
        await store.close()

    asyncio.run(fill())
    assert main(["storage", "verify", f"sqlite:{path}"]) == 0
    assert "is sound: 1 record" in capsys.readouterr().out
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE log SET value = ?", (b"\x00" * len(VALUE),))
    assert main(["storage", "verify", str(path)]) == 1
    told = capsys.readouterr()
    assert f"{KEY}: the value is damaged" in told.out
    assert "1 problem in 1 record" in told.err
    assert main(["storage", "verify", str(tmp_path / "absent.db")]) == 2


def test_an_empty_password_file_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "password"
    empty.touch()
    arguments = ["serve", "--storage", "etcd://127.0.0.1:1", "--etcd-password-file", str(empty)]
    assert main(arguments) == 1
    assert "its first line is empty" in capsys.readouterr().err

"""Log lines for an operator on call: what started where, that it stops and why, and a full disk."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from instar import __version__
from instar.wire.storage.open import without_password
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Unavailable, Write


def served(folder: Path, *flags: str) -> tuple[list[str], list[str], int]:
    """Lines of standard output and standard error of a server that is stopped when it is ready."""
    words = ["serve", "--listen", "127.0.0.1:0", "--kubeconfig", "k", *flags]
    with subprocess.Popen(
        [sys.executable, "-m", "instar", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        head = []
        for line in server.stderr:
            head.append(line.rstrip("\n"))
            if "serves https://" in line:
                break
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
        out, rest = server.communicate(timeout=60)
    return out.splitlines(), [*head, *rest.splitlines()], server.returncode


def test_a_start_says_version_address_and_store_and_a_stop_says_so(tmp_path: Path) -> None:
    out, log, code = served(tmp_path, "--storage", "sqlite:s.db")

    assert code == 0
    assert out in ([], ["instar is ready: kubectl --kubeconfig k get crds"])
    [start] = [line for line in log if "serves" in line]
    assert f"INFO instar {__version__} serves https://127.0.0.1:" in start
    assert start.endswith("storage sqlite:s.db")
    assert log[-2].endswith("INFO SIGTERM: stopping")
    assert log[-1].endswith("INFO stopped")


def test_json_logs_have_no_other_line(tmp_path: Path) -> None:
    out, log, code = served(tmp_path, "--storage", "memory:", "--log", "json", "--read-only")

    assert (code, out) == (0, [])
    lines: list[dict[str, Any]] = [json.loads(line) for line in log]
    [start] = [line for line in lines if "storage" in line]
    assert (start["version"], start["storage"], start["readOnly"]) == (__version__, "memory:", True)
    assert start["url"].startswith("https://127.0.0.1:")
    assert [line["msg"] for line in lines[-2:]] == ["SIGTERM: stopping", "stopped"]


def test_a_start_that_fails_is_a_json_line_too(tmp_path: Path) -> None:
    out, log, code = served(tmp_path, "--storage", "foo:bar", "--log", "json")

    assert (code, out) == (2, [])
    [line] = map(json.loads, log)
    assert (line["level"], "is not a storage URL" in line["msg"]) == ("error", True)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:a@b:c.db", "sqlite:a@b:c.db"),
        ("etcd://h:2379,i:2379/p", "etcd://h:2379,i:2379/p"),
        ("postgresql://u:secret@h:5432/d?password=secret", "postgresql://u@h:5432/d"),
        ("postgresql://h/d", "postgresql://h/d"),
    ],
)
def test_no_password_of_a_store_is_logged(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_a_disk_without_room_is_an_error_once_and_its_end_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        store = SqliteStore(str(tmp_path / "s.db"))
        await store.commit(Write("g/p/a", b"{}", 0))
        writer: sqlite3.Connection = store._file.writer
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages}")
        for number in range(3):
            with pytest.raises(Unavailable):
                await store.commit(Write(f"g/p/{number}", b"x" * 100_000, 0))
            await store.check()
        writer.execute("PRAGMA max_page_count = 1000000")
        await store.commit(Write("g/p/b", b"{}", 0))
        await store.close()

    asyncio.run(scenario())

    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in told] == ["ERROR", "WARNING"]
    assert "database or disk is full" in told[0][1]
    assert "succeed again" in told[1][1]

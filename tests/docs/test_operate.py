"""The commands of the pages about operating run as written, in their order."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.support.pages import DOCS, run_script, script

HOW_TO = DOCS / "how-to"
START = """
mkdir data
instar serve --background --pid-file data/instar.pid --listen 127.0.0.1:0 \
  --storage sqlite:data/instar.db --kubeconfig data/kubeconfig
"""
STOP = "instar serve --stop --pid-file "
SETTINGS = (
    "kubectl --kubeconfig data/kubeconfig create configmap settings --from-literal=color=green\n"
)


def test_a_server_is_started_checked_and_stopped(tmp_path: Path) -> None:
    done = run_script(script(HOW_TO / "operate.md", "start"), tmp_path, "operate.md")

    assert "readyz check passed" in done.stdout


def test_a_backup_is_taken_and_restored(tmp_path: Path) -> None:
    page = HOW_TO / "backup.md"
    parts = (START, SETTINGS, script(page, "backup"), script(page, "restore"))

    done = run_script("\n".join((*parts, f"{STOP}data/instar.pid")), tmp_path, "backup.md")

    assert "backup/instar.db: " in done.stdout
    assert "restored and verified" in done.stdout
    assert done.stdout.splitlines()[-1] == "green"


def test_a_running_server_is_captured_and_started_from_the_snapshot(tmp_path: Path) -> None:
    page = HOW_TO / "backup.md"
    hot = f"mkdir backup\n{script(page, 'hot')}{STOP}data/instar.pid\n"

    text = "\n".join((START, hot, script(page, "from-snapshot"), f"{STOP}copy.pid"))
    done = run_script(text, tmp_path, "backup.md")

    assert "instar is ready" in done.stdout


def test_prometheus_reads_metrics_with_its_token_and_nothing_else(tmp_path: Path) -> None:
    ask = "curl -sk -o /dev/null -w '%{http_code}\\n' -H \"Authorization: Bearer $token\" $server"
    text = (
        script(HOW_TO / "monitoring.md", "token")
        + START.rstrip()
        + " --token-file tokens.csv\n"
        + "server=$(grep -o 'https://[^\"]*' data/kubeconfig)\n"
        + f"{ask}/metrics\n{ask}/readyz\n{ask}/api/v1/secrets\n{STOP}data/instar.pid\n"
    )
    done = run_script(text, tmp_path, "monitoring.md")

    assert done.stdout.splitlines()[-3:] == ["200", "200", "403"]


def test_a_file_of_the_first_release_is_served(tmp_path: Path) -> None:
    """The promise of docs/how-to/upgrade-instar.md, on a file as release 0.1 wrote it."""
    (tmp_path / "data").mkdir()
    settings = (
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"default",'
        b'"uid":"5d5e3b0e-7b8e-4a0c-9f49-0d3b3a2f7f10","creationTimestamp":"2026-01-01T00:00:00Z"},'
        b'"data":{"color":"green"}}'
    )
    with sqlite3.connect(tmp_path / "data" / "instar.db") as file:
        file.executescript(
            "PRAGMA journal_mode = WAL;"
            "CREATE TABLE log(revision INTEGER PRIMARY KEY, key TEXT NOT NULL, value BLOB);"
            "CREATE TABLE compaction(revision INTEGER NOT NULL);"
            "INSERT INTO compaction VALUES (0);"
            f"PRAGMA application_id = {0x696E7374};"
            "PRAGMA user_version = 1;"
        )
        file.execute(
            "INSERT INTO log VALUES (1, ?, ?)", ("core/configmaps/default/settings", settings)
        )
    file.close()
    look = (
        "kubectl --kubeconfig data/kubeconfig get configmap settings -o jsonpath={.data.color}\n"
        f"{STOP}data/instar.pid\n"
    )

    done = run_script(START.replace("mkdir data\n", "") + look, tmp_path, "upgrade-instar.md")

    assert done.stdout.endswith("green")

"""Real PostgreSQL servers in folders of their own: started, killed, promoted, restarted.

PostgreSQL refuses to run as root, so root starts it as the user ``postgres``.
"""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.storage.etcd_server import free_ports

_SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "max_connections": "60",
    "shared_buffers": "'32MB'",
    "autovacuum_naptime": "'10s'",
    "log_line_prefix": "'%m [%p] %a '",
    "max_wal_senders": "4",
    "wal_keep_size": "'64MB'",
}
USER = "postgres"


def postgres_binaries() -> Path:
    """The folder of ``initdb``: ``$INSTAR_TEST_POSTGRES``, Debian's newest, or the path's."""
    if named := os.environ.get("INSTAR_TEST_POSTGRES"):
        return Path(named)
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    found = folders[-1] if folders else shutil.which("initdb")
    if found is None:
        pytest.skip("no PostgreSQL here: install Debian's package postgresql")
    return Path(found).parent


def _owner() -> int | None:
    """The user that runs the server; None: the present one."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam(USER).pw_uid
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")


class PostgresNode:
    """One server: a folder, a port, and the process while it runs."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder, self.port = folder, free_ports(1)[0]
        self.data = folder / "data"
        self.log = folder / "server.log"
        self._settings = {**_SETTINGS, "unix_socket_directories": f"'{folder}'", **(settings or {})}
        self._owner = _owner()
        if self._owner is not None:
            os.chown(folder, self._owner, -1)
        folder.chmod(0o755)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, schema: str = "instar", **parameters: str) -> str:
        rest = "".join(f"&{name}={value}" for name, value in parameters.items())
        return f"postgresql://{USER}@{self.address}/postgres?schema={schema}{rest}"

    def create(self, *extra: str) -> None:
        self._run(
            "initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-N", "-E", "UTF8", *extra
        )
        self.configure(**self._settings)

    def configure(self, **settings: str) -> None:
        with open(self.data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def configure_last(self, **settings: str) -> None:
        """Settings that win over those that pg_basebackup wrote."""
        with open(self.data / "postgresql.auto.conf", "a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def copy_of(self, primary: PostgresNode, name: str = "standby") -> None:
        """Become a standby of another node, with the name it has in synchronous_standby_names."""
        source = f"host=127.0.0.1 port={primary.port} user={USER} application_name={name}"
        self._run(
            "pg_basebackup", "-D", str(self.data), "-d", source, "-R", "-X", "stream", "-c", "fast"
        )
        self.configure(**self._settings)

    def start(self) -> None:
        self._run(
            *("pg_ctl", "start", "-w", "-t", "60", "-D", str(self.data), "-l", str(self.log)),
            *("-o", f"-p {self.port}"),
        )

    def stop(self, mode: str = "immediate") -> None:
        if (self.data / "postmaster.pid").exists():
            self._run("pg_ctl", "stop", "-w", "-D", str(self.data), "-m", mode, check=False)

    def kill(self) -> None:
        """As the kernel would: the postmaster and all of its children at once."""
        lines = (self.data / "postmaster.pid").read_text().splitlines()
        parent = int(lines[0])
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for pid in (parent, *map(int, children)):
            os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{parent}").exists() and _state(parent) != "Z":
            time.sleep(0.01)
        # A dead parent that is not reaped would be taken for a running server.
        for file in ("data/postmaster.pid", f".s.PGSQL.{self.port}", f".s.PGSQL.{self.port}.lock"):
            (self.folder / file).unlink(missing_ok=True)

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "-w", "-D", str(self.data))

    def reload(self) -> None:
        self._run("pg_ctl", "reload", "-D", str(self.data))

    def sql(self, text: str, user: str = USER) -> str:
        return self._run(
            *("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"),
            *("-h", "127.0.0.1", "-p", str(self.port), "-U", user, "-d", "postgres", "-c", text),
        ).strip()

    def run(self, program: str, *arguments: str, data: str | None = None) -> str:
        return self._run(program, *arguments, data=data)

    def _run(
        self, program: str, *arguments: str, check: bool = True, data: str | None = None
    ) -> str:
        # pg_ctl's server would keep a pipe open for as long as it runs
        output = subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE
        done = subprocess.run(
            [str(postgres_binaries() / program), *arguments],
            stdout=output,
            stderr=output,
            text=True,
            input=data,
            user=self._owner,
            cwd=self.folder,
            env={**os.environ, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"},
            timeout=120,
        )
        if check and done.returncode:
            log = self.log.read_text()[-2000:] if self.log.exists() else ""
            raise AssertionError(f"{program}: {done.stderr}\n{log}")
        return done.stdout or ""


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@contextmanager
def postgres_node(settings: Mapping[str, str] | None = None) -> Iterator[PostgresNode]:
    """A running server; gone at the end with its folder, which the user postgres can enter."""
    with tempfile.TemporaryDirectory(prefix="instar-pg-", ignore_cleanup_errors=True) as folder:
        node = PostgresNode(Path(folder), settings)
        node.create()
        try:
            node.start()
            yield node
        finally:
            node.stop()

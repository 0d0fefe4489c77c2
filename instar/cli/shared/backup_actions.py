"""``instar storage backup`` and ``restore``: flags, sources and messages.

``cli/commands/storage.py`` adds them to its actions. ``tools/backups.py`` writes and checks files;
this module chooses where a backup comes from: a running server, etcd, or the file of a stopped one.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from instar.cli.shared.cluster_flags import with_client
from instar.cli.shared.common_flags import add_cluster_arguments
from instar.cli.shared.encrypted_stores import Inspector
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.storage_flags import add_storage_arguments, storage_options
from instar.tools.backups import DamagedBackup, check_etcd, check_sqlite, placed, restore_sqlite
from instar.wire.client.client import Client
from instar.wire.client.transport import ConnectionLost
from instar.wire.storage.etcd.store import EtcdStore
from instar.wire.storage.open import open_store
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import StoreError, StoreInUse, UnusableStore

_RUNNING = "/instar/backup"
_POSTGRESQL = (
    "PostgreSQL has backups of its own: pg_dump --format=custom --schema=instar DATABASE > FILE, "
    "or continuous archiving for recovery to a point in time (docs/how-to/postgresql.md)"
)
_ETCD = (
    "a snapshot of etcd is restored by etcd: etcdutl snapshot restore FILE --data-dir DIR, once "
    "for each member, then start etcd with that data directory"
)


def add_backup_actions(actions: Any) -> None:
    backup = actions.add_parser("backup", help="copy a store to FILE while its server runs")
    backup.add_argument(
        "words",
        nargs="+",
        metavar="[STORE] FILE",
        help="without STORE, the running server of the kubeconfig; or etcd://…, or the sqlite:PATH "
        "of a server that is not running",
    )
    _add_force(backup, "replace FILE if it exists")
    add_cluster_arguments(backup.add_argument_group("running server"))
    add_storage_arguments(backup)
    restore = actions.add_parser("restore", help="check a backup and put it in place of a store")
    restore.add_argument("backup", metavar="FILE", type=Path, help="what backup wrote")
    restore.add_argument("target", metavar="STORE", help="sqlite:PATH; must not exist")


def _add_force(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--force", action="store_true", help=text)


def run_backup_action(args: argparse.Namespace) -> int:
    try:
        return _restore(args) if args.action == "restore" else _backup(args)
    except StoreError as error:
        raise store_failure(error) from error
    except DamagedBackup as error:
        raise CliFailure(str(error)) from error
    except ConnectionLost as error:
        raise CliFailure(f"the backup was cut short and is not kept: {error}") from error
    except FileExistsError as error:
        raise CliFailure(str(error), 2) from error


def store_failure(error: StoreError) -> CliFailure:
    """Return the failure for a store that cannot be used; say what to do when it is in use."""
    if isinstance(error, StoreInUse):
        hint = (
            "Stop its server (instar serve --stop), or take a backup of the running server "
            "(instar storage backup FILE --kubeconfig FILE) and use that."
        )
        return CliFailure(f"{error}. {hint}", 1)
    return CliFailure(str(error), 2 if isinstance(error, UnusableStore) else 1)


def is_object(value: bytes | None) -> bool:
    """Return whether the value is a JSON object; None is a value that cannot be decrypted."""
    try:
        return value is None or isinstance(orjson.loads(value), dict)
    except orjson.JSONDecodeError:
        return False


def _backup(args: argparse.Namespace) -> int:
    *sources, name = args.words
    target = Path(name)
    if len(sources) > 1 or "://" in name or name.startswith("sqlite:"):
        raise CliFailure("expected [STORE] FILE; FILE comes last", code=2)
    source = sources[0] if sources else ""
    scheme = source.partition(":")[0]
    if scheme in ("postgresql", "postgres"):
        raise CliFailure(_POSTGRESQL, code=2)
    with placed(target, replace=args.force) as (file, path):
        if not source:
            with_client(args, lambda client: _download(client, file.write))
        else:
            asyncio.run(_read_store(source, args, file.write))
        file.flush()
        told = check_etcd(path) if scheme == "etcd" else check_sqlite(path, _is_sound())
    print(f"{target}: {told}, verified")
    return 0


async def _download(client: Client, write: Callable[[bytes], object]) -> None:
    async for piece in client.download(_RUNNING):
        write(piece)


async def _read_store(url: str, args: argparse.Namespace, write: Callable[[bytes], object]) -> None:
    store = await open_store(url, storage_options(args), must_exist=True)
    try:
        if isinstance(store, EtcdStore):
            await store.snapshot(write)
        elif isinstance(store, SqliteStore):
            _move(await store.backup(), write)
        else:
            raise UnusableStore(f"{url} has no file; use sqlite:PATH or etcd://…")
    finally:
        await store.close()


def _move(copy: Path, write: Callable[[bytes], object]) -> None:
    try:
        with open(copy, "rb") as file:
            while piece := file.read(1 << 20):
                write(piece)
    finally:
        copy.unlink()


def _restore(args: argparse.Namespace) -> int:
    scheme, _, path = args.target.partition(":")
    if scheme == "etcd":
        raise CliFailure(_ETCD, code=2)
    if scheme in ("postgresql", "postgres"):
        raise CliFailure("pg_restore --dbname=DATABASE FILE reads what pg_dump wrote", 2)
    if scheme != "sqlite" or not path:
        raise CliFailure(f"{args.target}: expected sqlite:PATH", code=2)
    told = restore_sqlite(args.backup, Path(path), _is_sound())
    print(f"{path}: {told}, restored and verified")
    return 0


def _is_sound() -> Callable[[str, bytes], bool]:
    inspector = asyncio.run(Inspector.of(None))
    return lambda key, value: is_object(inspector.plain(key, value))

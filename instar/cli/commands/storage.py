"""``instar storage``: backs up, restores, copies or verifies a store, or creates its tables.

``wire/storage/copy.py``, ``wire/storage/verify.py`` and ``tools/backups.py`` do the work;
``cli/shared/backup_actions.py`` has the two actions for backups.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from instar.base.plurals import counted
from instar.cli.shared.backup_actions import (
    add_backup_actions,
    is_object,
    run_backup_action,
    store_failure,
)
from instar.cli.shared.encrypted_stores import Inspector
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.storage_flags import add_storage_arguments, storage_options
from instar.wire.storage.copy import copy_store
from instar.wire.storage.open import create_tables, creation_sql, is_shared, open_store
from instar.wire.storage.store import StoreError
from instar.wire.storage.verify import verify_file, verify_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", help="what to do"
    )
    add_backup_actions(actions)
    copy = actions.add_parser("copy", help="copy SOURCE to an empty TARGET, verifying every byte")
    copy.add_argument("source", metavar="SOURCE", help="sqlite:PATH, etcd://… or postgresql://…")
    copy.add_argument("target", metavar="TARGET", help="like SOURCE; must be empty")
    add_storage_arguments(copy)
    verify = actions.add_parser(
        "verify", help="read every value of a store, and check its structure"
    )
    verify.add_argument(
        "--encryption-provider-config",
        metavar="YAML",
        type=Path,
        help="also decrypt every encrypted value",
    )
    verify.add_argument("path", metavar="STORE", help="a SQLite file, etcd://… or postgresql://…")
    add_storage_arguments(verify)
    init = actions.add_parser("init", help="create instar's tables in a PostgreSQL database")
    init.add_argument("url", metavar="URL", help="postgresql://…, as a role that may create")
    init.add_argument("--grant", metavar="ROLE", default="", help="role that servers connect as")
    init.add_argument("--show-sql", action="store_true", help="print the SQL instead of running it")
    add_storage_arguments(init)


def run(args: argparse.Namespace) -> int:
    if args.action in ("backup", "restore"):
        return run_backup_action(args)
    if args.action == "verify":
        return asyncio.run(_verify(args))
    return asyncio.run(_init(args) if args.action == "init" else _copy(args))


async def _init(args: argparse.Namespace) -> int:
    options = storage_options(args)
    try:
        if args.show_sql:
            print(creation_sql(args.url, options, args.grant), end="")
            return 0
        version = await create_tables(args.url, options, args.grant)
    except StoreError as error:
        raise CliFailure(str(error)) from error
    granted = f"; {args.grant} may use them" if args.grant else ""
    print(f"instar's tables are there, version {version}{granted}")
    return 0


async def _copy(args: argparse.Namespace) -> int:
    # Imported here: verifying a server's own file needs nothing but the server.
    from rich.console import Console
    from rich.progress import Progress

    options = storage_options(args)
    try:
        source = await open_store(args.source, options, must_exist=True)
        try:
            target = await open_store(args.target, options)
            try:
                with Progress(console=Console(stderr=True)) as bar:
                    tasks = {step: bar.add_task(step, total=None) for step in _STEPS}

                    def progress(step: str, done: int, total: int) -> None:
                        bar.update(tasks[step], completed=done, total=total or None)

                    copied = await copy_store(source, target, progress)
            finally:
                await target.close()
        finally:
            await source.close()
    except StoreError as error:
        raise store_failure(error) from error
    print(f"copied and verified {_size_text(copied.records, copied.bytes)}")
    return 0


async def _verify(args: argparse.Namespace) -> int:
    """Verify a store; encrypted values are decrypted and checked if a configuration is given."""
    path = args.path.removeprefix("sqlite:")
    inspector = await Inspector.of(args.encryption_provider_config)

    def is_sound(key: str, value: bytes) -> bool:
        return is_object(inspector.plain(key, value))

    try:
        if is_shared(path):
            store = await open_store(path, storage_options(args), must_exist=True)
            try:
                found = await verify_store(store, is_sound)
            finally:
                await store.close()
            path = path.partition(":")[0]  # the URL may hold a password
        else:
            found = verify_file(path, is_sound)
    except StoreError as error:
        raise store_failure(error) from error
    finally:
        await inspector.close()
    for problem in found.problems:
        print(problem)
    told = _size_text(found.records, found.bytes)
    if found.problems:
        raise CliFailure(f"{path}: {counted(len(found.problems), 'problem')} in {told}")
    shut = f" ({counted(inspector.shut, 'encrypted value')} not opened)" if inspector.shut else ""
    print(f"{path} is sound: {told}{shut}")
    return 0


def _size_text(records: int, size: int) -> str:
    return f"{counted(records, 'record')}, {counted(size, 'byte')}"


_STEPS = ("count", "copy", "verify")

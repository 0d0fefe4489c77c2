"""``instar storage``: copies a store to another backend, or verifies a SQLite store.

``wire/storage/copy.py`` and ``verify.py`` do the work.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import orjson
from rich.console import Console
from rich.progress import Progress

from instar.base.plurals import counted
from instar.cli.shared.encrypted_stores import Inspector
from instar.cli.shared.etcd_flags import add_etcd_arguments, storage_options
from instar.cli.shared.failure import CliFailure
from instar.wire.storage.copy import copy_store
from instar.wire.storage.open import open_store
from instar.wire.storage.store import StoreError
from instar.wire.storage.verify import verify_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", help="what to do"
    )
    copy = actions.add_parser("copy", help="copy SOURCE to an empty TARGET, verifying every byte")
    copy.add_argument("source", metavar="SOURCE", help="sqlite:PATH or etcd://HOST:PORT,…/PREFIX")
    copy.add_argument("target", metavar="TARGET", help="like SOURCE; must be empty")
    add_etcd_arguments(copy)
    verify = actions.add_parser("verify", help="read every page and every value of a SQLite store")
    verify.add_argument(
        "--encryption-provider-config",
        metavar="YAML",
        type=Path,
        help="also decrypt every encrypted value",
    )
    verify.add_argument("path", metavar="PATH", help="the file, with or without the prefix sqlite:")


def run(args: argparse.Namespace) -> int:
    if args.action == "verify":
        path = args.path.removeprefix("sqlite:")
        return asyncio.run(_verify(path, args.encryption_provider_config))
    return asyncio.run(_copy(args))


async def _copy(args: argparse.Namespace) -> int:
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
        raise CliFailure(str(error)) from error
    print(f"copied and verified {_size_text(copied.records, copied.bytes)}")
    return 0


async def _verify(path: str, config: Path | None) -> int:
    """Verify a file; encrypted values are decrypted and checked if a configuration is given."""
    inspector = await Inspector.of(config)
    try:
        found = verify_file(path, lambda key, value: _is_object(inspector.plain(key, value)))
    except StoreError as error:
        raise CliFailure(str(error)) from error
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


def _is_object(value: bytes | None) -> bool:
    """Return whether the value is a JSON object; None is a value that cannot be decrypted."""
    try:
        return value is None or isinstance(orjson.loads(value), dict)
    except orjson.JSONDecodeError:
        return False


_STEPS = ("count", "copy", "verify")

"""``instar storage``: move everything to another engine, or read all there is, verified."""

from __future__ import annotations

import argparse
import asyncio

import orjson
from rich.progress import Progress

from instar.cli.etcd import add_etcd_arguments, storage_options
from instar.cli.failure import CliFailure
from instar.storage.copy import copy_store
from instar.storage.open import open_store
from instar.storage.store import StoreError
from instar.storage.verify import verify_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    copy = actions.add_parser("copy", help="copy SOURCE to an empty TARGET, verifying every byte")
    copy.add_argument("source", help="sqlite:PATH or etcd://HOST:PORT,…/PREFIX")
    copy.add_argument("target", help="the same forms; must be empty")
    add_etcd_arguments(copy)
    verify = actions.add_parser("verify", help="read every page and every value of a SQLite store")
    verify.add_argument("path", metavar="PATH", help="the file, with or without sqlite: before it")


def run(args: argparse.Namespace) -> int:
    if args.action == "verify":
        return _verify(args.path.removeprefix("sqlite:"))
    return asyncio.run(_copy(args))


async def _copy(args: argparse.Namespace) -> int:
    options = storage_options(args)
    try:
        source = await open_store(args.source, options, must_exist=True)
        try:
            target = await open_store(args.target, options)
            try:
                with Progress() as bar:
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
    print(f"copied and verified {copied.records} records, {copied.bytes} bytes")
    return 0


def _verify(path: str) -> int:
    def is_object(value: bytes) -> bool:
        try:
            return isinstance(orjson.loads(value), dict)
        except orjson.JSONDecodeError:
            return False

    try:
        found = verify_file(path, is_object)
    except StoreError as error:
        raise CliFailure(str(error)) from error
    for problem in found.problems:
        print(problem)
    told = f"{found.records} records, {found.bytes} bytes"
    if found.problems:
        raise CliFailure(f"{path}: {len(found.problems)} problems in {told}")
    print(f"{path} is sound: {told}")
    return 0


_STEPS = ("count", "copy", "verify")

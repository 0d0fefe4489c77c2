"""``instar serve --from``: loads a snapshot or folder into the server's store at start.

Called by ``cli/commands/serve.py``; ``tools/snapshots/loading.py`` fills the store.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from instar.base.plurals import counted
from instar.cli.shared.failure import CliFailure
from instar.wire.storage.store import Store

if TYPE_CHECKING:
    from instar.tools.snapshots.captured_cluster import World
    from instar.tools.snapshots.loading import Loaded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="source",
        metavar="SNAPSHOT",
        help="begin with what is in a snapshot, a folder of manifests, a dump, a backup, a "
        "must-gather bundle, or kube: (a copy of a live cluster)",
    )
    parser.add_argument(
        "--read-only", action="store_true", help="refuse every write; controllers stand still"
    )


def choose(args: argparse.Namespace) -> None:
    """Set defaults for a copy: in memory, without controllers that would change it."""
    copy = args.source is not None
    args.storage = args.storage or ("memory:" if copy else "sqlite:instar.db")
    args.gc = args.gc or ("off" if copy else "on")
    args.furniture = args.furniture or ("off" if copy else "on")


def filling(args: argparse.Namespace) -> Callable[[Store], Awaitable[None]] | None:
    if args.source is None:
        return None
    source: str = args.source
    # Imported here, because few servers start from a snapshot.
    from instar.tools.snapshots.errors import SnapshotError
    from instar.tools.snapshots.loading import filling as filling_from

    filled = filling_from(source, lambda world, loaded: _print_summary(source, world, loaded))

    async def fill(store: Store) -> None:
        try:
            await filled(store)
        except SnapshotError as error:
            raise CliFailure(f"--from {source}: {error}") from error

    return fill


def _print_summary(source: str, world: World, loaded: Loaded) -> None:
    for problem in world.problems:
        print(f"instar serve: {problem}", file=sys.stderr)
    left = loaded.left_out.total() + sum(world.counts().missing.values())
    out = f"; {counted(left, 'object')} not there, see above" if left else ""
    print(
        f"{source}: {counted(loaded.crds, 'CRD')} with "
        f"{counted(loaded.objects.total(), 'object')}, "
        f"{loaded.others} besides{out}",
        file=sys.stderr,
        flush=True,
    )

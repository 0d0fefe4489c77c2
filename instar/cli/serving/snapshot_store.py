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
    from instar.tools.snapshots.captured_cluster import CapturedCluster
    from instar.tools.snapshots.loading import Loaded


def add_arguments(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--from",
        dest="source",
        metavar="SNAPSHOT",
        help="begin with what is in a snapshot, a folder of manifests, a dump, a backup, a "
        "must-gather bundle, or kube: (a copy of a live cluster)",
    )
    parser.add_argument(
        "--trust-access",
        action="store_true",
        help="with --from, load also what grants access or sends objects elsewhere: roles and "
        "bindings, webhooks, admission policies, API services, tokens",
    )
    parser.add_argument(
        "--read-only", action="store_true", help="refuse every write; controllers stand still"
    )


def set_copy_defaults(args: argparse.Namespace) -> None:
    """Set defaults for a copy: in memory, without controllers that would change it."""
    copy = args.source is not None
    args.storage = args.storage or ("memory:" if copy else "sqlite:instar.db")
    args.gc = args.gc or ("off" if copy else "on")
    args.bootstrap_objects = args.bootstrap_objects or ("off" if copy else "on")


def store_filler(args: argparse.Namespace) -> Callable[[Store], Awaitable[None]] | None:
    """Return the function that loads ``--from`` into the empty store; None without the flag."""
    if args.source is None:
        if args.trust_access:
            raise CliFailure("--trust-access goes with --from", code=2)
        return None
    source: str = args.source
    # Imported here, because few servers start from a snapshot.
    from instar.tools.snapshots.errors import SnapshotError
    from instar.tools.snapshots.loading import store_filler as filling_from

    filled = filling_from(
        source,
        lambda world, loaded: _print_summary(source, world, loaded),
        trust_access=args.trust_access,
    )

    async def fill(store: Store) -> None:
        try:
            await filled(store)
        except SnapshotError as error:
            raise CliFailure(f"--from {source}: {error}", code=2) from error

    return fill


def _print_summary(source: str, world: CapturedCluster, loaded: Loaded) -> None:
    for problem in world.problems:
        print(f"instar serve: {problem}", file=sys.stderr)
    withheld = [f"{number} {kind}" for kind, number in loaded.withheld.items() if number]
    if withheld:
        print(
            f"instar serve: left out of {source}, because they grant access or send objects "
            f"elsewhere: {', '.join(withheld)}; if you trust the file, add --trust-access",
            file=sys.stderr,
        )
    left = loaded.left_out.total() + sum(world.counts().missing.values())
    out = f"; {counted(left, 'object')} not there, see above" if left else ""
    print(
        f"{source}: {counted(loaded.crds, 'CRD')} with "
        f"{counted(loaded.objects.total(), 'object')}, "
        f"{loaded.others} besides{out}",
        file=sys.stderr,
        flush=True,
    )

"""``instar restore``: restores an object, or a deleted CRD with its objects.

``tools/restorer`` does the work, from the server's history or a snapshot.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import chain

from instar.base.escaping import shell_word
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.cli.shared.cluster_flags import with_client
from instar.cli.shared.common_flags import add_cluster_arguments
from instar.cli.shared.diffs import add_colour_argument, diff, wants_colour
from instar.cli.shared.failure import CliFailure
from instar.kube.history.writes import without_bookkeeping
from instar.tools.restorer import restore_crd
from instar.tools.restorer.errors import RestoreError
from instar.tools.restorer.object_history import NamedObject, find, last_alive, state
from instar.tools.restorer.restore_object import Restored, Restorer
from instar.tools.snapshots.captured_cluster import CapturedCluster
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.sources import open_captured_cluster
from instar.wire.client.client import Client

_CRD_WORDS = ("crd", "crds", "customresourcedefinition", "customresourcedefinitions")
_CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_HELP = """\
Without --at and --from: the last state before it was deleted. What comes back has a uid of its
own; owners that are gone are not named again. --dry-run writes nothing and shows what would be.

  instar restore widget a -n team --at 4711
  instar restore crd widgets.example.com
  instar restore crd widgets.example.com --from cluster.tar
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _HELP
    parser.add_argument("kind", metavar="KIND", help="kind, plural, short name, or CRD")
    parser.add_argument("name", metavar="NAME", help="name of the object")
    parser.add_argument(
        "--namespace", "-n", metavar="NAME", help="namespace (default: the context's)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--at", type=int, metavar="REVISION", help="a revision listed by `instar history`"
    )
    where.add_argument(
        "--from", dest="source", metavar="SNAPSHOT", help="restore from a snapshot or a folder"
    )
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument(
        "--without-objects", action="store_true", help="restore a deleted CRD without its objects"
    )
    add_colour_argument(parser)
    add_cluster_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.at is not None and args.at < 1:
        raise CliFailure("--at must be a revision: a number above 0", code=2)
    try:
        world = open_captured_cluster(args.source) if args.source else None
    except SnapshotError as error:
        raise CliFailure(str(error), code=2) from None
    try:
        return with_client(args, lambda client: _restore(args, client, world))
    except RestoreError as error:
        raise CliFailure(str(error)) from None
    finally:
        if world is not None:
            world.close()


async def _restore(args: argparse.Namespace, client: Client, world: CapturedCluster | None) -> int:
    restorer = Restorer(client, dry_run=args.dry_run)
    if args.kind.lower().partition(".")[0] in _CRD_WORDS:
        return await _restore_crd(args, client, restorer, world)
    named = await find(client, args.kind, args.name, args.namespace)
    if world is not None:
        past = await asyncio.to_thread(_captured, world, named)
    elif args.at is not None:
        past = await state(client, named, args.at)
    else:
        _, past = await last_alive(client, named)
    _print_result(args, named, await restorer.restore(named, past))
    return 0


async def _restore_crd(
    args: argparse.Namespace, client: Client, restorer: Restorer, world: CapturedCluster | None
) -> int:
    named = restore_crd.named_crd(args.name)
    revision = args.at or 0
    if world is not None:
        past = next((crd for crd in world.crds() if crd["metadata"]["name"] == args.name), None)
        if past is None:
            raise RestoreError(f"{args.source} has no CRD {args.name}")
    elif revision:
        past = await state(client, named, revision)
    else:
        revision, past = await last_alive(client, named)
    crd = restore_crd.without_traces(past)
    done = await restorer.restore(named, crd)
    _print_result(args, named, done)
    if args.without_objects:
        return 0
    if done.action != "created":
        print(
            "the CRD exists, so its objects are left alone "
            "(to restore single ones: instar restore KIND NAME)"
        )
        return 0
    if args.dry_run:
        when = f"as of revision {revision}" if revision else "of the snapshot"
        print(f"its objects {when} would come back with it")
        return 0
    await restore_crd.established(client, args.name)
    if world is not None:
        objects = _captured_objects(world, args.name)
    else:
        objects = restore_crd.objects_at(client, crd, revision)
    restored = await restore_crd.restore_objects(restorer, crd, objects)
    return _print_crd_result(restored, () if world is None else world.problems)


async def _captured_objects(world: CapturedCluster, crd: str) -> AsyncIterator[Object]:
    for obj in world.objects(crd):
        yield obj


def _captured(world: CapturedCluster, named: NamedObject) -> Object:
    wanted = (named.namespace, named.name)
    for obj in _of_kind(world, named):
        metadata = obj.get("metadata") or {}
        if (str(metadata.get("namespace") or ""), metadata.get("name")) == wanted:
            return obj
    raise RestoreError(f"{world.origin} has no {named}")


def _of_kind(world: CapturedCluster, named: NamedObject) -> Iterator[Object]:
    if named.type.name in world.crd_names():
        yield from world.objects(named.type.name)
        return
    for obj in chain(world.other_objects(), world.unknown()):
        group = str(obj.get("apiVersion", "")).rpartition("/")[0]
        if (group, obj.get("kind")) == (named.type.group, named.type.kind):
            yield obj


def _print_result(args: argparse.Namespace, named: NamedObject, done: Restored) -> None:
    would = "would be " if args.dry_run else ""
    print(f"{named}: {would}{done.action}")
    if done.action == "updated":
        for line in diff(
            without_bookkeeping(done.before), without_bookkeeping(done.after), wants_colour(args)
        ):
            print(f"    {line}")
    for note in done.notes:
        print(f"    {note}")
    if done.kept:
        words = ["crd" if named.type.name == _CRDS else named.type.name, named.name]
        words += ["-n", named.namespace] if named.namespace else []
        command = " ".join(shell_word(word) for word in [*words, "--from", done.kept])
        print(f"    to take this back: instar restore {command}")


def _print_crd_result(done: restore_crd.Objects, problems: Sequence[str]) -> int:
    """Print the result; ``problems`` lists what the snapshot lacks and was not restored."""
    print(f"{counted(done.created, 'object')} restored")
    if done.there:
        print(f"{counted(done.there, 'object')} were there already and were left alone")
    for line in [*done.notes, *(f"not restored: {each}" for each in done.failed)]:
        print(f"    {line}")
    for problem in problems:
        print(f"    the snapshot is incomplete: {problem}")
    return int(bool(done.failed or problems))

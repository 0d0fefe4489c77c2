"""``instar history``: shows an object's past writes as diffs, with manager, time and version.

``tools/restorer/object_history.py`` reads them from the server.
"""

from __future__ import annotations

import argparse
import json
import sys

from instar.base.json_values import Object
from instar.cli.shared.cluster_flags import with_client
from instar.cli.shared.common_flags import add_cluster_arguments, add_output_argument
from instar.cli.shared.diffs import add_colour, add_colour_argument, diff, wants_colour
from instar.cli.shared.failure import CliFailure
from instar.kube.api.encoding.yaml_text import write_yaml
from instar.kube.history.writes import without_bookkeeping
from instar.tools.restorer.errors import RestoreError
from instar.tools.restorer.object_history import NamedObject, find, state, writes
from instar.wire.client.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", help="kind, plural, short name, or with its group")
    parser.add_argument("name", metavar="NAME", help="name of the object")
    parser.add_argument(
        "--namespace", "-n", metavar="NAME", help="namespace (default: the context's)"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=20,
        metavar="N",
        help="number of latest writes to show, at most 200",
    )
    parser.add_argument("--no-diff", action="store_true", help="one line for each write")
    add_output_argument(parser, ("text", "json", "yaml"))
    add_colour_argument(parser)
    add_cluster_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.limit < 1:
        raise CliFailure("--limit must be at least 1", code=2)
    try:
        return with_client(args, lambda client: _show_history(args, client))
    except RestoreError as error:
        raise CliFailure(str(error)) from None


async def _show_history(args: argparse.Namespace, client: Client) -> int:
    named = await find(client, args.kind, args.name, args.namespace)
    told = await writes(client, named, args.limit)
    if args.output == "json":
        print(json.dumps(told, indent=2, ensure_ascii=False))
    elif args.output == "yaml":
        sys.stdout.write(write_yaml(told).decode())
    else:
        await _print(args, client, named, told)
    return 0


async def _print(
    args: argparse.Namespace, client: Client, named: NamedObject, told: Object
) -> None:
    colour = wants_colour(args)
    before: Object | None = None
    for row in told["revisions"]:
        print(add_colour(_headline(row), "bold", colour))
        if args.no_diff or row.get("problem"):
            before = None
            continue
        now = await _object_of(client, named, row)
        if row["operation"] == "earliest" or (before is None and row["operation"] != "create"):
            print("    the state before is compacted, or not shown" if now else "")
        else:
            for line in diff(without_bookkeeping(before or {}), without_bookkeeping(now), colour):
                print(f"    {line}")
        before = now
    if told["more"]:
        print("older writes are not shown (--limit)")


async def _object_of(client: Client, named: NamedObject, row: Object) -> Object:
    return {} if row["operation"] == "delete" else await state(client, named, row["revision"])


def _headline(row: Object) -> str:
    words = [f"revision {row['revision']}", str(row["operation"])]
    if row.get("time"):
        words.append(str(row["time"]))
    managers = [_manager(each) for each in row.get("managers") or ()]
    if managers:
        words.append(f"by {', '.join(managers)}")
    if row.get("storedVersion"):
        words.append(f"stored at {row['storedVersion']}")
    if row.get("problem"):
        words.append(f"cannot be shown: {row['problem']}")
    return "  ".join(words)


def _manager(entry: Object) -> str:
    part = f", {entry['subresource']}" if entry.get("subresource") else ""
    return f"{entry.get('manager')} ({entry.get('operation')}{part})"

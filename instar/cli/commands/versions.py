"""``instar versions``: shows a CRD's versions and the clients that use them, and edits the versions
(add, deprecate, change the storage version, stop serving, remove).

``cli/shared/version_edits.py`` makes edits; ``tools/migrator/versions/version_state.py`` finds out
the state of each version.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from instar.base.errors import Conflict
from instar.base.escaping import shell_word
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.cli.shared.cluster_flags import read_crds, with_client
from instar.cli.shared.common_flags import (
    add_cluster_arguments,
    add_output_argument,
)
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.version_edits import DONE, edit_cluster, edit_file
from instar.kube.api.crd import Crd, CrdVersion
from instar.kube.api.user_agents import VERSIONS
from instar.tools.migrator.census.usage import from_audit_logs
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.rewrite_checks.collection_check import EFFECT_SECONDS
from instar.tools.migrator.versions.lifecycle import Situation, ago, next_steps, why_safe
from instar.tools.migrator.versions.version_state import QUIET_DAYS, as_document, situation_of
from instar.wire.client.client import Client

ACTIONS = ("add", "serve", "deprecate", "storage", "unserve", "remove")
_ATTEMPTS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("crd", nargs="?", metavar="CRD", help="widgets.example.com; without one, an overview")
    add("action", nargs="?", choices=ACTIONS, help="make this edit; without it, show the versions")
    add("version", nargs="?", metavar="VERSION", help="the version to edit")
    add_cluster_arguments(parser)
    add("--file", type=Path, metavar="YAML", help="edit this file instead of the cluster")
    add("--offline", action="store_true", help="with --file: do not query the cluster")
    add("--from", dest="source", default="", metavar="VERSION", help="add: copy this one")
    add("--schema", type=Path, metavar="FILE", help="add: with this openAPIV3Schema")
    add("--warning", default="", metavar="TEXT", help="deprecate: the warning that clients get")
    add(
        "--quiet-days",
        type=float,
        default=QUIET_DAYS,
        metavar="N",
        help="unserve: required days without requests",
    )
    add(
        "--audit-log",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="count clients from this audit log, if the server does not; may be repeated",
    )
    add("--clients-migrated", action="store_true", help="unserve: assert that no client uses it")
    add("--dry-run", action="store_true", help="check everything, change nothing")
    add(
        "--settle",
        type=float,
        default=EFFECT_SECONDS,
        metavar="SECONDS",
        help="remove: wait so long before the objects are listed again (not on instar)",
    )
    add_output_argument(parser, ("text", "json"))


def run(args: argparse.Namespace) -> int:
    if not args.crd:
        return with_client(args, lambda client: _overview(args, client))
    if args.action and not args.version:
        raise CliFailure(f"{args.action} needs a version", code=2)
    if args.offline and not args.file:
        raise CliFailure("--offline needs --file", code=2)
    if args.offline:
        return edit_file(args, None)
    return with_client(args, lambda client: _with_cluster(args, client), user_agent=VERSIONS)


async def _overview(args: argparse.Namespace, client: Client) -> int:
    """Print one line per CRD: storage version in brackets, unserved versions in parentheses."""
    crds = [read_live_crd(raw).crd for raw in await read_crds(client, [])]
    if args.output == "json":
        print(json.dumps([_versions_of(crd) for crd in crds], indent=2))
        return 0
    rows = [("CRD", "VERSIONS", "STORED", "CONVERSION")]
    for crd in crds:
        shown = [_version_text(item) for item in crd.versions]
        stored = ",".join(crd.stored_versions) or "-"
        rows.append((crd.name, " ".join(shown), stored, crd.conversion.strategy))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[3]]))
    return 0


def _version_text(version: CrdVersion) -> str:
    name = f"[{version.name}]" if version.storage else version.name
    return name if version.served else f"({name})"


def _versions_of(crd: Crd) -> dict[str, Any]:
    return {
        "crd": crd.name,
        "versions": [
            {"name": item.name, "served": item.served, "storage": item.storage}
            for item in crd.versions
        ],
        "storedVersions": list(crd.stored_versions),
        "conversion": crd.conversion.strategy,
    }


async def _with_cluster(args: argparse.Namespace, client: Client) -> int:
    raw = (await read_crds(client, [args.crd]))[0]
    situation = await _situation(args, client, raw)
    if not args.action:
        _show(args, situation, client.access.server)
        return 0
    if args.file:
        return edit_file(args, situation, raw)
    for _ in range(_ATTEMPTS):
        try:
            return await edit_cluster(args, client, situation, raw)
        except Conflict:
            # The CRD was changed meanwhile, by a controller or a migration's progress: check again.
            raw = (await read_crds(client, [args.crd]))[0]
            situation = await _situation(args, client, raw)
    raise CliFailure(f"{args.crd} keeps changing concurrently; try again later")


async def _situation(args: argparse.Namespace, client: Client, raw: Object) -> Situation:
    try:
        known = from_audit_logs(args.audit_log, read_live_crd(raw)) if args.audit_log else None
    except OSError as error:
        raise CliFailure(f"--audit-log: {error}") from error
    return await situation_of(
        client,
        raw,
        quiet_days=args.quiet_days,
        usage=known,
        clients_migrated=args.clients_migrated,
        removing=args.version if args.action == "remove" else "",
    )


def _show(args: argparse.Namespace, situation: Situation, server: str) -> None:
    crd = situation.crd
    if args.output == "json":
        print(json.dumps(as_document(situation), indent=2))
        return
    steps = {item.name: next_steps(situation, item.name) for item in crd.versions}
    census = situation.census
    how = "not counted" if census is None else census.how
    if census is not None and census.counted:
        how = f"{counted(census.total, 'object')}; {how}"
    print(f"{crd.name} on {server}")
    print(f"conversion {crd.conversion.strategy}; {how}")
    print(f"requests: {_counted_since(situation)}")
    rows = [("VERSION", "SERVED", "STORAGE", "DEPRECATED", "STORED", "LAST USED")]
    rows += [_row(situation, item.name) for item in crd.versions]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[5]]).rstrip())
    _show_next(situation, steps)


def _counted_since(situation: Situation) -> str:
    usage = situation.usage
    if usage.since is None:
        return "not counted by this server; pass --audit-log FILE"
    return f"{usage.how} since {usage.since:%Y-%m-%d %H:%M} UTC"


def _row(situation: Situation, name: str) -> tuple[str, str, str, str, str, str]:
    version = situation.crd.version(name)
    assert version is not None
    last = situation.usage.latest(name)
    used = "-"
    if last is not None:
        used = f"{ago(situation.now, last.last)}: {last.verb} by {last.agent} ({last.user})"
    stored = "?" if situation.census is None else situation.census.shown(name)
    return (
        name,
        "yes" if version.served else "no",
        "yes" if version.storage else "no",
        "yes" if version.deprecated else "no",
        stored,
        used,
    )


def _show_next(situation: Situation, steps: dict[str, list[tuple[str, list[str]]]]) -> None:
    crd = situation.crd
    stale = 0 if situation.census is None else situation.census.stale(situation.storage)
    others = [name for name in crd.stored_versions if name != situation.storage]
    if others:
        number = f"up to {counted(stale, 'object')}" if stale else "storedVersions"
        print(f"\n{number} at {', '.join(others)}: run instar migrate {shell_word(crd.name)}")
    print()
    for version, found in steps.items():
        for step, blocks in found:
            verb = DONE[step]
            if blocks:
                print(f"{version} cannot be {verb}: {'; '.join(blocks)}")
                continue
            reason = why_safe(situation, step, version)
            print(f"{version} can be {verb}{': ' if reason else ''}{reason}")
            print(
                f"  instar versions {shell_word(crd.name)} {shell_word(step)} {shell_word(version)}"
            )

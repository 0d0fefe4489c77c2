"""``instar fields``: removes a field from a CRD in stages: deprecate, warn, count users, remove.

``tools/migrator`` counts the objects that set a field and edits the CRD.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from instar.base.errors import ApiError, NotFound
from instar.base.escaping import shell_word
from instar.base.json_values import Object, copy_json
from instar.cli.shared.cluster_flags import read_crds, with_client
from instar.cli.shared.common_flags import add_cluster_arguments, add_output_argument
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.field_removals import confirm_field_removal
from instar.kube.api.user_agents import VERSIONS
from instar.tools.migrator.census.field_holders import HolderCensus, count_holders
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.rewrite_checks.collection_check import EFFECT_SECONDS
from instar.tools.migrator.versions.field_removal import (
    NoSuchField,
    blocks_removal,
    deprecate,
    deprecated,
    policy,
    remove,
    steps_of,
    versions_with,
)
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path, resource_path

_GROUP = "admissionregistration.k8s.io"
_PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("crd", metavar="CRD", help="for example widgets.example.com")
    add(
        "action",
        nargs="?",
        choices=("deprecate", "remove"),
        help="without it: list deprecated fields",
    )
    add("path", nargs="?", metavar="PATH", help="spec.name, spec.list[*].name, spec.map.*.name")
    add_cluster_arguments(parser)
    add("--message", default="it goes away", metavar="TEXT", help="deprecate: what to do instead")
    add(
        "--deny",
        action="store_true",
        help="deprecate: reject writes that set it, instead of warning",
    )
    add("--policy", type=Path, metavar="FILE", help="deprecate: write the policy here instead")
    add("--force", action="store_true", help="remove: even if objects set it")
    add("--dry-run", action="store_true", help="check everything, change nothing")
    add(
        "--settle",
        type=float,
        default=EFFECT_SECONDS,
        metavar="SECONDS",
        help="remove: wait so long before objects written meanwhile are looked for (not on instar)",
    )
    add_output_argument(parser, ("text", "json"))


def run(args: argparse.Namespace) -> int:
    if args.action and not args.path:
        raise CliFailure(f"{args.action} needs the path of a field", code=2)
    try:
        if args.path:
            steps_of(args.path)
    except ValueError as error:
        raise CliFailure(str(error), code=2) from None
    action = {"deprecate": _deprecate, "remove": _remove}.get(args.action or "", _show)
    try:
        return with_client(args, lambda client: action(args, client), user_agent=VERSIONS)
    except NoSuchField as error:
        raise CliFailure(str(error)) from None


async def _show(args: argparse.Namespace, client: Client) -> int:
    raw = (await read_crds(client, [args.crd]))[0]
    found = deprecated(raw)
    census = await _count(client, raw, [item.path for item in found])
    rows = [
        {
            "path": item.path,
            "version": item.version,
            "text": item.text,
            "objects": census.of(item.path).use.objects,
            "managers": dict(census.of(item.path).use.managers),
            "mayGo": not blocks_removal(census.of(item.path), marked=True),
        }
        for item in found
    ]
    if args.output == "json":
        print(json.dumps({"crd": args.crd, "objects": census.total, "deprecated": rows}, indent=2))
        return 0
    if not found:
        print(f"{args.crd}: no field is deprecated")
    for path in dict.fromkeys(item.path for item in found):
        holders = census.of(path)
        print(f"{path}: {holders.says()}")
        blocks = blocks_removal(holders, marked=True)
        if not blocks:
            print(
                f"  it can be removed: instar fields {shell_word(args.crd)} remove "
                f"{shell_word(path)}"
            )
        elif not holders.use.objects:
            print(f"  it cannot be removed yet: {'; '.join(blocks)}")
    return 0


async def _count(client: Client, raw: Object, paths: Iterable[str]) -> HolderCensus:
    fields = {path: versions_with(raw, path) for path in paths}
    return await count_holders(client, read_live_crd(raw), fields)


async def _deprecate(args: argparse.Namespace, client: Client) -> int:
    raw = (await read_crds(client, [args.crd]))[0]
    changed = deprecate(raw, args.path, args.message)
    manifests = policy(raw, args.path, args.message, deny=args.deny)
    if changed and not args.dry_run:
        await client.put(crd_path(args.crd), raw, fieldManager="instar-versions")
    where = f"at {', '.join(changed)}" if changed else "already"
    print(f"{args.crd}: {args.path} is deprecated {where} in its description")
    if args.policy is not None:
        args.policy.write_text(yaml.safe_dump_all(manifests, sort_keys=False), encoding="utf-8")
        print(f"the policy is in {args.policy}; apply it with kubectl")
    elif not args.dry_run:
        await _install(args, client, manifests)
    print((await _count(client, raw, [args.path])).of(args.path).says())
    print(f"to see which objects still set it: instar fields {shell_word(args.crd)}")
    return 0


async def _install(args: argparse.Namespace, client: Client, manifests: list[Object]) -> None:
    """Apply the policy server-side, so that running it twice is harmless."""
    for manifest in manifests:
        path = resource_path(
            _GROUP, "v1", _PLURALS[manifest["kind"]], name=manifest["metadata"]["name"]
        )
        try:
            await client.patch(
                path, manifest, type="apply", fieldManager="instar-versions", force=True
            )
        except NotFound:
            print(
                "this server has no admission policies, so writers are not warned  "
                "(--policy FILE writes one for another server)",
                file=sys.stderr,
            )
            return
        except ApiError as error:
            raise CliFailure(f"the policy could not be installed: {error.message}") from error
    verb, name = "refused" if args.deny else "warned", manifests[0]["metadata"]["name"]
    print(f"writers that set it are {verb}: ValidatingAdmissionPolicy {name}")


async def _remove(args: argparse.Namespace, client: Client) -> int:
    raw = (await read_crds(client, [args.crd]))[0]
    before = copy_json(raw)
    census = await _count(client, raw, [args.path])
    marked = any(item.path == args.path for item in deprecated(raw))
    blocks = blocks_removal(census.of(args.path), marked)
    changed = remove(raw, args.path)
    if blocks and not args.force:
        raise CliFailure(f"{args.path} cannot be removed yet: {'; '.join(blocks)}")
    dry_run = "All" if args.dry_run else None
    after = await client.put(
        crd_path(args.crd), raw, fieldManager="instar-versions", dryRun=dry_run
    )
    if not (args.dry_run or args.force):
        await confirm_field_removal(
            client, before, after, args.path, census.revision, settle=args.settle
        )
    done = "can be removed" if args.dry_run else "is removed"
    print(f"{args.crd}: {args.path} {done} at {', '.join(changed)}")
    return 0

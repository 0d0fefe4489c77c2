"""``instar fields``: removes a field from a CRD in stages: deprecate, warn, count users, remove.

``tools/migrator`` counts the objects that set a field and edits the CRD.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import yaml

from instar.base.errors import ApiError, NotFound
from instar.base.escaping import shell_word
from instar.base.json_values import Object
from instar.cli.shared.cluster_flags import read_crds, with_client
from instar.cli.shared.common_flags import add_cluster_arguments, add_output_argument
from instar.cli.shared.failure import CliFailure
from instar.kube.api.user_agents import VERSIONS
from instar.tools.migrator.census.field_census import count_fields
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.versions.field_removal import (
    NoSuchField,
    blocks_removal,
    deprecate,
    deprecated,
    policy,
    remove,
    steps_of,
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
    tally = (await count_fields(client, read_live_crd(raw))).tally
    found = deprecated(raw)
    rows = [
        {
            "path": item.path,
            "version": item.version,
            "text": item.text,
            "objects": tally.of(item.path).objects,
            "managers": dict(tally.of(item.path).managers),
            "mayGo": not blocks_removal(tally, item.path, marked=True),
        }
        for item in found
    ]
    if args.output == "json":
        print(json.dumps({"crd": args.crd, "objects": tally.total, "deprecated": rows}, indent=2))
        return 0
    if not found:
        print(f"{args.crd}: no field is deprecated")
    for path in dict.fromkeys(item.path for item in found):
        print(f"{path}: {tally.of(path).says(tally.total)}")
        if not tally.of(path).objects:
            print(
                f"  it can be removed: instar fields {shell_word(args.crd)} remove "
                f"{shell_word(path)}"
            )
    return 0


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
    tally = (await count_fields(client, read_live_crd(raw))).tally
    print(tally.of(args.path).says(tally.total))
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
    tally = (await count_fields(client, read_live_crd(raw))).tally
    marked = any(item.path == args.path for item in deprecated(raw))
    blocks = blocks_removal(tally, args.path, marked)
    changed = remove(raw, args.path)
    if blocks and not args.force:
        raise CliFailure(f"{args.path} cannot be removed yet: {'; '.join(blocks)}")
    dry_run = "All" if args.dry_run else None
    await client.put(crd_path(args.crd), raw, fieldManager="instar-versions", dryRun=dry_run)
    done = "can be removed" if args.dry_run else "is removed"
    print(f"{args.crd}: {args.path} {done} at {', '.join(changed)}")
    return 0

"""Runs the edits of ``instar versions``: checks that the edit is safe, then changes the manifest
file or the CRD on the cluster.

Called by ``cli/commands/versions.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ruamel.yaml.error import YAMLError

from instar.base.errors import Conflict
from instar.base.escaping import shell_word
from instar.base.json_values import Object, copy_json
from instar.base.text_files import read_text
from instar.cli.shared.failure import CliFailure
from instar.kube.api.crd import GROUP, KIND, is_crd
from instar.kube.api.encoding.manifests import UnreadableManifest, only_document
from instar.tools.migrator.census.usage import VersionUsage
from instar.tools.migrator.census.version_census import exact_census
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.rewrite_checks.collection_check import why_unreadable
from instar.tools.migrator.rewrite_checks.pass_record import follow_edit
from instar.tools.migrator.versions.crd_edits import EDITS, VersionEdit
from instar.tools.migrator.versions.lifecycle import (
    STEPS,
    Situation,
    blocks_schema,
    warnings_remove,
)
from instar.tools.sdk.manifests.documents import editor_for
from instar.tools.sdk.manifests.files import write
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

DONE = {
    "add": "added",
    "serve": "served",
    "deprecate": "deprecated",
    "storage": "made the storage version",
    "unserve": "unserved",
    "remove": "removed",
}
_AFTER = {
    "add": "clients may use {version} now; when they do: instar versions {crd} storage {version}",
    "serve": "clients may use {version} again",
    "deprecate": "clients of {version} are warned now; watch them: instar versions {crd}",
    "storage": "new writes are stored as {version}; rewrite the old objects: instar migrate {crd}",
    "unserve": "if a client complains: instar versions {crd} serve {version}",
    "remove": "drop conversion support for {version} from the webhook, if there is one",
}

_ATTEMPTS = 5


async def edit_cluster(
    args: argparse.Namespace, client: Client, situation: Situation, raw: Object
) -> int:
    """Edit the CRD; the write fails if its resourceVersion changed since the checks."""
    wish = _requested_edit(args)
    _raise_if_blocked(args, situation, wish)
    _warn(args, situation)
    before = copy_json(raw)
    EDITS[args.action](raw, wish)
    dry_run = "All" if args.dry_run else None
    path, manager = crd_path(args.crd), "instar-versions"
    after = await client.put(path, raw, fieldManager=manager, dryRun=dry_run)
    if not args.dry_run:
        if args.action == "remove":
            await _confirm_removal(args, client, before, after)
        with suppress(OSError):
            server = client.access.server
            follow_edit(server, read_live_crd(before), read_live_crd(after))
    _print_result(args, "the cluster")
    return 0


async def _confirm_removal(
    args: argparse.Namespace, client: Client, before: Object, after: Object
) -> None:
    """List the collection at every version; add the removed version again if a list fails."""
    if await exact_census(client) is None:
        await asyncio.sleep(args.settle)
    why = await why_unreadable(client, read_live_crd(after))
    if not why:
        return
    removed = next(v for v in before["spec"]["versions"] if v["name"] == args.version)
    for _ in range(_ATTEMPTS):
        current = await client.get(crd_path(args.crd))
        current["spec"]["versions"].append(removed)
        try:
            await client.put(crd_path(args.crd), current, fieldManager="instar-versions")
        except Conflict:
            continue
        raise CliFailure(
            f"{args.version} was put back at once, because {why}; run instar migrate "
            f"{shell_word(args.crd)}"
        )
    raise CliFailure(f"{why}; put {args.version} back into the CRD: other clients change it")


def edit_file(
    args: argparse.Namespace, situation: Situation | None, cluster: Object | None = None
) -> int:
    """Edit a file. Without the cluster's ``situation`` only the file is checked, and a notice says
    so.
    """
    if not args.action:
        raise CliFailure(
            "--file needs an edit, such as `instar versions CRD serve VERSION`", code=2
        )
    wish = _requested_edit(args)
    editor, documents, target = _load(args.file, args.crd)
    if situation is not None and args.action in ("unserve", "remove"):
        # The file may be ahead of the cluster, so check the cluster's state too.
        _raise_if_blocked(args, situation, wish)
    _raise_if_blocked(args, _as_in_file(situation, target, cluster), wish)
    EDITS[args.action](target, wish)
    if not args.dry_run:
        text = io.StringIO()
        editor.dump_all(documents, text)
        write(args.file, text.getvalue())
    _print_result(args, str(args.file))
    if situation is None:
        print("offline: clients and stored objects of this version were not checked")
    return 0


def _as_in_file(situation: Situation | None, target: Object, cluster: Object | None) -> Situation:
    """Return the situation with the file's spec and the cluster's objects and clients."""
    merged = {**target, "status": (cluster or {}).get("status") or {}}
    crd = read_live_crd(merged).crd
    if situation is None:
        return Situation(
            crd=crd,
            census=None,
            usage=VersionUsage(),
            now=datetime.now(UTC),
            clients_migrated=True,
            cluster_known=False,
        )
    return Situation(
        crd=crd,
        census=situation.census,
        usage=situation.usage,
        now=situation.now,
        quiet=situation.quiet,
        clients_migrated=situation.clients_migrated,
        dependents=situation.dependents,
        named=situation.named,
    )


def _requested_edit(args: argparse.Namespace) -> VersionEdit:
    schema: Object | None = None
    if args.schema is not None:
        try:
            schema = only_document(read_text(args.schema), str(args.schema))
        except OSError as error:
            raise CliFailure(f"--schema {args.schema}: {error.strerror}", code=2) from error
        except UnreadableManifest as error:
            raise CliFailure(f"--schema: {error}", code=2) from error
        if isinstance(schema, dict) and "openAPIV3Schema" in schema:
            schema = schema["openAPIV3Schema"]
    return VersionEdit(args.version, args.source, schema, args.warning)


def _raise_if_blocked(args: argparse.Namespace, situation: Situation, wish: VersionEdit) -> None:
    blocks = STEPS[args.action](situation, wish.version)
    if args.action == "add":
        blocks += blocks_schema(situation.crd, wish.source, wish.schema)
    if blocks:
        raise CliFailure(f"{wish.version} cannot be {DONE[args.action]}: {'; '.join(blocks)}")


def _warn(args: argparse.Namespace, situation: Situation) -> None:
    if args.action == "remove":
        for text in warnings_remove(situation, args.version):
            print(f"warning: {text}", file=sys.stderr)


def _load(path: Path, name: str) -> tuple[Any, list[Any], Any]:
    """Return the YAML writer, every document of the file, and the CRD among them."""
    try:
        text = read_text(path)
        editor = editor_for(text)
        documents = list(editor.load_all(text))
    except OSError as error:
        raise CliFailure(f"{path}: {error.strerror}", code=2) from error
    except YAMLError as error:
        raise CliFailure(f"{path}: {' '.join(str(error).split())}", code=2) from error
    for document in documents:
        wanted = is_crd(document) and document["apiVersion"] == f"{GROUP}/v1"
        if wanted and (document.get("metadata") or {}).get("name") == name:
            return editor, documents, document
    raise CliFailure(f"{path}: contains no {GROUP}/v1 {KIND} {name}", code=2)


def _print_result(args: argparse.Namespace, where: str) -> None:
    crd, version = args.crd, args.version
    if args.dry_run:
        print(f"{crd}: {version} can be {DONE[args.action]} in {where}; nothing was changed")
        return
    print(f"{crd}: {version} is {DONE[args.action]} in {where}")
    print(_AFTER[args.action].format(crd=crd, version=version))

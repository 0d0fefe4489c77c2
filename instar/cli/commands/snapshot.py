"""``instar snapshot``: captures a cluster, a store or a folder of manifests in one file.

``tools/snapshots/capture`` reads the sources and writes the file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.cli.shared.cluster_flags import with_client
from instar.cli.shared.common_flags import add_cluster_arguments
from instar.cli.shared.encrypted_stores import decrypting_store
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.progress_bar import progress_for
from instar.cli.shared.storage_flags import add_storage_arguments, storage_options
from instar.kube.api.user_agents import SNAPSHOT
from instar.tools.migrator.census.usage import audit_events
from instar.tools.reviewer.sources import ReviewedCluster
from instar.tools.snapshots.capture.cluster import ClusterSource
from instar.tools.snapshots.capture.recapture import CapturedClusterSource
from instar.tools.snapshots.capture.redacting import RedactedField, read_field
from instar.tools.snapshots.capture.scope import CaptureScope, NoSuchResource, built_in_resources
from instar.tools.snapshots.capture.source import Source
from instar.tools.snapshots.capture.stored import StoreSource
from instar.tools.snapshots.capture.taking import take
from instar.tools.snapshots.errors import Interrupted, SnapshotError
from instar.tools.snapshots.manifest import CRDS, OBJECTS, OTHERS, Manifest
from instar.tools.snapshots.snapshot_writer import SnapshotWriter
from instar.tools.snapshots.sources import open_captured_cluster
from instar.wire.client.client import Client
from instar.wire.storage.open import open_store
from instar.wire.storage.store import StoreError

_SHORTEST_KEY = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("crd", nargs="*", metavar="CRD", help="CRDs to capture with their objects (default: all)")
    add(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        default=Path("snapshot.tar.gz"),
        help="the file, readable by its owner alone (default: %(default)s)",
    )
    add("--force", action="store_true", help="replace the file, or restart an interrupted snapshot")
    add("--resume", action="store_true", help="continue an interrupted snapshot")
    add_cluster_arguments(parser)
    add(
        "--storage",
        metavar="URL",
        help="read the store directly: etcd://HOST:PORT,…/PREFIX, "
        "postgresql://…, or the sqlite:PATH of a server that is not running",
    )
    add(
        "--encryption-provider-config",
        metavar="YAML",
        type=Path,
        help="with --storage: decrypt its values",
    )
    add(
        "--from",
        dest="source",
        metavar="SOURCE",
        help="from a folder of manifests, a dump, a backup, a must-gather bundle or a snapshot",
    )
    add(
        "--with",
        dest="more",
        metavar="RESOURCE",
        action="append",
        default=[],
        help="also capture: secrets, deployments.apps, …; --with=rbac for all of RBAC",
    )
    add(
        "--audit-log",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="usage from this audit log",
    )
    add(
        "--redact",
        metavar="[CRD=]FIELD",
        action="append",
        default=[],
        help="replace the values of a field (spec.password, spec.users[*].token) by pseudonyms",
    )
    add(
        "--redact-key",
        metavar="FILE",
        type=Path,
        help="key that makes pseudonyms equal in every snapshot",
    )
    add("--secret-data", action="store_true", help="keep the values of Secrets")
    add("--page", type=int, default=500, metavar="N", help="objects per list request")
    add("--json", action="store_true", help="print the manifest")
    add_storage_arguments(parser)


def run(args: argparse.Namespace) -> int:
    asked = _capture_scope(args)
    key = _key(args.redact_key)
    packing = _packing(args)
    try:
        manifest = _take_snapshot(args, asked, key, packing)
    except Interrupted as error:
        more = f"; go on with --resume ({packing.folder})" if packing.folder.exists() else ""
        raise CliFailure(f"{error}{more}") from error
    except SnapshotError as error:
        raise CliFailure(str(error), code=2) from error
    except OSError as error:
        raise CliFailure(f"{error.filename or packing.target}: {error.strerror}") from error
    except KeyboardInterrupt:
        raise CliFailure(f"interrupted; go on with --resume ({packing.folder})", 130) from None
    if args.json:
        print(json.dumps(manifest.document(), indent=2))
    else:
        _print(manifest, packing.target)
    return 0 if manifest.complete else 1


def _take_snapshot(
    args: argparse.Namespace, asked: CaptureScope, key: bytes | None, packing: SnapshotWriter
) -> Manifest:
    audit = audit_events(args.audit_log)
    with progress_for("snapshot", not args.json) as progress:

        def taking(
            source: Source, events: Iterable[Object] = audit, lacking: Sequence[str] = ()
        ) -> Awaitable[Manifest]:
            return take(
                source, packing, asked, progress,
                resume=args.resume, key=key, audit=events, lacking=lacking,
            )  # fmt: skip

        if args.source is not None:
            cluster = ReviewedCluster(args.kubeconfig, args.context, args.qps)
            with open_captured_cluster(args.source, cluster) as world:
                events = audit if args.audit_log else world.audit()
                return asyncio.run(
                    _await_manifest(taking(CapturedClusterSource(world), events, world.problems))
                )
        if args.storage is not None:
            return asyncio.run(_of_store(args, taking))

        def of_cluster(client: Client) -> Awaitable[Manifest]:
            origin = f"kube:{client.access.server}"
            return taking(ClusterSource(client, origin, page=args.page))

        return with_client(args, of_cluster, user_agent=SNAPSHOT)


async def _await_manifest(work: Awaitable[Manifest]) -> Manifest:
    return await work


async def _of_store(
    args: argparse.Namespace, taking: Callable[[Source], Awaitable[Manifest]]
) -> Manifest:
    try:
        found = await open_store(args.storage, storage_options(args), must_exist=True)
        store = decrypting_store(found, args.encryption_provider_config)
        try:
            return await taking(StoreSource(store, args.storage))
        finally:
            await store.close()
    except StoreError as error:
        raise CliFailure(str(error)) from error


def _capture_scope(args: argparse.Namespace) -> CaptureScope:
    if args.storage is not None and args.source is not None:
        raise CliFailure("--storage and --from are mutually exclusive", code=2)
    if args.resume and args.force:
        raise CliFailure("--resume and --force are mutually exclusive", code=2)
    if args.page < 1:
        raise CliFailure(f"--page {args.page}: expected 1 or more", code=2)
    asked = CaptureScope(
        frozenset(args.crd),
        tuple(dict.fromkeys(args.more)),
        tuple(_field(text) for text in args.redact),
        args.secret_data,
    )
    try:
        built_in_resources(asked)
    except NoSuchResource as error:
        raise CliFailure(f"--with {error}: neither rbac nor a built-in resource", 2) from None
    return asked


def _field(text: str) -> RedactedField:
    try:
        return read_field(text)
    except ValueError as error:
        raise CliFailure(f"--redact {text}: {error}", code=2) from None


def _key(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise CliFailure(f"--redact-key {path}: {error.strerror}") from None
    if len(key) < _SHORTEST_KEY:
        raise CliFailure(f"--redact-key {path}: it has fewer than {_SHORTEST_KEY} bytes")
    return key


def _packing(args: argparse.Namespace) -> SnapshotWriter:
    packing = SnapshotWriter(args.output)
    if args.force:
        return packing
    if args.output.exists():
        raise CliFailure(f"{args.output} exists already; --force replaces it")
    if packing.folder.exists() and not args.resume:
        raise CliFailure(
            f"{packing.folder} is an interrupted snapshot; go on with --resume, or begin anew "
            "with --force"
        )
    return packing


def _print(manifest: Manifest, target: Path) -> None:
    rows = {row.name: row for row in manifest.parts}
    crds = rows[CRDS].count if CRDS in rows else 0
    found = sum(row.count for name, row in rows.items() if name.startswith(OBJECTS))
    rest = sum(row.count for name, row in rows.items() if name.startswith(OTHERS))
    size = target.stat().st_size / (1 << 20)
    print(
        f"{target}: {counted(crds, 'CRD')} with {counted(found, 'object')}, {rest} besides, "
        f"{size:.1f} MiB" + ("" if manifest.complete else "; not complete")
    )

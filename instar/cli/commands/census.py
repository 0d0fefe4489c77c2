"""``instar census``: counts stored objects by version, from a cluster or directly from a store.

``tools/migrator/census`` does the counting on clusters.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from instar.base.plurals import counted
from instar.cli.shared.cluster_flags import read_crds, with_client
from instar.cli.shared.common_flags import (
    add_cluster_arguments,
    add_output_argument,
)
from instar.cli.shared.encrypted_stores import PLAIN, decrypting_store, key_of, write_key_name
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.storage_flags import add_storage_arguments, storage_options
from instar.tools.migrator.census.field_census import count_fields
from instar.tools.migrator.census.version_census import StoredVersionCensus, estimate, exact_census
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.rewrite_checks.pass_record import load_record
from instar.wire.client.client import Client
from instar.wire.storage.open import StorageOptions, open_store
from instar.wire.storage.store import Store, StoreError

_PAGE = 1000
_UNREADABLE = "(not JSON: encrypted or binary)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("crd", nargs="*", metavar="CRD", help="names of CRDs (default: all)")
    add_cluster_arguments(parser)
    add(
        "--storage",
        metavar="URL",
        help="count in the store directly: etcd://HOST:PORT,…/PREFIX, "
        "postgresql://…, or the sqlite:PATH of a server that is not running; exact on any cluster",
    )
    add(
        "--encryption-provider-config",
        metavar="YAML",
        type=Path,
        help="with --storage: decrypt its values; without it they are counted by key",
    )
    add(
        "--fields",
        action="store_true",
        help="show which fields are set, by which managers, with which values",
    )
    add_output_argument(parser, ("text", "json"))
    add_storage_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.fields:
        if len(args.crd) != 1 or args.storage:
            raise CliFailure("--fields is for one CRD of a cluster", code=2)
        return with_client(args, lambda client: _fields(args, client))
    if args.storage:
        rows = _from_storage(args)
    else:
        rows = with_client(args, lambda client: _from_cluster(args, client))
    if args.output == "json":
        print(json.dumps({name: census.to_json() for name, _, census in rows}, indent=2))
    else:
        _print(rows)
    return 0


async def _fields(args: argparse.Namespace, client: Client) -> int:
    live = read_live_crd((await read_crds(client, args.crd))[0])
    tally = (await count_fields(client, live)).tally
    uses = sorted(tally.fields.values(), key=lambda use: use.path)
    if args.output == "json":
        document = {
            use.path: {
                "objects": use.objects,
                "values": None if use.many else dict(use.values),
                "managers": dict(use.managers),
                "since": use.since,
            }
            for use in uses
        }
        print(json.dumps({"crd": live.name, "objects": tally.total, "fields": document}, indent=2))
        return 0
    print(f"{live.name}: {counted(tally.total, 'object')}")
    rows = [("FIELD", "OBJECTS", "SET BY", "SINCE", "VALUES")]
    for use in uses:
        shown = "many" if use.many else " ".join(f"{v}×{n}" for v, n in use.values.most_common())
        names = ", ".join(name for name, _ in use.managers.most_common(3))
        rows.append((use.path, str(use.objects), names or "-", use.since[:10] or "-", shown))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[4]]).rstrip())
    return 0


Row = tuple[str, str, "StoredVersionCensus"]
"""CRD name, storage version (empty when unknown), numbers."""


async def _from_cluster(args: argparse.Namespace, client: Client) -> list[Row]:
    exact = await exact_census(client)
    rows: list[Row] = []
    for raw in await read_crds(client, args.crd):
        live = read_live_crd(raw)
        if exact is not None and live.name in exact:
            census = exact[live.name]
        else:
            record = load_record(live.name, client.access.server)
            census = await estimate(client, live, record=record)
        rows.append((live.name, live.storage, census))
    return rows


def _from_storage(args: argparse.Namespace) -> list[Row]:
    """Count objects directly in the store, for the named CRDs or for all CRDs stored there."""
    try:
        return asyncio.run(_count_stored(args, storage_options(args)))
    except StoreError as error:
        raise CliFailure(str(error)) from error


async def _count_stored(args: argparse.Namespace, options: StorageOptions) -> list[Row]:
    found = await open_store(args.storage, options, must_exist=True)
    store = decrypting_store(found, args.encryption_provider_config)
    try:
        rows: list[Row] = []
        how = f"counted in {args.storage}"
        for name, storage in (await _stored_crds(store, args.crd)).items():
            plural, _, group = name.partition(".")
            counts, keys = await _count(store, f"{group}/{plural}/")
            key = write_key_name(store, f"{group}/{plural}/")
            rows.append((name, storage, StoredVersionCensus(counts, how=how, keys=keys, key=key)))
        return rows
    finally:
        await store.close()


async def _stored_crds(store: Store, names: list[str]) -> dict[str, str]:
    """Return name → storage version of each requested CRD."""
    if names:
        return dict.fromkeys(names, "")
    prefix = "apiextensions.k8s.io/customresourcedefinitions/"
    page = await store.range(prefix)
    found: dict[str, str] = {}
    for record in page.records:
        spec = (_decoded(record.value) or {}).get("spec") or {}
        storage = next((v["name"] for v in spec.get("versions") or () if v.get("storage")), "")
        found[record.key.removeprefix(prefix)] = storage
    return found


async def _count(store: Store, prefix: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return object counts by version and, if any is encrypted, by key."""
    counts: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    start = prefix
    while True:
        page = await store.range(prefix, start=start, limit=_PAGE)
        for record in page.records:
            document = _decoded(record.value)
            version = _UNREADABLE
            if document is not None:
                version = str(document.get("apiVersion", "")).rpartition("/")[2]
            counts[version] += 1
            keys[key_of(record)] += 1
        if not page.more:
            return dict(counts), dict(keys) if set(keys) != {PLAIN} else {}
        start = page.records[-1].key + "\0"


def _decoded(value: bytes) -> dict[str, Any] | None:
    try:
        document = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _print(rows: list[Row]) -> None:
    for name, storage, census in rows:
        count = counted(census.total, "object") if census.counted else "not counted"
        print(f"{name}: {count} ({census.how})")
        versions = list(dict.fromkeys([*census.counts, *census.candidates]))
        for version in versions:
            mark = "  storage version" if version == storage else ""
            if mark and census.assumed:
                mark += ", assumed from storedVersions"
            print(f"  {version:<12} {census.shown(version):>12}{mark}")
        for key, number in census.keys.items():
            mark = "  current key" if key == census.key else ""
            print(f"  under {key:<30} {number:>6}{mark}")

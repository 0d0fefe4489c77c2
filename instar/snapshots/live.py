"""A live cluster as a world: a snapshot is taken into a private folder, and read from there."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from urllib.parse import parse_qs

from instar.api.agents import SNAPSHOT
from instar.client.client import Client
from instar.client.kubeconfig import KubeconfigError, load_access
from instar.errors import ApiError
from instar.migrator.progress import Nobody
from instar.reviewer.sources import Cluster
from instar.snapshots.capture.asked import Asked
from instar.snapshots.capture.cluster import ClusterSource
from instar.snapshots.capture.taking import take
from instar.snapshots.errors import SnapshotError
from instar.snapshots.packed import open_archive
from instar.snapshots.packing import Packing
from instar.snapshots.world import World


def open_cluster(rest: str, cluster: Cluster) -> World:
    """``[CRD][?context=NAME]``, as ``review`` writes it. Raises ``SnapshotError``."""
    name, _, query = rest.partition("?")
    named = parse_qs(query).get("context")
    context = named[0] if named else cluster.context
    folder = Path(tempfile.mkdtemp(prefix="instar-live-"))

    def gone() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    try:
        target = folder / "snapshot.tar.gz"
        asked = Asked(frozenset({name} if name else ()))
        asyncio.run(_take(target, asked, Cluster(cluster.kubeconfig, context)))
        world = open_archive(target, closing=gone)
        assert world is not None
        return world
    except (ApiError, KubeconfigError, OSError) as error:
        gone()
        raise SnapshotError(f"kube:{rest}: {' '.join(str(error).split())}") from None
    except BaseException:
        gone()
        raise


async def _take(target: Path, asked: Asked, cluster: Cluster) -> None:
    access = load_access(cluster.kubeconfig, cluster.context)
    async with Client(access, user_agent=SNAPSHOT) as client:
        source = ClusterSource(client, f"kube:{access.server}")
        await take(source, Packing(target), asked, Nobody())

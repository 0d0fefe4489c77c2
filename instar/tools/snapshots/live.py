"""Opens a live cluster as a captured one: takes a snapshot in a temporary folder and reads it.

``sources.py`` calls it for ``kube:``.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from urllib.parse import parse_qs

from instar.base.errors import ApiError
from instar.kube.api.user_agents import SNAPSHOT
from instar.tools.migrator.progress import NoProgress
from instar.tools.reviewer.sources import ReviewedCluster
from instar.tools.snapshots.capture.cluster import ClusterSource
from instar.tools.snapshots.capture.scope import CaptureScope
from instar.tools.snapshots.capture.taking import take
from instar.tools.snapshots.captured_cluster import CapturedCluster
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.snapshot_file import open_archive
from instar.tools.snapshots.snapshot_writer import SnapshotWriter
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import KubeconfigError


def open_cluster(rest: str, cluster: ReviewedCluster) -> CapturedCluster:
    """Open ``[CRD][?context=NAME]``, the notation of ``review``. Raises ``SnapshotError``."""
    name, _, query = rest.partition("?")
    named = parse_qs(query).get("context")
    context = named[0] if named else cluster.context
    folder = Path(tempfile.mkdtemp(prefix="instar-live-"))

    def gone() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    try:
        target = folder / "snapshot.tar.gz"
        asked = CaptureScope(frozenset({name} if name else ()))
        asyncio.run(_take(target, asked, cluster._replace(context=context)))
        world = open_archive(target, closing=gone)
        assert world is not None
        return world
    except (ApiError, KubeconfigError, OSError) as error:
        gone()
        raise SnapshotError(f"kube:{rest}: {' '.join(str(error).split())}") from None
    except BaseException:
        gone()
        raise


async def _take(target: Path, asked: CaptureScope, cluster: ReviewedCluster) -> None:
    access = cluster.access()
    async with Client(access, user_agent=SNAPSHOT) as client:
        source = ClusterSource(client, f"kube:{access.server}")
        await take(source, SnapshotWriter(target), asked, NoProgress())

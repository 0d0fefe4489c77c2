"""Opens a store by its URL (``memory:``, ``sqlite:``, ``etcd:``, ``peer:``).

Called by the server's start (``server/lifecycle/lifetime.py``) and by the CLI commands that open a
store. It is the only module that names every backend.
"""

from __future__ import annotations

from pathlib import Path

from instar.base.fast_dataclass import dataclass
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Store, StoreError
from instar.wire.storage.workers.worker_etcd import EtcdConnection, WorkerEtcdStore
from instar.wire.storage.workers.worker_store import PeerStore, borrowed

_FORMS = "memory:, sqlite:PATH or etcd://HOST:PORT[,HOST:PORT…][/PREFIX]"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """Store options that are not in the URL, because URLs are logged."""

    etcd_cafile: str = ""
    etcd_certfile: str = ""
    etcd_keyfile: str = ""
    etcd_username: str = ""
    etcd_password: str = ""
    etcd_timeout: float = 5.0


async def open_store(
    url: str,
    options: StorageOptions | None = None,
    *,
    must_exist: bool = False,
    beside: Path | None = None,
) -> Store:
    """Open ``memory:``, ``sqlite:PATH`` or ``etcd://h1:2379,h2:2379/PREFIX``.

    ``peer:FOLDER`` is the URL by which a worker process opens the store of the process that started
    it. Raises ``StoreError`` with a text fit for an operator. An etcd cluster need not be up yet:
    calls raise ``Unavailable`` until it is. With ``must_exist`` a missing file is an error instead
    of being created, for commands that only read. ``beside`` is the folder in which another process
    shares what it has read of the same cluster.
    """
    scheme, _, rest = url.partition(":")
    if url == "memory:":
        return MemoryStore()
    if scheme == "sqlite" and rest:
        return _open_sqlite(rest, must_exist)
    if scheme == "etcd" and rest.startswith("//"):
        lender = None if beside is None else await borrowed(beside)
        cluster = _open_etcd(url, rest[2:], options or StorageOptions())
        return cluster if lender is None else WorkerEtcdStore(cluster, lender)
    if scheme == "peer" and rest:
        return await PeerStore.connect(Path(rest))
    raise StoreError(f"{url!r} is not a storage URL; use {_FORMS}")


def _open_sqlite(path: str, must_exist: bool) -> Store:
    if must_exist and not Path(path).is_file():
        raise StoreError(f"sqlite:{path}: no such file")
    return SqliteStore(path)


def _open_etcd(url: str, rest: str, options: StorageOptions) -> EtcdConnection:
    hosts, _, path = rest.partition("/")
    addresses = [host if ":" in host else f"{host}:2379" for host in hosts.split(",") if host]
    if not addresses or "@" in hosts:
        raise StoreError(f"{url!r} is not a storage URL; use {_FORMS}")
    # Imported here, because servers on a file do not need etcd.
    from instar.wire.storage.etcd.client import EtcdOptions
    from instar.wire.storage.etcd.store import DEFAULT_PREFIX, EtcdStore

    return EtcdStore(
        addresses,
        f"/{path.strip('/')}" if path.strip("/") else DEFAULT_PREFIX,
        EtcdOptions(
            cafile=options.etcd_cafile,
            certfile=options.etcd_certfile,
            keyfile=options.etcd_keyfile,
            username=options.etcd_username,
            password=options.etcd_password,
            timeout=options.etcd_timeout,
        ),
    )

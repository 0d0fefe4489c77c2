"""Opens a store by its URL (``memory:``, ``sqlite:``, ``etcd:``, ``postgresql:``, ``peer:``).

Called at the server's start by ``server/lifecycle/storage_start.py`` and by the CLI commands that
open a store. No other module names every backend.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from instar.base.fast_dataclass import dataclass
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Store, UnusableStore
from instar.wire.storage.workers.worker_remote import RemoteConnection, WorkerRemoteStore
from instar.wire.storage.workers.worker_store import PeerStore, borrow_store

if TYPE_CHECKING:
    from instar.wire.storage.postgres.url import PostgresSettings

_FORMS = (
    "memory:, sqlite:PATH, etcd://HOST:PORT[,HOST:PORT…][/PREFIX] or "
    "postgresql://[USER@]HOST[:PORT][,HOST…]/DATABASE[?schema=NAME]"
)
_POSTGRES = ("postgresql", "postgres")
_SHARED = ("etcd", *_POSTGRES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """Store options that are not in the URL, because URLs are logged."""

    etcd_cafile: str = ""
    etcd_certfile: str = ""
    etcd_keyfile: str = ""
    etcd_username: str = ""
    etcd_password: str = ""
    etcd_timeout: float = 5.0
    postgres_password_file: str = ""
    postgres_timeout: float = 5.0


def without_password(url: str) -> str:
    """Return the URL as it may be logged."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return url
    place, slash, path = rest.partition("/")
    user, at, hosts = place.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{hosts}{slash}{path.partition('?')[0]}"


def is_shared(url: str) -> bool:
    """Return whether the URL names a store that several processes can open."""
    return url.partition(":")[0] in _SHARED


async def open_store(
    url: str,
    options: StorageOptions | None = None,
    *,
    must_exist: bool = False,
    beside: Path | None = None,
) -> Store:
    """Open ``memory:``, ``sqlite:PATH``, ``etcd://h1:2379,h2:2379/PREFIX`` or
    ``postgresql://h1,h2/DATABASE``.

    ``peer:FOLDER`` is the URL by which a worker process opens the store of the process that started
    it. Raises ``StoreError`` with a text fit for an operator. A cluster need not be up yet: calls
    raise ``Unavailable`` until it is. With ``must_exist`` a missing file is an error instead of
    being created, for commands that only read. ``beside`` is the folder in which another process
    shares what it has read of the same cluster.
    """
    scheme, _, rest = url.partition(":")
    if url == "memory:":
        return MemoryStore()
    if scheme == "sqlite" and rest:
        return _open_sqlite(rest, must_exist)
    if scheme in _SHARED and rest.startswith("//"):
        lender = None if beside is None else await borrow_store(beside)
        chosen = options or StorageOptions()
        cluster = (
            _open_etcd(url, rest[2:], chosen)
            if scheme == "etcd"
            else _open_postgres(url, chosen, must_exist)
        )
        return cluster if lender is None else WorkerRemoteStore(cluster, lender)
    if scheme == "peer" and rest:
        return await PeerStore.connect(Path(rest))
    raise UnusableStore(f"{url!r} is not a storage URL; use {_FORMS}")


def _open_sqlite(path: str, must_exist: bool) -> Store:
    if must_exist and not Path(path).is_file():
        raise UnusableStore(f"sqlite:{path}: no such file")
    return SqliteStore(path)


def _open_etcd(url: str, rest: str, options: StorageOptions) -> RemoteConnection:
    hosts, _, path = rest.partition("/")
    addresses = [host if ":" in host else f"{host}:2379" for host in hosts.split(",") if host]
    if not addresses or "@" in hosts:
        raise UnusableStore(f"{url!r} is not a storage URL; use {_FORMS}")
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


async def create_tables(url: str, options: StorageOptions, role: str = "") -> int:
    """Create or migrate the tables of a PostgreSQL URL, let a role use them, and return their
    version. Raises ``StoreError``."""
    # Imported here, because other commands do not need it.
    from instar.wire.storage.postgres.provisioning import provision

    return await provision(_postgres_settings(url, options), role)


def creation_sql(url: str, options: StorageOptions, role: str = "") -> str:
    """Return the SQL that ``create_tables`` would run on an empty database."""
    from instar.wire.storage.postgres.schema import creation_script

    return creation_script(_postgres_settings(url, options).schema, role)


def _open_postgres(url: str, options: StorageOptions, must_exist: bool) -> RemoteConnection:
    # Imported here, because other servers do not need it.
    from instar.wire.storage.postgres.store import PostgresStore

    return PostgresStore(_postgres_settings(url, options), must_exist=must_exist)


def _postgres_settings(url: str, options: StorageOptions) -> PostgresSettings:
    from instar.wire.storage.postgres.url import parse_url

    return parse_url(
        url, timeout=options.postgres_timeout, password_file=options.postgres_password_file
    )

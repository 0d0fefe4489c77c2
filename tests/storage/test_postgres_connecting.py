"""Connecting to a real PostgreSQL server: TLS, passwords, poolers, and the words for what fails."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from instar.wire.storage.postgres.driver import load_driver
from instar.wire.storage.postgres.store import PostgresStore
from instar.wire.storage.postgres.url import parse_url
from instar.wire.storage.store import StoreError, Unavailable, Write
from tests.storage.etcd_server import free_ports
from tests.storage.postgres_failover import failover_pair
from tests.storage.postgres_server import PostgresNode, postgres_node
from tests.storage.recorder import Recorder
from tests.storage.test_postgres import content, opened

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


@pytest.fixture
def schema() -> str:
    return f"t{uuid.uuid4().hex}"


# -- words -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PostgresNode, Path]]:
    """A server with TLS, passwords and client certificates."""
    authority, folder = trustme.CA(), tmp_path_factory.mktemp("tls")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    client = authority.issue_cert("certified@x.io", common_name="certified")
    client.private_key_pem.write_to_path(str(folder / "client.key"))
    client.cert_chain_pems[0].write_to_path(str(folder / "client.pem"))
    (folder / "client.key").chmod(0o600)
    with postgres_node() as node:
        node.sql("create role pw login superuser password 'right'")
        node.sql("create role certified login superuser")
        server = authority.issue_cert("localhost")
        server.private_key_pem.write_to_path(str(node.data / "server.key"))
        server.cert_chain_pems[0].write_to_path(str(node.data / "server.crt"))
        shutil.copy(folder / "ca.pem", node.data / "ca.crt")
        owner = node.data.stat().st_uid
        for name in ("server.key", "server.crt", "ca.crt"):
            os.chown(node.data / name, owner, -1)
            (node.data / name).chmod(0o600)
        node.configure(ssl="on", ssl_ca_file="'ca.crt'")
        (node.data / "pg_hba.conf").write_text(
            "hostssl all certified 127.0.0.1/32 cert\n"
            "host all postgres 127.0.0.1/32 trust\nhostssl all pw 127.0.0.1/32 scram-sha-256\n"
            "host replication postgres 127.0.0.1/32 trust\n"
        )
        node.stop("fast")
        node.start()
        yield node, folder


_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def _url(node: PostgresNode, user: str, host: str = "localhost", **parameters: str) -> str:
    rest = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"postgresql://{user}@{host}:{node.port}/postgres?{rest}"


async def test_a_certificate_is_checked_by_name_with_verify_full(
    secured: tuple[PostgresNode, Path],
) -> None:
    node, folder = secured
    full = {"sslmode": "verify-full", "sslrootcert": str(folder / "ca.pem"), "schema": "tls"}
    async with opened(_url(node, "pw:right", **full)) as store:
        assert await store.barrier()
    async with opened(_url(node, "pw:right", "127.0.0.1", **full), 1) as store:
        with pytest.raises(Unavailable, match="certificate is not accepted"):
            await store.barrier()
    trustme.CA().cert_pem.write_to_path(str(folder / "other.pem"))
    async with opened(
        _url(node, "pw:right", **{**full, "sslrootcert": str(folder / "other.pem")}), 1
    ) as store:
        with pytest.raises(Unavailable, match="certificate is not accepted"):
            await store.barrier()


async def test_a_server_whose_certificate_has_expired_is_refused(
    secured: tuple[PostgresNode, Path], tmp_path: Path
) -> None:
    node, _ = secured
    kept = {name: (node.data / name).read_bytes() for name in ("server.key", "server.crt")}
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    expired = authority.issue_cert("localhost", not_after=_LONG_AGO)
    (node.data / "server.key").write_bytes(expired.private_key_pem.bytes())
    (node.data / "server.crt").write_bytes(expired.cert_chain_pems[0].bytes())
    node.stop("fast")
    node.start()
    full = {"sslmode": "verify-full", "sslrootcert": str(tmp_path / "ca.pem"), "schema": "tls"}
    try:
        async with opened(_url(node, "pw:right", **full), 1) as store:
            with pytest.raises(Unavailable, match="certificate has expired"):
                await store.barrier()
    finally:
        for name, data in kept.items():
            (node.data / name).write_bytes(data)
        node.stop("fast")
        node.start()


async def test_a_client_certificate_takes_the_place_of_a_password(
    secured: tuple[PostgresNode, Path],
) -> None:
    node, folder = secured
    files = {"sslcert": str(folder / "client.pem"), "sslkey": str(folder / "client.key")}
    given = {"sslmode": "verify-full", "sslrootcert": str(folder / "ca.pem"), "schema": "tls"}
    async with opened(_url(node, "certified", **given, **files)) as store:
        assert await store.barrier()


async def test_a_password_file_is_read_at_each_connection(
    secured: tuple[PostgresNode, Path], tmp_path: Path
) -> None:
    node, _ = secured
    file = tmp_path / "password"
    file.write_text("wrong\n")
    url = _url(node, "pw", schema="pw", sslmode="require")
    store = PostgresStore(parse_url(url, timeout=1, password_file=str(file)))
    with pytest.raises(Unavailable, match="the password is wrong") as caught:
        await store.barrier()
    assert "wrong\n" not in str(caught.value)
    file.write_text("right\n")
    assert await store.barrier()
    await store.close()


async def test_a_pgpass_file_is_used(secured: tuple[PostgresNode, Path], tmp_path: Path) -> None:
    node, _ = secured
    file = tmp_path / "pgpass"
    file.write_text(f"localhost:{node.port}:*:pw:right\n")
    file.chmod(0o600)
    async with opened(
        _url(node, "pw", schema="pw", sslmode="require", passfile=str(file))
    ) as store:
        assert await store.barrier()


async def test_plain_text_is_not_fallen_back_to(postgres: PostgresNode) -> None:
    async with opened(_url(postgres, "postgres", sslmode="require"), 1) as store:
        with pytest.raises(Unavailable, match="does not offer TLS"):
            await store.barrier()


async def test_a_wrong_name_is_reported_as_such(postgres: PostgresNode) -> None:
    for url, told in (
        (f"postgresql://postgres@{postgres.address}/nothing", "the database does not exist"),
        (f"postgresql://stranger@{postgres.address}/postgres", 'role "stranger" does not exist'),
        ("postgresql://postgres@127.0.0.1:1/postgres", r"127\.0\.0\.1:1"),
    ):
        async with opened(url, 1) as store:
            with pytest.raises(Unavailable, match=told):
                await store.barrier()


async def test_tables_dropped_under_a_running_store_are_missed_and_not_made_again(
    postgres: PostgresNode, schema: str
) -> None:
    async with opened(postgres.url(schema), 1) as store:
        await store.commit(Write("a", b"1", 0))
        postgres.sql(f"drop schema {schema} cascade")
        for asks in (store.barrier(), store.commit(Write("b", b"1", 0)), store.get("a")):
            with pytest.raises(Unavailable, match="instar storage init"):
                await asks
        assert postgres.sql(f"select to_regclass('{schema}.log') is null") == "t"


async def test_the_primary_is_found_wherever_it_is_listed(tmp_path: Path) -> None:
    """A standby stands first, a host that is down second; alone, the standby is told as such."""
    async with failover_pair(synchronous=False) as pair:
        down = PostgresNode(tmp_path)
        url = pair.url("listed", pair.standby, down, pair.primary)
        async with opened(url, 5) as store:
            assert await store.commit(Write("a", b"1", 0)) == 2
        async with opened(pair.url("listed", pair.standby), 1) as store:
            with pytest.raises(Unavailable, match="a standby; instar needs the primary"):
                await store.barrier()
        async with opened(pair.url("listed", pair.standby, down), 1) as store:
            with pytest.raises(Unavailable, match="a standby") as caught:
                await store.barrier()
            assert down.address in str(caught.value)


async def test_too_many_connections_are_reported_and_retried() -> None:
    with postgres_node(
        {"max_connections": "8", "superuser_reserved_connections": "0", "max_wal_senders": "0"}
    ) as node:
        connect = load_driver().connect
        parts = {"host": "127.0.0.1", "port": node.port, "user": "postgres", "database": "postgres"}
        async with opened(node.url(), 1) as store:
            held = [await connect(**parts) for _ in range(8)]
            with pytest.raises(Unavailable, match="no free connection"):
                await store.barrier()
            for connection in held:
                await connection.close()
            assert await store.barrier()
            # at a reconnect, too
            node.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where application_name like 'instar/%'"
            )
            held = [await connect(**parts) for _ in range(8)]
            with pytest.raises(Unavailable, match="no free connection"):
                await store.barrier()
            for connection in held:
                await connection.close()
            assert await store.commit(Write("a", b"1", 0)) == 2


# -- pgbouncer -------------------------------------------------------------------------------------


@contextmanager
def pooled(node: PostgresNode, mode: str) -> Iterator[int]:
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    if not Path(program).exists():
        pytest.skip("no pgbouncer here: install Debian's package pgbouncer")
    port, settings = free_ports(1)[0], node.folder / f"{mode}.ini"
    (node.folder / "users.txt").write_text('"postgres" ""\n')
    settings.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={node.port} user=postgres\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\npool_mode = {mode}\n"
        f"unix_socket_dir =\nserver_reset_query_always = 0\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    owner = node.data.stat().st_uid
    process = subprocess.Popen(
        [program, str(settings)], user=owner, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield port
    finally:
        process.kill()
        process.wait()


async def test_a_pooler_in_transaction_mode_is_recognised_and_can_be_polled_through(
    postgres: PostgresNode, schema: str
) -> None:
    with pooled(postgres, "transaction") as port:
        url = postgres.url(schema).replace(str(postgres.port), str(port))
        async with opened(url, 5) as store:
            with pytest.raises(StoreError, match="pooler in transaction mode"):
                await store.barrier()
        async with opened(f"{url}&feed=poll") as store, opened(postgres.url(schema)) as other:
            arrived = asyncio.Event()
            store.subscribe(
                await store.barrier(), lambda events, revision: arrived.set(), lambda error: None
            )
            await other.commit(Write("a", b"1", 0))
            await asyncio.wait_for(arrived.wait(), 10)
            await asyncio.gather(*(store.commit(Write(f"b{n}", b"1", 0)) for n in range(20)))
            assert len(await content(store)) == 21


async def test_a_pooler_in_session_mode_needs_nothing(postgres: PostgresNode, schema: str) -> None:
    with pooled(postgres, "session") as port:
        url = postgres.url(schema).replace(str(postgres.port), str(port))
        async with opened(url, 10) as store, opened(postgres.url(schema)) as other:
            recorder = Recorder(store, after=await store.barrier())
            revisions = [
                await (other if n % 2 else store).commit(Write(f"a{n}", b"1", 0)) for n in range(6)
            ]
            await recorder.reached(max(revisions))
            assert [event.revision for event in recorder.events] == revisions

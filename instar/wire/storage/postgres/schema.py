"""instar's tables in PostgreSQL: creation, migration under a lock, privileges of a runtime role.

Called by ``server.py`` at the first connection of a process and by ``instar storage init``. Each
instar instance has its own PostgreSQL schema. Every change of tables is a numbered migration, run
once under an advisory lock, so that only one of several replicas that start at the same time runs
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

from instar import __version__
from instar.wire.storage.postgres.driver import Connection
from instar.wire.storage.store import StoreError

_LOCK = "select pg_advisory_xact_lock(hashtextextended('instar schema {channel}', 0))"
_EXISTS = "select to_regclass('{channel}.version') is not null"
_NUMBER = "select coalesce(max(number), 0) from {schema}.version"
_BASE = """
create schema if not exists {schema};
create table if not exists {schema}.version (
  number integer primary key,
  release text not null,
  at timestamptz not null default now()
);
"""
_GRANTS = """
grant usage on schema {schema} to {role};
grant select on all tables in schema {schema} to {role};
grant execute on all functions in schema {schema} to {role};
"""


def migrations() -> Mapping[int, str]:
    """Return the text of each version; a version only adds to the one before."""
    first = files("instar.wire.storage.postgres").joinpath("schema.sql").read_text(encoding="utf-8")
    return MappingProxyType({1: first})


def filled(text: str, schema: str) -> str:
    """Put the schema's name into SQL: quoted for ``{schema}``, unquoted for ``{channel}``.

    ``url.py`` has checked that the name is a plain identifier.
    """
    return text.replace("{schema}", f'"{schema}"').replace("{channel}", schema)


def creation_script(schema: str, role: str = "") -> str:
    """Return the SQL that creates everything, for an owner to read and run."""
    steps = migrations()
    parts = [_BASE, *steps.values()]
    parts += [
        f"insert into {{schema}}.version (number, release) values ({number}, '{__version__}');\n"
        for number in steps
    ]
    if role:
        parts.append(_GRANTS.replace("{role}", quoted(role)))
    return filled(f"begin;\n{_LOCK};\n{''.join(parts)}commit;\n", schema)


async def stored_version(connection: Connection, schema: str) -> int:
    """Return the version of the tables; 0 where there are none."""
    if not await connection.fetchval(filled(_EXISTS, schema)):
        return 0
    return int(await connection.fetchval(filled(_NUMBER, schema)))


async def migrate(
    connection: Connection, schema: str, steps: Mapping[int, str] | None = None
) -> int:
    """Bring the tables to the newest version and return it. Raises ``StoreError`` for tables of a
    newer release, and the driver's error where the role may not create."""
    wanted = migrations() if steps is None else steps
    newest = max(wanted)
    found = await stored_version(connection, schema)
    if found < newest:
        async with connection.transaction(isolation="read_committed", readonly=False):
            await connection.execute(filled(_LOCK, schema))
            found = await stored_version(connection, schema)  # another process may have been first
            if not found:
                await connection.execute(filled(_BASE, schema))
            for number in range(found + 1, newest + 1):
                await connection.execute(filled(wanted[number], schema))
                note = "insert into {schema}.version (number, release) values ($1, $2)"
                await connection.fetch(filled(note, schema), number, __version__)
            found = max(found, newest)
    check_version(found, newest, schema)
    return found


def check_version(found: int, newest: int, schema: str) -> None:
    if found > newest:
        raise StoreError(
            f"schema {schema} has version {found} of instar's tables, and this release knows "
            f"{newest}: use the newer release"
        )


async def grant(connection: Connection, schema: str, role: str) -> None:
    """Give a role the rights that a server needs, and no more."""
    await connection.execute(filled(_GRANTS, schema).replace("{role}", quoted(role)))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

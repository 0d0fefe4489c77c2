"""Creates instar's tables and grants privileges to a runtime role, for ``instar storage init``.

``wire/storage/open.py`` calls it, with the credentials of the tables' owner. A server that connects
as the runtime role can commit and read through the functions, but can neither alter the tables nor
write to them directly.
"""

from __future__ import annotations

from instar.wire.storage.postgres import schema
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.postgres.url import PostgresSettings
from instar.wire.storage.store import StoreError


async def provision(settings: PostgresSettings, role: str = "") -> int:
    """Create or migrate the tables and return their version. Raises ``StoreError``."""
    server = PostgresServer(settings)
    connection = await server.connect("init")
    try:
        if role:
            await schema.grant(connection, settings.schema, role)
        return await schema.stored_version(connection, settings.schema)
    except StoreError:
        raise
    except Exception as error:
        raise server.explain(error).error from error
    finally:
        connection.terminate()

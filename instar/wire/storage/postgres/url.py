"""PostgreSQL URLs as libpq reads them, and instar's own parameters in them.

Called by ``wire/storage/open.py``. The result is plain settings; ``server.py`` connects with them.
A parameter that this client cannot honour is refused by name, because ignoring it could mean less
security than requested. Settings that the URL omits come from a service file, then from the PG
environment variables, as in libpq.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from instar.base.fast_dataclass import dataclass
from instar.wire.storage.store import StoreError

DEFAULT_SCHEMA = "instar"
FORM = "postgresql://[USER@]HOST[:PORT],…/DATABASE[?schema=NAME&…]"
_URL = re.compile(
    r"postgres(?:ql)?://(?:(?P<auth>[^/?#]*)@)?(?P<hosts>[^/?#@]*)(?:/(?P<db>[^?#]*))?"
)
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_LISTEN, _POLL = "listen", "poll"

_DRIVER = (
    "passfile",
    "sslmode",
    "sslcert",
    "sslkey",
    "sslrootcert",
    "sslcrl",
    "sslpassword",
    "sslnegotiation",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "krbsrvname",
    "gsslib",
)
"""Parameters that the driver understands as libpq does."""

_FIXED = {
    "channel_binding": ("prefer", "disable"),
    "gssencmode": ("prefer", "disable"),
    "client_encoding": ("utf8", "utf-8", "auto"),
    "load_balance_hosts": ("disable",),
    "sslcompression": ("0",),
    "sslsni": ("1",),
    "replication": ("false", "off", "0"),
}
"""Parameters with only one meaning here: these values are accepted, others refused."""

_NO_EFFECT = (
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "fallback_application_name",
)
"""Accepted without effect: a silent connection is noticed by deadlines of our own."""

_ENVIRONMENT = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "dbname": "PGDATABASE",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "service": "PGSERVICE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "options": "PGOPTIONS",
    "application_name": "PGAPPNAME",
    "hostaddr": "PGHOSTADDR",
    "channel_binding": "PGCHANNELBINDING",
    "gssencmode": "PGGSSENCMODE",
    "requirepeer": "PGREQUIREPEER",
    "require_auth": "PGREQUIREAUTH",
    "sslcrl": "PGSSLCRL",
}
"""The last ones are read so that they are honoured, or refused like those of a URL."""


class DatabaseHost(NamedTuple):
    """A host name, an address, or the folder of a unix socket."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        return self.host.startswith("/") or self.host in ("localhost", "127.0.0.1", "::1")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """Everything needed to connect; ``str()`` omits the password."""

    hosts: tuple[DatabaseHost, ...]
    database: str
    user: str
    password: str | None = None
    password_file: str = ""
    """Read at each connection, so that a password can be rotated."""
    schema: str = DEFAULT_SCHEMA
    polls: bool = False
    """Whether the feed polls: through a pooler notifications do not arrive."""
    strict_reads: bool = False
    """Whether a consistent read has the synchronous standby confirm that this is the primary."""
    driver: tuple[tuple[str, str], ...] = ()
    """Parameters passed to the driver: TLS and the password file of libpq."""
    session: tuple[tuple[str, str], ...] = ()
    """Parameters passed to the server: application_name and options."""
    timeout: float = 5.0
    """Seconds that a call may look for a server that answers."""

    def __str__(self) -> str:
        return f"postgresql {','.join(map(str, self.hosts))}/{self.database}"


def parse_url(
    url: str,
    *,
    timeout: float = 5.0,
    password_file: str = "",
    environment: Mapping[str, str] | None = None,
) -> PostgresSettings:
    """Return the settings of a URL. Raises ``StoreError`` with a text that shows no password."""
    env = os.environ if environment is None else environment
    given = _of_url(url)
    for name, variable in _ENVIRONMENT.items():
        if name == "service" and env.get(variable):
            given.setdefault(name, env[variable])
    if "service" in given:
        given = {**_of_service(given.pop("service"), env, given.pop("servicefile", "")), **given}
    for name, variable in _ENVIRONMENT.items():
        if name != "service" and env.get(variable):
            given.setdefault(name, env[variable])
    return _settings(given, timeout, password_file, env)


def _of_url(url: str) -> dict[str, str]:
    base, _, query = url.partition("?")
    found = _URL.fullmatch(base)
    if found is None:
        raise StoreError(f"not a PostgreSQL URL; use {FORM}")
    given: dict[str, str] = {}
    user, colon, password = (found["auth"] or "").partition(":")
    named = {"user": user, "dbname": found["db"] or "", "host": found["hosts"]}
    given |= {name: unquote(value) for name, value in named.items() if value}
    if colon:
        given["password"] = unquote(password)
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise StoreError(
            f"not a PostgreSQL URL: its parameters are unreadable; use {FORM}"
        ) from error
    return given | {{"database": "dbname"}.get(name, name): value for name, value in pairs}


def _of_service(name: str, env: Mapping[str, str], file: str) -> dict[str, str]:
    places = [
        file or env.get("PGSERVICEFILE", "") or str(Path(env.get("HOME", "/"), ".pg_service.conf"))
    ]
    if folder := env.get("PGSYSCONFDIR"):
        places.append(str(Path(folder, "pg_service.conf")))
    for place in places:  # the first file that has the service wins
        parser = configparser.RawConfigParser()
        try:
            parser.read(place, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise StoreError(f"{place}: not a service file: {error.__class__.__name__}") from error
        if parser.has_section(name):
            return dict(parser.items(name))
    raise StoreError(f"service {name!r} is not in {' or '.join(places)}")


def _settings(
    given: dict[str, str], timeout: float, password_file: str, env: Mapping[str, str]
) -> PostgresSettings:
    hosts = _hosts(given.pop("host", ""), given.pop("port", ""))
    user = given.pop("user", "") or env.get("USER", "") or "postgres"
    schema = given.pop("schema", DEFAULT_SCHEMA)
    if _SCHEMA.fullmatch(schema) is None:
        raise StoreError(f"schema={schema}: use lower case letters, digits and _, at most 48")
    feed, strict = given.pop("feed", _LISTEN), given.pop("strict_reads", "off")
    _one_of("feed", feed, (_LISTEN, _POLL))
    _one_of("strict_reads", strict, ("on", "off"))
    _one_of(
        "target_session_attrs",
        given.pop("target_session_attrs", "any"),
        ("any", "read-write", "primary"),
    )
    driver = {name: given.pop(name) for name in _DRIVER if name in given}
    if "sslmode" not in driver:
        local = all(host.is_local for host in hosts)
        driver["sslmode"] = "prefer" if local else "require"
    session = {name: given.pop(name) for name in ("application_name", "options") if name in given}
    database, password = given.pop("dbname", "") or user, given.pop("password", None)
    seconds = given.pop("connect_timeout", "")
    for name in [*_NO_EFFECT, *_FIXED]:
        value = given.pop(name, None)
        if value is not None and name in _FIXED:
            _one_of(name, value.lower(), _FIXED[name])
    if given:
        raise StoreError(
            f"{sorted(given)[0]}: this parameter of the PostgreSQL URL is not supported"
        )
    return PostgresSettings(
        hosts=hosts,
        database=database,
        user=user,
        password=password,
        password_file=password_file,
        schema=schema,
        polls=feed == _POLL,
        strict_reads=strict == "on",
        driver=tuple(driver.items()),
        session=tuple(session.items()),
        timeout=max(1.0, float(seconds)) if seconds.isdecimal() and int(seconds) else timeout,
    )


def _hosts(text: str, ports: str) -> tuple[DatabaseHost, ...]:
    names = text.split(",") if text else [_default_host()]
    given = ports.split(",") if ports else []
    found = []
    for place, name in enumerate(names):
        host, port = name, (given[place] if place < len(given) else (given or [""])[-1])
        if name.startswith("["):
            host, _, rest = name[1:].partition("]")
            port = rest.removeprefix(":") or port
        elif not name.startswith("/") and name.count(":") == 1:
            host, _, port = name.partition(":")
        if not (port or "5432").isdecimal() or int(port or 5432) > 65535:
            raise StoreError(f"{port}: not a port of a PostgreSQL URL; use {FORM}")
        found.append(DatabaseHost(host or "localhost", int(port or 5432)))
    return tuple(found)


def _default_host() -> str:
    """Return the folder of a local socket, if there is one."""
    for folder in ("/run/postgresql", "/var/run/postgresql"):
        if Path(folder).is_dir():
            return folder
    return "localhost"


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise StoreError(f"{name}={value} is not supported; use {' or '.join(allowed)}")

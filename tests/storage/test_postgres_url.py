"""PostgreSQL URLs as people paste them."""

from __future__ import annotations

from pathlib import Path

import pytest

from instar.wire.storage.postgres.url import DatabaseHost, PostgresSettings, parse_url
from instar.wire.storage.store import StoreError


def parsed(url: str, **environment: str) -> PostgresSettings:
    return parse_url(url, environment=environment)


def test_hosts_user_database_and_parameters_are_read_as_libpq_reads_them() -> None:
    settings = parsed(
        "postgresql://me:p%40ss@h1,h2:5433,[::1]:5434/data%20base?schema=two&sslmode=verify-full"
        "&sslrootcert=/ca.pem&target_session_attrs=read-write&connect_timeout=7&keepalives=1"
    )
    assert settings.hosts == (
        DatabaseHost("h1", 5432),
        DatabaseHost("h2", 5433),
        DatabaseHost("::1", 5434),
    )
    assert (settings.user, settings.password, settings.database) == ("me", "p@ss", "data base")
    assert (settings.schema, settings.timeout) == ("two", 7.0)
    assert dict(settings.driver) == {"sslmode": "verify-full", "sslrootcert": "/ca.pem"}


def test_a_socket_folder_may_stand_in_host_or_percent_encoded() -> None:
    for url in ("postgresql:///d?host=/run/pg", "postgres://%2Frun%2Fpg/d"):
        assert parsed(url).hosts == (DatabaseHost("/run/pg", 5432),)


def test_a_service_file_and_the_environment_fill_what_the_url_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "services"
    file.write_text("[mine]\nhost=db1,db2\nport=6000\ndbname=d\nuser=u\nsslmode=verify-ca\n")
    settings = parsed("postgresql://?service=mine&user=other", PGSERVICEFILE=str(file))
    assert [str(host) for host in settings.hosts] == ["db1:6000", "db2:6000"]
    assert (settings.user, settings.database) == ("other", "d")
    assert dict(settings.driver)["sslmode"] == "verify-ca"
    system = tmp_path / "pg_service.conf"
    system.write_text("[mine]\nhost=other\n[theirs]\nhost=db3\n")
    both = {"PGSERVICEFILE": str(file), "PGSYSCONFDIR": str(tmp_path)}
    assert [str(host) for host in parsed("postgresql://?service=mine", **both).hosts][1:] == [
        "db2:6000"
    ]
    assert parsed("postgresql://?service=theirs", **both).hosts[0].host == "db3"
    asked = parsed("postgresql://", PGHOST="h", PGPORT="1", PGUSER="u", PGDATABASE="d")
    assert (asked.hosts, asked.user, asked.database) == ((DatabaseHost("h", 1),), "u", "d")


def test_plain_text_to_another_machine_must_be_requested() -> None:
    assert dict(parsed("postgresql://u@far/d").driver)["sslmode"] == "require"
    assert dict(parsed("postgresql://u@far/d?sslmode=disable").driver)["sslmode"] == "disable"
    assert dict(parsed("postgresql://u@localhost/d").driver)["sslmode"] == "prefer"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql:/x", "not a PostgreSQL URL"),
        ("postgresql://h:port/d", "port"),
        ("postgresql://h/d?schema=No", "schema=No"),
        ("postgresql://h/d?target_session_attrs=standby", "target_session_attrs=standby"),
        ("postgresql://h/d?channel_binding=require", "channel_binding=require"),
        ("postgresql://h/d?requirepeer=postgres", "requirepeer"),
        ("postgresql://h/d?feed=sometimes", "feed=sometimes"),
        ("postgresql://?service=none", "service 'none'"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused_by_name(url: str, told: str) -> None:
    with pytest.raises(StoreError, match=told):
        parsed(url, HOME="/nowhere")


@pytest.mark.parametrize(
    ("name", "value"),
    [("PGCHANNELBINDING", "require"), ("PGREQUIREAUTH", "scram-sha-256"), ("PGHOSTADDR", "::1")],
)
def test_what_the_environment_demands_is_not_ignored(name: str, value: str) -> None:
    with pytest.raises(StoreError, match="not supported"):
        parsed("postgresql://h/d", **{name: value})


def test_no_password_is_ever_shown() -> None:
    settings = parsed("postgresql://me:secret@h/d?password=secret")
    assert "secret" not in str(settings)
    with pytest.raises(StoreError) as caught:
        parsed("postgresql://me:secret@h/d?nonsense=1")
    assert "secret" not in str(caught.value)

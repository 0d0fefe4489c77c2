"""The compose file for PostgreSQL: its command lines, the files that it names, and folders that the
image's user may write to."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from instar.cli.main import parser_of
from instar.wire.storage.postgres.url import parse_url
from tests.deploy.rendering import DEPLOY, ROOT

FOLDER = DEPLOY / "compose-postgresql"


@pytest.fixture
def compose() -> Any:
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_replica_runs_flags_that_exist_against_the_database_of_the_file(
    compose: Any, name: str
) -> None:
    service, database = compose["services"][name], compose["services"]["database"]["environment"]
    args = parser_of(service["command"][0]).parse_args(service["command"][1:])
    settings = parse_url(args.storage, password_file=str(args.postgres_password_file))
    assert [host.host for host in settings.hosts] == ["database"]
    assert (settings.user, settings.database) == (
        database["POSTGRES_USER"],
        database["POSTGRES_DB"],
    )
    (secret,) = service["secrets"]
    assert settings.password_file == f"/run/secrets/{secret}"
    file = FOLDER / compose["secrets"][secret]["file"]
    assert file.read_text().strip() == database["POSTGRES_PASSWORD"]


def test_replicas_share_their_certificates_in_a_folder_of_the_image(compose: Any) -> None:
    """A new volume belongs to root, unless the image has the folder and says whose it is."""
    [owned] = re.findall(r"mkdir (\S+) && chown", (ROOT / "Dockerfile").read_text())
    for name in ("first", "second"):
        service = compose["services"][name]
        (volume,) = service["volumes"]
        source, _, target = volume.partition(":")
        assert source in compose["volumes"]
        assert target == owned
        args = parser_of(service["command"][0]).parse_args(service["command"][1:])
        assert str(args.cert_dir).startswith(f"{target}/")

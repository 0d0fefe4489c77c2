"""Keys rotated and looked after by the tools: census, migrate, storage verify."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.encryption.test_live import (
    PLAIN,
    SECRET1,
    SECRET2,
    encrypted,
    keys,
    make,
)
from tests.support.crds import loose_crd
from tests.support.server import live_server


def instar(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "instar", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_migrate_puts_objects_under_the_new_key_and_census_tells(tmp_path: Path) -> None:
    path, url = tmp_path / "e.yaml", f"sqlite:{tmp_path / 's.db'}"
    with live_server(storage=url, encryption=encrypted(path, keys("aescbc", key1=SECRET1))) as one:
        one.create_crd(loose_crd("ex.io"))
        for number in range(5):
            make(one, f"f{number}")
    rotated = encrypted(path, keys("aesgcm", key2=SECRET2), keys("aescbc", key1=SECRET1))
    with live_server(storage=url, encryption=rotated) as two:
        cluster = ("--kubeconfig", str(two.kubeconfig))
        before = instar("census", *cluster)
        migrated = instar("migrate", "foos.ex.io", "--rewrite-current", *cluster)
        after = instar("census", *cluster)

    assert "under k8s:enc:aescbc:v1:key1" in before.stdout, before.stderr
    assert migrated.returncode == 0, migrated.stdout + migrated.stderr
    assert "aescbc" not in after.stdout
    assert "under k8s:enc:aesgcm:v1:key2" in after.stdout
    assert "5  current key" in after.stdout


def test_a_store_at_rest_is_counted_by_key_and_verified(tmp_path: Path) -> None:
    path, file = tmp_path / "e.yaml", tmp_path / "s.db"
    settings = encrypted(path, keys("aesgcm", key1=SECRET1), PLAIN)
    with live_server(storage=f"sqlite:{file}", encryption=settings) as server:
        server.create_crd(loose_crd("ex.io"))
        make(server, "f1")
    opening = ("--encryption-provider-config", str(path))

    blind = instar("census", "foos.ex.io", "--storage", f"sqlite:{file}")
    seeing = instar("census", "--storage", f"sqlite:{file}", *opening)
    shut, sound = (
        instar("storage", "verify", str(file)),
        instar("storage", "verify", str(file), *opening),
    )
    encrypted(path, keys("aesgcm", key1=SECRET2), PLAIN)
    wrong = instar("storage", "verify", str(file), *opening)

    assert "under k8s:enc:aesgcm:v1:key1" in blind.stdout, blind.stderr
    assert "storage version" in seeing.stdout, seeing.stderr
    assert "encrypted values not opened" in shut.stdout, shut.stderr
    assert (sound.returncode, "not opened" in sound.stdout) == (0, False), sound.stderr
    assert wrong.returncode == 1
    assert "the value is damaged" in wrong.stdout


def test_a_configuration_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    ran = instar(
        *("storage", "verify", "x.db"),
        *("--encryption-provider-config", str(tmp_path / "nowhere")),
    )

    assert ran.returncode == 1
    assert len(ran.stderr.strip().splitlines()) == 1

"""``instar types`` and ``instar crd`` as commands: what they write, and how they fail."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from instar.cli.main import main

BACKUPS = Path(__file__).parents[2] / "examples" / "types" / "backups.yaml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    shutil.copy(BACKUPS, tmp_path)
    return tmp_path


def test_a_folder_becomes_a_package_and_its_models_the_crd_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["types", "backups.yaml", "--python", "msgspec", "-o", "generated_models"]) == 0
    assert main(["crd", "generated_models.backups_v1:Backup", "--json", "-o", "again.json"]) == 0

    crd = json.loads((folder / "again.json").read_text())
    assert crd["metadata"]["name"] == "backups.storage.example.com"
    assert crd["spec"]["names"]["shortNames"] == ["bk"]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["types", "nothing.yaml", "--python", "pydantic"], 2, "nothing.yaml"),
        (["types", "backups.yaml", "--python", "pydantic", "--version", "v9"], 2, "no CRD of"),
        (["types", "empty.yaml", "--python", "pydantic"], 2, "empty.yaml"),
        (["types", "backups.yaml", "--python", "pydantic", "-o", "file/x.py"], 2, "file"),
        (["crd", "nowhere:Model"], 2, "there is no module 'nowhere'"),
        (["crd", "json:nothing"], 2, "module 'json' has no attribute 'nothing'"),
        (["crd", "json"], 2, "must have the form package.module:Model"),
        (["crd", "json:dumps"], 2, "dumps is neither"),
        (["crd", "broken_models:X"], 2, "broken_models cannot be imported"),
        (["crd", "bad_models:Bad"], 1, "a server would reject this CRD: spec.validation"),
    ],
)
def test_bad_input_is_reported_in_one_line(
    words: list[str], code: int, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty.yaml").write_text("{}\n")
    (folder / "file").write_text("")
    (folder / "broken_models.py").write_text("import nothing_at_all\n")
    (folder / "bad_models.py").write_text(
        "from typing import Annotated, Literal\n"
        "from pydantic import BaseModel, Field\n"
        "class Bad(BaseModel):\n"
        "    apiVersion: Literal['example.com/v1']\n"
        "    size: Annotated[int, Field(json_schema_extra={'default': 'x'})] = None\n"
    )

    assert main(words) == code

    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1

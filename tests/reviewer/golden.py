"""Golden folders of the reviewer: how one is read, reviewed and written down."""

from __future__ import annotations

import json
import os
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

from instar.tools.reviewer.added_removed import with_presence
from instar.tools.reviewer.admission.findings import with_admission
from instar.tools.reviewer.config import Config, decide, parse, section
from instar.tools.reviewer.documents import crd_name, documents
from instar.tools.reviewer.engine import ReviewOptions
from instar.tools.reviewer.render.json import finding_dict
from instar.tools.reviewer.report import Report
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.reviewing import review_crd, with_locations
from instar.tools.reviewer.stored import Convert, Unconvertible
from instar.tools.sdk.errors import ConversionError
from instar.tools.sdk.loading import load

FOLDER = Path(__file__).parent.parent / "golden" / "review"
UPDATE = bool(os.environ.get("INSTAR_UPDATE_GOLDEN"))
TODAY = date(2026, 1, 1)


def cases() -> list[str]:
    return sorted(item.name for item in FOLDER.iterdir() if (item / "new.yaml").is_file())


def review_folder(name: str) -> Report:
    folder = FOLDER / name
    old, new = (_document(folder, side) for side in ("old", "new"))
    config = _config(folder)
    options = ReviewOptions(severities=config.severities)
    if crd_name(old.value) != crd_name(new.value):
        apart = Report(only_old=(crd_name(old.value),), only_new=(crd_name(new.value),))
        before, after = ({crd_name(side.value): side} for side in (old, new))
        return decide(with_presence(apart, before, after, options), config, (), TODAY)
    crd = review_crd(
        read_reviewed_crd(old.value),
        read_reviewed_crd(new.value),
        options,
        convert=_convert(folder),
        objects=_objects(folder),
    )
    report = Report(crds=(with_locations(crd, old, new),))
    before, after = ({crd.name: side} for side in (old, new))
    report = with_admission(report, before, after, _admission(folder), options)
    return decide(report, config, (), TODAY)


def sides_of(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The old and the new CRD of a folder, as written."""
    old, new = (_document(FOLDER / name, side).value for side in ("old", "new"))
    return old, new


def written(report: Report) -> dict[str, Any]:
    """What a golden file pins: everything about findings and the titles of the plan."""
    return {
        "findings": [finding_dict(item) for item in report.findings],
        "plan": [f"[{step.release}] {step.title}" for crd in report.crds for step in crd.plan],
        "checklist": {item.question: item.yes for crd in report.crds for item in crd.checklist},
    }


def expected(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """The golden content; with INSTAR_UPDATE_GOLDEN set, what was found becomes it."""
    file = FOLDER / name / "expected.json"
    if UPDATE:
        file.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def _document(folder: Path, side: str) -> Any:
    found, problems = documents((folder / f"{side}.yaml").read_text(), f"{side}.yaml")
    assert not problems
    return found[0]


def _objects(folder: Path) -> list[Any]:
    file = folder / "objects.yaml"
    if not file.is_file():
        return []
    return [item.value for item in documents(file.read_text(), file.name)[0]]


def _admission(folder: Path) -> list[Any]:
    file = folder / "admission.yaml"
    return documents(file.read_text(), file.name)[0] if file.is_file() else []


def _config(folder: Path) -> Config:
    file = folder / "instar.toml"
    if not file.is_file():
        return Config()
    raw = section(file.name, tomllib.loads(file.read_text()))
    return parse(raw or {}, file.name)


def _convert(folder: Path) -> Convert | None:
    file = folder / "conversion.yaml"
    if not file.is_file():
        return None
    built = load(str(file))

    def convert(objects: list[dict[str, Any]], api_version: str) -> list[dict[str, Any]]:
        try:
            return built.convert_all(objects, api_version)
        except ConversionError as error:
            raise Unconvertible(str(error)) from error

    return convert

"""Real CRDs become models and CRDs again, and nothing is lost on the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from instar.base.json_values import Object
from instar.kube.api.crd import is_crd
from instar.kube.crds.documents import read_definition
from instar.kube.models.crd_models import version_models
from instar.kube.models.modules import module_of
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.generation.objects import objects
from instar.review import Options, review
from instar.tools.sdk.typed import model_of
from tests.models.support import STYLES, comparable, imported_text, there_and_back
from tests.support.corpus import CORPUS, needs_corpus
from tests.support.shared import demand_shared

LARGE = (
    "cert-manager/v1.21.0/acme.cert-manager.io_challenges.yaml",
    "flux-source/v1.3.0/source.toolkit.fluxcd.io_gitrepositories.yaml",
    "gateway-api/v1.3.0/gateway.networking.k8s.io_httproutes.yaml",
)


@cache
def _texts() -> dict[str, str]:
    demand_shared(CORPUS)
    paths = sorted(CORPUS.glob("*/*/*.yaml"))
    return {str(path.relative_to(CORPUS)): path.read_text() for path in paths}


def _crds(text: str) -> Iterator[Object]:
    for document in yaml.load_all(text, yaml.CSafeLoader):
        if is_crd(document):
            yield read_definition(document).raw


def _large() -> list[Object]:
    return [raw for name in LARGE for raw in _crds(_texts()[name])]


@pytest.mark.parametrize("part", range(8))
def test_no_finding_between_a_crd_and_that_of_its_models(part: int, tmp_path: Path) -> None:
    """Every CRD of the corpus in one style, the styles in turn: each of them sees every project."""
    seen = 0
    for number, (name, text) in enumerate(_texts().items()):
        style = STYLES[number // 8 % 4]
        for raw in _crds(text) if number % 8 == part else ():
            seen += 1
            again = there_and_back(raw, style, tmp_path)

            assert comparable(again) == comparable(raw), (name, style)
            report = review(raw, again, options=Options(ask_server=False), witnesses=False)
            assert [each for crd in report.crds for each in crd.findings] == [], (name, style)
    assert seen >= 17


@needs_corpus
@pytest.mark.parametrize("style", STYLES)
def test_large_crds_survive_in_every_style(style: str, tmp_path: Path) -> None:
    for raw in _large():
        assert comparable(there_and_back(raw, style, tmp_path)) == comparable(raw)


@needs_corpus
def test_generated_modules_are_formatted_and_pass_mypy_strict(tmp_path: Path) -> None:
    for number, raw in enumerate(_large()[1:]):
        for style in STYLES:
            roots = list(version_models(raw))
            (tmp_path / f"m{number}_{style}.py").write_text(module_of(roots, style))
            (tmp_path / f"p{number}_{style}.py").write_text(module_of(roots, style, partial=True))

    width = ("--line-length", "100", "--isolated", "--no-cache")
    formatted = _python("-m", "ruff", "format", "--check", *width, ".", folder=tmp_path)
    typed = _python("-m", "mypy", "--strict", "--config-file=", ".", folder=tmp_path)

    assert formatted.returncode == 0, formatted.stdout
    assert typed.returncode == 0, typed.stdout


def _python(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=180
    )


def _read(style: str, cls: Any, obj: Object) -> Object:
    """The object through its model and out again."""
    if style == "pydantic":
        return dict(cls.model_validate(obj).model_dump(by_alias=True, exclude_unset=True))
    if style == "msgspec":
        return dict(msgspec.to_builtins(msgspec.convert(obj, cls)))
    model = model_of(cls)
    return model.write(model.read(obj))


@needs_corpus
@pytest.mark.parametrize("style", STYLES)
def test_objects_of_the_schema_go_through_their_model_unchanged(style: str, tmp_path: Path) -> None:
    for raw in _large():
        root = next(version_models(raw))
        module = imported_text(module_of([root], style), tmp_path)
        cls = getattr(module, root.kind)
        version = raw["spec"]["versions"][0]
        compiled = compile_schema(version["schema"]["openAPIV3Schema"])
        made = objects(
            compiled.structural, api_version=f"{root.group}/{root.version}", kind=root.kind
        )

        for obj in _drawn(made):
            if not compiled.validate(obj):
                assert _read(style, cls, obj) == obj


def _drawn(strategy: Any) -> list[Object]:
    found: list[Object] = []

    @settings(
        max_examples=20,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @seeded(7)
    @given(strategy)
    def collect(value: Object) -> None:
        found.append(value)

    collect()
    return found

"""The laws of ``instar check`` as plain pytest assertions, for the tests of CRD authors.

::

    from instar.testing import assert_converter

    def test_conversions_lose_nothing() -> None:
        assert_converter("crd.yaml", "my_operator.conversion:crontab")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from instar.base.text_files import read_text
from instar.kube.api.crd import Crd
from instar.tools.sdk.checking.case import CheckCase, case_of, schema_of
from instar.tools.sdk.checking.definition import crd_in, parse_crd
from instar.tools.sdk.checking.determinism import judge_determinism
from instar.tools.sdk.checking.laws import (
    DETERMINISTIC,
    LAWS,
    Inapplicable,
    LawBroken,
    VersionPair,
    law_named,
)
from instar.tools.sdk.checking.render import as_text, to_yaml
from instar.tools.sdk.checking.report import CheckReport
from instar.tools.sdk.checking.responders import InProcessResponder
from instar.tools.sdk.checking.search import DEFAULT_EXAMPLES, admitted_objects, check
from instar.tools.sdk.converter import BuiltConverter, Converter
from instar.tools.sdk.loading import importable_name, load

__all__ = ["assert_converter", "assert_law", "check_converter", "objects", "read_crd_file"]

AnyCrd = str | Path | Mapping[str, Any] | Crd
AnyConverter = str | Converter | BuiltConverter


def check_converter(
    crd: AnyCrd,
    converter: AnyConverter,
    *,
    examples: int = DEFAULT_EXAMPLES,
    seed: int | None = 0,
    skip: Sequence[str] = (),
) -> CheckReport:
    """Check every law in every direction, with a fixed seed so that tests are deterministic."""
    built = _built(converter)
    skipped = {law_named(name).name for name in skip}
    return check(
        _case(crd, converter, built),
        converter=f"{built.kind}.{built.group}",
        laws=[law for law in LAWS if law.name not in skipped],
        examples=examples,
        seed=seed,
        losses=built.losses,
    )


def assert_converter(
    crd: AnyCrd,
    converter: AnyConverter,
    *,
    examples: int = DEFAULT_EXAMPLES,
    seed: int | None = 0,
    skip: Sequence[str] = (),
) -> None:
    """Fail with the smallest counterexample of every broken law."""
    report = check_converter(crd, converter, examples=examples, seed=seed, skip=skip)
    if report.exit_code:
        raise AssertionError(as_text(report))


def assert_law(
    law: str,
    crd: AnyCrd,
    converter: AnyConverter,
    inputs: Sequence[Mapping[str, Any]],
    *,
    source: str,
    target: str,
) -> None:
    """Check one law on given objects, as written by ``instar check --write-tests``."""
    case = _case(crd, converter, _built(converter))
    pair = VersionPair(case, case.versions[source], case.versions[target])
    if law == DETERMINISTIC:
        _assert_deterministic(pair, inputs)
    try:
        law_named(law).check(pair, [dict(obj) for obj in inputs])
    except Inapplicable:
        return
    except LawBroken as broken:
        shown = [f"{caption}:\n{to_yaml(value)}" for caption, value in broken.steps]
        raise AssertionError("\n".join([broken.message, *broken.found, *shown])) from None


def _assert_deterministic(pair: VersionPair, inputs: Sequence[Mapping[str, Any]]) -> None:
    importable = str(getattr(pair.case.responder, "importable", ""))
    [result] = judge_determinism([(pair, [dict(obj) for obj in inputs])], importable)
    example = result.counterexample
    if example is not None:
        shown = [f"{caption}:\n{to_yaml(value)}" for caption, value in example.steps]
        raise AssertionError("\n".join([example.message, *example.found, *shown]))


def objects(crd: AnyCrd, version: str) -> Any:
    """Return a hypothesis strategy of valid objects of one version of a CRD."""
    definition = _crd(crd)
    found = definition.version(version)
    if found is None:
        raise ValueError(f"{definition.name} has no version {version!r}")
    return admitted_objects(definition, schema_of(definition, found))


def read_crd_file(path: str | Path) -> Crd:
    """Return the only CRD in a YAML file."""
    return crd_in(read_text(path), str(path))


def _crd(given: AnyCrd) -> Crd:
    if isinstance(given, Crd):
        return given
    return parse_crd(given) if isinstance(given, Mapping) else read_crd_file(given)


def _built(given: AnyConverter) -> BuiltConverter:
    if isinstance(given, str):
        return load(given)
    return given.build() if isinstance(given, Converter) else given


def _case(crd: AnyCrd, given: AnyConverter, built: BuiltConverter) -> CheckCase:
    importable = given if isinstance(given, str) else importable_name(given)
    responder = InProcessResponder(built, importable)
    return case_of(_crd(crd), responder, hub=built.hub, losses=built.losses)

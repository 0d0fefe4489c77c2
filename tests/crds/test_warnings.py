"""Warnings: formats nobody checks, versions on their way out."""

from __future__ import annotations

import pytest

from instar.base.json_values import Object
from instar.kube.api.crd import read_crd
from instar.kube.crds.deprecation import deprecation_warning
from instar.kube.crds.format_warnings import format_warnings
from tests.crds.make import created, with_schema
from tests.support.crds import crd, version


def formats(*pairs: tuple[str, str]) -> Object:
    fields = {f"f{n}": {"type": t, "format": f} for n, (t, f) in enumerate(pairs)}
    return created(with_schema(properties=fields))


def test_unrecognised_formats_are_reported_once_each() -> None:
    obj = formats(
        ("string", "date-time"),
        ("string", "color"),
        ("string", "color"),
        ("integer", "int32"),
        ("integer", "float"),
        ("boolean", "date"),
    )
    assert format_warnings(obj, None) == [
        'unrecognized format "color"',
        'unrecognized format "float"',
        'unrecognized format "date"',
    ]


def test_formats_unrecognised_before_are_not_told_again() -> None:
    old = formats(("string", "color"))
    new = formats(("string", "color"), ("string", "shape"))
    assert format_warnings(new, old) == ['unrecognized format "shape"']


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v1alpha1", "example.com/v1alpha1 Foo is deprecated; use example.com/v1beta2 Foo"),
        ("foo10", "example.com/foo10 Foo is deprecated; use example.com/v1beta2 Foo"),
        ("v10", "example.com/v10 Foo is deprecated"),
        ("v9", 'mind the "gap"'),
        ("v1beta2", None),
        ("v404", None),
    ],
)
def test_deprecated_version_recommends_only_upwards(name: str, expected: str | None) -> None:
    obj = crd(
        version("v1beta2"),
        version("foo1"),
        version("v20", served=False),
        version("v1alpha1", deprecated=True),
        version("foo10", deprecated=True),
        version("v10", deprecated=True),
        version("v9", deprecated=True, deprecationWarning='mind the "gap"'),
    )
    assert deprecation_warning(read_crd(obj), name) == expected

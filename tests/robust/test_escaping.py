"""Text of strangers stays text: hypothesis tries to break out of generated code, files' names,
log lines and pages."""

from __future__ import annotations

import ast
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.escaping import file_name, log_line, python_class_name
from instar.cli.serving.log_format import JsonLines, TextLines
from instar.kube.models.crd_models import version_models
from instar.kube.models.modules import STYLES, module_of, package_of

BREAKOUTS = (
    'X:\n    pass\nimport os; os.system("touch pwned")\nclass Y',
    '"""\nimport os\n"""',
    "'''+__import__('os')+'''",
    "\\",
    '\\"""',
    "a\rb",
    "X(object, metaclass=__import__('os').system('id')): #",
    "None",
    "class",
    "1a",
    "",
    "../../etc/passwd",
    "\u2028x",
)
TEXTS = st.one_of(st.sampled_from(BREAKOUTS), st.text(max_size=30))
MODULE_LEVEL = (ast.ImportFrom, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Expr)
HARMLESS = {"typing", "dataclasses", "pydantic", "msgspec", "__future__", "meta", "collections.abc"}


def crd(kind: str, group: str, name: str, description: str, default: str) -> dict[str, Any]:
    member = {"type": "string", "description": description, "default": default, "enum": [default]}
    inner = {"type": "object", "properties": {name: member}, "description": description}
    schema = {"type": "object", "description": description, "properties": {"spec": inner}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"x.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": kind, "kind": kind},
            "versions": [version],
        },
    }


@pytest.mark.parametrize("style", sorted(STYLES))
@given(TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_crd_file_puts_code_of_its_own_into_a_module(
    style: str, kind: str, group: str, name: str, description: str, default: str
) -> None:
    roots = list(version_models(crd(kind, group, name, description, default)))

    module = ast.parse(module_of(roots, style))

    for node in module.body:
        assert isinstance(node, MODULE_LEVEL)
        if isinstance(node, ast.Expr):
            assert isinstance(node.value, ast.Constant)  # the docstring
        if isinstance(node, ast.ImportFrom):
            assert node.module in HARMLESS
    called = {ast.unparse(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}
    assert not called & {"__import__", "exec", "eval", "os.system", "open"}


@given(TEXTS, TEXTS)
def test_no_crd_file_names_a_file_elsewhere(kind: str, group: str) -> None:
    roots = list(version_models(crd(kind, group, "a", "", "x")))

    for name in package_of(roots, "dataclass"):
        assert Path("/folder", name).resolve().parent == Path("/folder")


@given(TEXTS)
def test_a_class_name_is_one(text: str) -> None:
    assert ast.parse(f"class {python_class_name(text)}: pass").body


@pytest.mark.parametrize("kind", ["Foo", "FooBar2", "ABC"])
def test_a_kind_that_is_a_name_stays_as_it_is(kind: str) -> None:
    assert python_class_name(kind) == kind


@given(TEXTS)
def test_a_file_name_stays_in_its_folder(text: str) -> None:
    name = file_name(text)

    assert Path("/folder", name).resolve().parent == Path("/folder")
    assert not name.startswith(".")


@given(TEXTS)
def test_a_log_line_is_one_line(text: str) -> None:
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "asked for %s", (text,), None)

    for form in (TextLines(), JsonLines()):
        line = form.format(record)
        assert len(line.splitlines()) == 1
        assert "\x1b" not in line
    assert log_line(log_line(text)) == log_line(text)

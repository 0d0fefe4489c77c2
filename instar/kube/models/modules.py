"""Generates the source text of Python modules with model classes: docstring, imports, aliases,
classes.

Called by ``instar types``; the generators in ``styles/`` write the classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from instar.base.escaping import file_name, python_class_name
from instar.base.json_values import Object
from instar.kube.models.crd_models import VersionModel
from instar.kube.models.naming import ModelNaming
from instar.kube.models.objectmeta import object_meta
from instar.kube.models.partial_shapes import part_of
from instar.kube.models.shapes import ModelShape
from instar.kube.models.source_layout import WIDTH, docstring
from instar.kube.models.styles.msgspec import Msgspec
from instar.kube.models.styles.plain import Dataclass, TypedDicts
from instar.kube.models.styles.pydantic import Pydantic
from instar.kube.models.styles.writing import FORMATS, OBJECT_META, Style

STYLES: dict[str, type[Style]] = {
    "pydantic": Pydantic,
    "dataclass": Dataclass,
    "typeddict": TypedDicts,
    "msgspec": Msgspec,
}
META_MODULE = "meta"
_WORDS = frozenset(
    {"Any", "Annotated", "ClassVar", "Literal", "NotRequired", "TypedDict", "BaseModel"}
    | {"ConfigDict", "Field", "Meta", "Schema", "Struct", "None", "True", "False"}
)


def module_of(roots: Sequence[VersionModel], style: str, *, partial: bool = False) -> str:
    """Return one self-contained module."""
    return _module(roots, style, partial=partial, alone=True)


def package_of(
    roots: Sequence[VersionModel], style: str, *, partial: bool = False
) -> dict[str, str]:
    """Return a module per version and a shared one: texts by file name."""
    files = {"__init__.py": '"""Models of custom resources, a module per version."""\n'}
    files[f"{META_MODULE}.py"] = _module([], style, partial=partial, alone=True)
    plurals = Counter({(root.plural, root.group) for root in roots})
    ambiguous = Counter(plural for plural, _ in plurals)
    for root in roots:
        name = root.plural if ambiguous[root.plural] == 1 else f"{root.plural}_{root.group}"
        file = f"{file_name(_module_name(f'{name}_{root.version}'))}.py"
        files[file] = _module([root], style, partial=partial, alone=False)
    return files


def _module_name(text: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in text)


def _module(roots: Sequence[VersionModel], style: str, *, partial: bool, alone: bool) -> str:
    kinds = Counter(root.kind for root in roots)
    named: list[tuple[str, ModelShape]] = []
    crds: dict[str, Object] = {}
    for root in roots:
        wanted = root.kind if kinds[root.kind] == 1 else f"{root.kind}{root.version.title()}"
        name = _free_name(python_class_name(wanted), named)
        shape = STYLES[style].shaped(root.shape)
        named.append((name, part_of(shape) if partial else shape))
        if not partial:
            crds[name] = root.crd
    meta = [(OBJECT_META, object_meta())] if alone else []
    reserved = _WORDS | set(FORMATS.values()) | ({OBJECT_META} if not alone else set())
    naming = ModelNaming([*meta, *named], reserved)
    writer = STYLES[style](naming, crds)
    classes = ["\n".join(writer.class_lines(each)) for each in naming.classes()]
    prelude = [writer.prelude] if writer.needs_prelude else []
    parts = [*prelude, *_formats(writer), *classes, *writer.module_end()]
    head = [_title(roots, style, partial), _imports(writer, alone)]
    text = "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(parts) + "\n"
    if any(len(line) > WIDTH for line in text.splitlines()):
        return f"# ruff: noqa: E501\n{text}"
    return text


def _free_name(name: str, named: Sequence[tuple[str, ModelShape]]) -> str:
    """Return a name that is not used yet; two kinds may differ only in characters that a class name
    cannot have."""
    used, number, free = {each for each, _ in named}, 2, name
    while free in used:
        free, number = f"{name}{number}", number + 1
    return free


def _title(roots: Sequence[VersionModel], style: str, partial: bool) -> str:
    kinds = [f"{root.group}/{root.version} {root.kind}" for root in roots]
    what = ", ".join(kinds) or "What all models share"
    part = " Parts of objects, as converters see them." if partial else ""
    return "\n".join(docstring(f"{what}.\n\nWritten by `instar types --python {style}`.{part}", ""))


def _imports(writer: Style, alone: bool) -> str:
    standard = ("dataclasses", "typing")
    first: list[str] = []
    second: list[str] = []
    for module in sorted(writer.imports):
        words = ", ".join(sorted(writer.imports[module]))
        (first if module in standard else second).append(f"from {module} import {words}")
    third = [] if alone else [f"from .{META_MODULE} import {OBJECT_META}"]
    return "\n\n".join("\n".join(lines) for lines in (first, second, third) if lines)


def _formats(writer: Style) -> list[str]:
    lines = [writer.alias(name) for name in FORMATS.values() if name in writer.formats]
    return ["\n".join(lines)] if lines else []

"""Base class of the source generators (``pydantic.py``, ``msgspec.py``, ``plain.py``): writes a
Python module of model classes for a CRD.

It has what the generators share: type annotations as text, imports, and the order of a module's
parts. ``modules.py`` calls the generators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.models.naming import ModelNaming, NamedClass, attributes, split_words
from instar.kube.models.shapes import FRAME, Frame, ModelShape, ShapeKind, ShapeMember
from instar.kube.models.source_layout import (
    INDENT,
    WIDTH,
    Expr,
    Join,
    LayoutGroup,
    docstring,
    flat,
    lay_out,
    literal,
    subscript,
    text,
)

FORMATS = {
    ("integer", "int32"): "Int32",
    ("integer", "int64"): "Int64",
    ("number", "float"): "Float32",
    ("number", "double"): "Float64",
    ("string", "date-time"): "DateTime",
    ("string", "date"): "Date",
    ("string", "byte"): "Base64",
}
"""Names of common formats, so that they are not repeated at each field."""
OBJECT_META = "ObjectMeta"
_SCALARS = {
    ShapeKind.STRING: "str",
    ShapeKind.INTEGER: "int",
    ShapeKind.NUMBER: "float",
    ShapeKind.BOOLEAN: "bool",
    ShapeKind.INT_OR_STRING: "int | str",
}
_MAX_TYPE_WIDTH = 70
"""Maximum width of a type on one line."""
_TYPE_WORDS = frozenset({"str", "int", "float", "bool", "list", "dict", "field"})


@dataclass(frozen=True, slots=True)
class MemberSource:
    """A member of a generated class: attribute, property name, type and description."""

    attribute: str
    name: str
    shape: ModelShape
    required: bool
    doc: str


class Style(ABC):
    """Writes the classes of one module and collects its imports."""

    needs: ClassVar[Mapping[str, str]] = {}
    """Names that the style uses, and the modules they come from."""
    prelude: ClassVar[str] = ""
    """Source of a helper class, if the module has more than types."""
    taken: ClassVar[frozenset[str]] = frozenset()
    """Attributes that a field must not hide."""
    barred: ClassVar[str] = ""
    """Prefix that no attribute may have."""

    def __init__(self, naming: ModelNaming, crd: Mapping[str, Object]) -> None:
        self.naming = naming
        self.crd = crd
        """By root class: the content of ``__crd__``."""
        self.imports: dict[str, set[str]] = {}
        self.aliases: dict[str, Expr] = {}
        self.formats: set[str] = set()
        """Aliases at the top of the module."""
        self.pending: list[str] = []
        """Aliases of the class that is being written."""
        self.needs_prelude = False

    @staticmethod
    def shaped(shape: ModelShape) -> ModelShape:
        """Return the shape as far as this style can express it."""
        return shape

    @abstractmethod
    def carrier(self, shape: ModelShape, keywords: Object) -> Expr | None:
        """Return the expression that holds keywords inside an annotation."""

    @abstractmethod
    def head(self, named: NamedClass) -> list[str]:
        """Return the lines that open the class."""

    def config(self, named: NamedClass, places: list[MemberSource]) -> list[str]:
        """Return the lines before the fields."""
        return []

    @abstractmethod
    def frame(self, frame: Frame) -> list[str]:
        """Return ``apiVersion``, ``kind`` and ``metadata`` of a root object."""

    @abstractmethod
    def field(self, named: NamedClass, place: MemberSource) -> list[str]: ...

    def tail(self, named: NamedClass) -> list[str]:
        """Return the lines after the fields."""
        if named.name not in self.crd:
            return []
        return ["", *class_variable(self, "__crd__", self.crd[named.name])]

    def class_lines(self, named: NamedClass) -> list[str]:
        places = self.places(named)
        body = self.config(named, places)
        if named.shape.frame is not None:
            body += self.frame(named.shape.frame)
        for place in places:
            written = self.field(named, place)
            body += [*written, *doc_lines(place.doc)] if written else []
        body += self.tail(named)
        lines, described = [*self._own_aliases(), *self.head(named)], doc_lines(named.doc)
        if described:  # a blank description makes no docstring
            return [*lines, *described, "", *body] if body else [*lines, *described]
        return [*lines, *(body or ["    pass"])]

    def _own_aliases(self) -> list[str]:
        lines = [line for name in self.pending for line in self.alias(name).split("\n")]
        self.pending.clear()
        return [*lines, "", ""] if lines else []

    def alias(self, name: str) -> str:
        return lay_out(Join((f"{name} = ", self.aliases[name])))

    def module_end(self) -> list[str]:
        """Return the statements after the last class."""
        return []

    def use(self, word: str) -> str:
        source = {**_TYPING, **self.needs}[word]
        self.imports.setdefault(source, set()).add(word)
        return word

    # Types

    def bare(self, shape: ModelShape) -> Expr:
        """Return the type without ``None`` and without keywords."""
        if shape.enum:
            return subscript(self.use("Literal"), *(_value(each) for each in shape.enum))
        if shape.kind is ShapeKind.LIST and shape.item is not None:
            return subscript("list", self.inner(shape.item))
        if shape.kind is ShapeKind.MAP and shape.item is not None:
            return subscript("dict", "str", self.inner(shape.item))
        if shape.kind is ShapeKind.CLASS:
            return self.naming.name(shape)
        if shape.kind is ShapeKind.FREE:
            return f"dict[str, {self.use('Any')}]"
        return _SCALARS.get(shape.kind) or self.use("Any")

    def formatted(self, shape: ModelShape, keywords: Object) -> tuple[Expr, Object]:
        """Return the type, and the keywords that it does not express."""
        name = FORMATS.get((shape.kind.value, str(keywords.get("format"))))
        if name is None or shape.enum:
            return self.bare(shape), keywords
        rest = {key: value for key, value in keywords.items() if key != "format"}
        self.aliases[name] = self.annotated(self.bare(shape), shape, {"format": keywords["format"]})
        self.formats.add(name)
        return name, rest

    def inner(self, shape: ModelShape) -> Expr:
        """Return the type of a list's or map's items, with their keywords."""
        keywords = dict(shape.keywords)
        doc = self.own_doc(shape)
        if doc:
            keywords["description"] = doc
        kind, keywords = self.formatted(shape, keywords)
        if shape.nullable:
            kind = or_none(kind)
        return self.annotated(kind, shape, keywords)

    def annotated(self, kind: Expr, shape: ModelShape, keywords: Object) -> Expr:
        carried = self.carrier(shape, keywords)
        if carried is None:
            return kind
        return subscript(self.use("Annotated"), kind, carried)

    def short(self, kind: Expr, named: NamedClass, place: MemberSource) -> Expr:
        """Give a type that would fill its line an alias before the class."""
        if len(flat(kind)) <= _MAX_TYPE_WIDTH or not (
            place.shape.enum or "Annotated[" in flat(kind)
        ):
            return kind
        used = {each.name for each in self.naming.classes()} | set(self.aliases)
        name = named.name + "".join(split_words(place.name))
        while name in used:
            name += "Value"
        self.aliases[name] = kind
        self.pending.append(name)
        return name

    # Members

    def places(self, named: NamedClass) -> list[MemberSource]:
        members = named.shape.members
        framed = FRAME if named.shape.frame else ()
        taken = {*self.taken, *_TYPE_WORDS, *framed}
        chosen = attributes((each.name for each in members), taken, self.barred)
        return [self._place(chosen[member.name], member) for member in members]

    def _place(self, attribute: str, member: ShapeMember) -> MemberSource:
        doc = self.own_doc(member.shape)
        return MemberSource(attribute, member.name, member.shape, member.required, doc)

    def own_doc(self, shape: ModelShape) -> str:
        """Return the field's description, unless its class has the same."""
        if shape.kind is ShapeKind.CLASS and self.naming.doc(shape) == shape.doc:
            return ""
        return shape.doc

    def literal_frame(self, frame: Frame) -> dict[str, tuple[Expr, str]]:
        """Return the type and the only value of ``apiVersion`` and ``kind``."""
        values = {"apiVersion": text(frame.api_version), "kind": text(frame.kind)}
        return {
            name: (subscript(self.use("Literal"), value), value) for name, value in values.items()
        }


_TYPING = dict.fromkeys(
    ("Annotated", "Any", "ClassVar", "Literal", "NotRequired", "TypedDict"), "typing"
)


def or_none(kind: Expr) -> Expr:
    return kind if kind == "Any" else Join((kind, " | None"))


def statement(target: str, kind: Expr, value: Expr | None = None) -> list[str]:
    """Return ``target: kind = value``, in the body of a class."""
    parts: tuple[Expr, ...] = (f"{target}: ", kind)
    if value is not None:
        parts = (*parts, " = ", value)
    if len(INDENT) + len(flat(Join(parts))) <= WIDTH:
        return [INDENT + flat(Join(parts))]
    opens = value.opening if isinstance(value, LayoutGroup) else ""
    fits = len(f"{INDENT}{target}: {flat(kind)} = {opens}") <= WIDTH
    if (opens and fits) or (isinstance(kind, LayoutGroup) and not opens):
        return f"{INDENT}{lay_out(Join(_flattened(parts)), INDENT)}".split("\n")
    end = "" if value is None else f" = {lay_out(value, INDENT, after=len('    ) = '))}"
    if isinstance(kind, LayoutGroup):
        return f"{INDENT}{target}: {lay_out(kind, INDENT, after=WIDTH)}{end}".split("\n")
    inner = INDENT * 2
    lines = [inner + flat(kind)]
    if len(lines[0]) > WIDTH and isinstance(kind, Join) and kind.parts[1:] == (" | None",):
        lines = [*f"{inner}{lay_out(kind.parts[0], inner)}".split("\n"), f"{inner}| None"]
    return [f"{INDENT}{target}: (", *lines, *f"{INDENT}){end}".split("\n")]


def assignment(target: str, value: Expr) -> list[str]:
    return f"{INDENT}{lay_out(Join(_flattened((f'{target} = ', value))), INDENT)}".split("\n")


def _flattened(parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    out: list[Expr] = []
    for part in parts:
        out.extend(_flattened(part.parts) if isinstance(part, Join) else [part])
    return tuple(out)


def doc_lines(doc: str) -> list[str]:
    """Return the lines of a docstring in a class body."""
    return docstring(doc, INDENT)


def class_variable(style: Style, name: str, value: Mapping[str, Any]) -> list[str]:
    """Return the assignment of a ``ClassVar`` with a dict, such as ``__crd__``."""
    kind = f"{style.use('ClassVar')}[dict[str, {style.use('Any')}]]"
    return statement(name, kind, literal(value))


def _value(value: str | int | bool) -> Expr:
    return text(value) if isinstance(value, str) else repr(value)

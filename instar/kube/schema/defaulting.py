"""Drops nulls that the schema forbids and applies defaults, both in place.

Called through ``compiled.py``. First a null is dropped where the schema neither allows it nor has a
default for it; then defaults are filled in. Subtrees without such schemas are skipped, so a schema
without defaults costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.base.json_values import copy_json
from instar.kube.schema.growth import Growth, weight_of
from instar.kube.schema.metadata.embedded_resources import Coercer, coerce_identity, compile_coercer
from instar.kube.schema.pruning import compile_node
from instar.kube.schema.structure.interning import once_per_node
from instar.kube.schema.structure.structural import Structural

Step = Callable[[Any], None]
"""Changes a value in place."""
Fill = Callable[[Any, Growth], None]
"""Adds defaults to a value in place, within the limit of ``Growth``."""

_META = frozenset({"apiVersion", "kind", "metadata"})
_ONE = (str, int, bool, float)
"""Types that need no copy."""


def compile_null_dropper(root: Structural) -> Step:
    """Compile a function that removes keys with a null that is neither nullable nor defaulted."""
    return _null_dropper(root)


@once_per_node
def _null_dropper(node: Structural) -> Step:
    known = {name: _null_dropper(item) for name, item in node.properties.items()}
    droppable = {name for name, item in node.properties.items() if drops_null(item)}
    additional = node.additional if isinstance(node.additional, Structural) else None
    other = None if additional is None else _null_dropper(additional)
    drops_other = additional is not None and drops_null(additional)
    items = None if node.items is None else _null_dropper(node.items)

    def drop(value: Any) -> None:
        if type(value) is list:
            if items is not None:
                for item in value:
                    if type(item) is dict or type(item) is list:
                        items(item)
            return
        nulls: list[str] = []
        for name, item in value.items():
            if item is None:
                if name in droppable or (drops_other and name not in known):
                    nulls.append(name)
            elif type(item) is dict or type(item) is list:
                deeper = known.get(name, other)
                if deeper is not None:
                    deeper(item)
        for name in nulls:
            del value[name]

    return drop


def drops_null(node: Structural) -> bool:
    """Return whether a null is neither allowed nor replaced by a default."""
    return not node.nullable and node.default is None


Inside = tuple[str | None, ...]
"""Path from a resource to a field in its apiVersion, kind or metadata; None is a list item."""


def compile_defaulter(root: Structural) -> Step | None:
    """Compile a function that applies defaults; None when the schema has none. The function raises
    what ``Growth`` does; some defaults are applied then, and another call applies the rest."""
    fill = _defaulter(root, None, at_resource=True)
    return None if fill is None else lambda value: fill(value, Growth())


def _defaulter(node: Structural, inside: Inside | None, *, at_resource: bool) -> Fill | None:
    """Compile a node. ``inside`` is None except in the metadata of a resource, which is not
    pruned by the schema."""
    fills: dict[str, tuple[Any, int]] = {}
    deeper: dict[str, Fill] = {}
    for name, item in node.properties.items():
        place = _member(inside, name, at_resource=at_resource)
        default = _usable_default(item, place)
        if default is not None:
            fills[name] = (default, weight_of(name, default))
        step = _defaulter(item, None if item.embedded else place, at_resource=item.embedded)
        if step is not None:
            deeper[name] = step
    additional = node.additional if isinstance(node.additional, Structural) else None
    other = _Element.of(additional, None if inside is None else (*inside, "*"))
    items = _Element.of(node.items, None if inside is None else (*inside, None))
    if not fills and not deeper and other is None and items is None:
        return None
    nullable = {name for name, item in node.properties.items() if item.nullable}
    declared = frozenset(node.properties)

    def fill(value: Any, growth: Growth) -> None:
        if type(value) is dict:
            for name, (default, weight) in fills.items():
                present = value.get(name)
                if present is None and (name not in value or name not in nullable):
                    growth.take(weight)
                    value[name] = default if default.__class__ in _ONE else copy_json(default)
            for name, step in deeper.items():
                below = value.get(name)
                if type(below) is dict or type(below) is list:
                    step(below, growth)
            if other is not None:
                for name in value:
                    if name not in declared:
                        value[name] = other.filled(value[name], growth)
        elif type(value) is list and items is not None:
            for position, item in enumerate(value):
                value[position] = items.filled(item, growth)

    return fill


class _Element:
    """A map value or list item: its own default replaces null, then its children are filled."""

    __slots__ = ("default", "replaces_null", "step", "weight")

    def __init__(self, node: Structural, step: Fill | None, default: Any) -> None:
        self.default = default
        self.weight = 0 if default is None else weight_of("", default)
        self.replaces_null = default is not None and not node.nullable
        self.step = step

    @classmethod
    def of(cls, node: Structural | None, inside: Inside | None) -> _Element | None:
        if node is None:
            return None
        step = _defaulter(node, None if node.embedded else inside, at_resource=node.embedded)
        default = _usable_default(node, inside)
        return None if step is None and default is None else cls(node, step, default)

    def filled(self, value: Any, growth: Growth) -> Any:
        if value is None:
            if not self.replaces_null:
                return None
            growth.take(self.weight)
            value = copy_json(self.default)
        if self.step is not None and (type(value) is dict or type(value) is list):
            self.step(value, growth)
        return value


def _member(inside: Inside | None, name: str, *, at_resource: bool) -> Inside | None:
    if inside is not None:
        return (*inside, name)
    return (name,) if at_resource and name in _META else None


def _usable_default(node: Structural, inside: Inside | None) -> Any:
    """Return the default as pruning, null dropping and coercion leave it."""
    default = copy_json(node.default)
    if default is not None and inside is not None:
        default = _known_to_metadata(default, inside)
    if type(default) is not dict and type(default) is not list:
        return default
    if inside is not None:
        _null_dropper(node)(default)
        return default
    compile_node(node)(default)
    _null_dropper(node)(default)
    coerce: Coercer | None = compile_coercer(node)
    if coerce is not None:
        coerce(default, "", True, [])
    return default


def _known_to_metadata(default: Any, inside: Inside) -> Any:
    """Return what ObjectMeta keeps of the default; None when it has no such field."""
    resource = default
    for step in reversed(inside):
        resource = [resource] if step is None else {step: resource}
    coerce_identity(resource)
    for step in inside:
        if step is None:
            resource = resource[0] if type(resource) is list and resource else None
        else:
            resource = resource.get(step) if type(resource) is dict else None
    return resource

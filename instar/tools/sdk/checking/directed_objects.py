"""Builds objects of one CRD version around values at which converters break.

``directed_inputs.py`` calls it, so that these objects are checked before random ones. Each schema
node has a pool of values (``boundary_values.py``, constants from the converter's code, strings that
match its pattern). Each object uses the next value of every pool, so a small schema needs as many
objects as its longest pool has values. The same schema gives the same objects.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from instar.base.json_values import Object, copy_json
from instar.kube.api.crd import Crd
from instar.kube.schema.compiled import CompiledSchema
from instar.kube.schema.generation.list_items import without_duplicates
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.pattern_automata import sample_texts
from instar.tools.sdk.checking.boundary_values import INT64, LARGE, MAP_KEYS, SIZES, boundary_values
from instar.tools.sdk.checking.case import VersionSchema
from instar.tools.sdk.checking.mined_values import MinedValues

_COMMON_FIELDS = ("apiVersion", "kind", "metadata")
_EMBEDDED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner"}}
_ANY_JSON: tuple[Any, ...] = (
    *({"Key": "a b"}, "a", 1, True, [], {}, [1, "b", {"c": [2]}], {"x": {"y": [None, 1.5]}}),
    *(2**53 + 1, "", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, None),
)
_MOST_PLACES = 40
"""Places that one object sets besides the required ones; a large schema takes more rounds."""
_MOST_VALUES = 400
_DEEPEST = 14
_SHARES = (0.85, 0.5, 0.25)
"""How many of the chosen places the sparse objects set, one after the other."""
_FEWEST_ROUNDS = 36
_NAMES = ("a", "my-object", "a.b", "x" * 253, "0", "my-object-1.b-2-c", "my-object-7d4b9c-x2x4z")
_MOST_MINED_KEYS = 40

Path = tuple[str, ...]


class DirectedObjects:
    """Valid objects of one version, as a server would store them."""

    def __init__(
        self,
        crd: Crd,
        version: VersionSchema,
        mined: MinedValues | None = None,
        real: Sequence[Object] = (),
    ) -> None:
        self._crd, self._version = crd, version
        self._mined = mined or MinedValues()
        self._real = real
        self._root = version.compiled.structural
        self._places = [path for path, _ in _places(self._root, (), 0)]
        self._pools: dict[int, list[Any]] = {}
        mined_keys = [key for text in self._mined.texts for key in (text, f"{text}x")]
        self._keys = (*MAP_KEYS, *mined_keys[:_MOST_MINED_KEYS])

    def objects(self, most: int) -> Iterator[Object]:
        """Yield real objects first, then one object per round until every pool was used."""
        for obj in self._real:
            admitted = self._version.admit(obj)
            if admitted is not None:
                yield admitted
        yield from islice(self._rounds(), most)

    def minimal(self) -> Object | None:
        """Return the object with required fields only; None if that is not valid."""
        return self._version.admit(self._framed(_Round(self, 0, frozenset(), 0.0), 0))

    def _rounds(self) -> Iterator[Object]:
        """Yield full objects until every value was used, then sparse ones, then large ones."""
        refused, count = 0, self._count()
        for number in range(count + max(count // 2, len(_SHARES))):
            share = 1.0 if number < count else _SHARES[number % len(_SHARES)]
            focus = self._focus(number)
            made = self._version.admit(self._framed(_Round(self, number, focus, share), number))
            if made is not None:
                yield made
                continue
            refused += 1
            if refused < _MOST_PLACES:
                yield from self._singles(number, focus)
        yield from self._large()

    def _large(self) -> Iterator[Object]:
        """Yield objects with long lists and maps."""
        for number in range(2):
            round_ = _Round(self, number, self._focus(number), 1.0, LARGE)
            made = self._version.admit(self._framed(round_, number))
            if made is not None:
                yield made

    def _singles(self, number: int, focus: frozenset[Path]) -> Iterator[Object]:
        """Yield objects that set one optional field each, if rules refuse the full object."""
        for place in self._places:
            if place in focus:
                one = _Round(self, number, frozenset({place}), 1.0)
                made = self._version.admit(self._framed(one, number))
                if made is not None:
                    yield made

    def _count(self) -> int:
        longest = max((len(self.pool(node)) for _, node in _places(self._root, (), 0)), default=0)
        windows = -(-len(self._places) // _MOST_PLACES)
        return max(longest, _FEWEST_ROUNDS) * max(windows, 1)

    def _focus(self, number: int) -> frozenset[Path]:
        if len(self._places) <= _MOST_PLACES:
            return frozenset(self._places)
        start = number * _MOST_PLACES % len(self._places)
        chosen = (self._places * 2)[start : start + _MOST_PLACES]
        return frozenset(chosen)

    def _framed(self, making: _Round, number: int) -> Object:
        content = making.object(self._root, (), root=True)
        metadata: Object = {"name": _NAMES[number % len(_NAMES)], "uid": "u1", "generation": 2}
        if self._crd.namespaced:
            metadata["namespace"] = "default"
        if number % 3 == 1:
            metadata["labels"] = {"app": "x"}
            metadata["annotations"] = {"note": "a b", "example.com/Note": ""}
        return {
            "apiVersion": self._version.api_version,
            "kind": self._crd.names.kind,
            "metadata": metadata,
            **content,
        }

    def pool(self, node: Structural) -> list[Any]:
        """Return the values of one node that its own schema accepts."""
        known = self._pools.get(id(node))
        if known is None:
            known = self._pools[id(node)] = self._pool(node)
        return known

    def _pool(self, node: Structural) -> list[Any]:
        compiled = CompiledSchema(node, declared=True, preserve_unknown=False)
        texts: Sequence[Any] = self._mined.texts
        numbers: Sequence[Any] = self._mined.numbers
        tried = list(boundary_values(node))
        if not node.raw.get("enum"):
            if node.type == "string" or node.int_or_string:
                pattern = node.raw.get("pattern")
                drawn = sample_texts(str(pattern)) if pattern else ()
                tried = [*tried[:40], *drawn, *texts, *tried[40:]]
            if node.type in ("integer", "number") or node.int_or_string:
                numbers = [each for each in numbers if -INT64 <= each < INT64]
                whole = [each for each in numbers if isinstance(each, int)]
                tried = [*tried[:10], *(whole if node.type != "number" else numbers), *tried[10:]]
        kept: list[Any] = []
        seen: set[tuple[type, Any]] = set()
        for value in tried[:_MOST_VALUES]:
            try:
                key = (type(value), value)
                if key not in seen and (value is None or not compiled.validate(value)):
                    seen.add(key)
                    kept.append(value)
            except TypeError:  # a default or an enum value that is a list or an object
                kept.append(value)
        return kept

    def keys(self) -> Sequence[str]:
        """Return keys for free maps: difficult ones, then those that the converter's code names."""
        return self._keys


class _Round:
    """Builds one object: which fields it sets, and which value of its pool each gets."""

    def __init__(
        self,
        parent: DirectedObjects,
        number: int,
        focus: frozenset[Path],
        share: float,
        size: int | None = None,
    ) -> None:
        self._parent, self._number, self._share, self._size = parent, number, share, size
        self._prefixes = {place[:end] for place in focus for end in range(1, len(place) + 1)}
        self._random = random.Random(number)
        self._shift = 0

    def object(self, node: Structural, path: Path, *, root: bool = False) -> Object:
        required, forbidden = _branches(node.raw, self._number)
        known = {
            name: each
            for name, each in node.properties.items()
            if not root or name not in _COMMON_FIELDS
        }
        made: Object = copy_json(_EMBEDDED) if node.embedded else {}
        for name, inner in known.items():
            below = (*path, name)
            if name in made or (name in forbidden and name not in required):
                continue
            wanted = below in self._prefixes and self._random.random() < self._share
            if (wanted and len(path) < _DEEPEST) or name in required:
                made[name] = self.value(inner, below)
        self._extras(node, made, path)
        return made

    def _extras(self, node: Structural, made: Object, path: Path) -> None:
        below = (*path, "*")
        least = _whole(node.raw.get("minProperties"), 0) - len(made)
        most = _whole(node.raw.get("maxProperties"), 10**6) - len(made)
        if isinstance(node.additional, Structural):
            size = self._length(least, most) if below in self._prefixes else max(least, 0)
            keys = self._parent.keys()
            for place in range(size):
                value = self._shifted(node.additional, below, place)
                made.setdefault(_key(keys, self._number + place), value)
        elif node.additional is True or (node.preserve_unknown and path):
            for place in range(max(least, 1 if most > 0 else 0)):
                value = _ANY_JSON[(self._number + place) % len(_ANY_JSON)]
                made.setdefault(_key(self._parent.keys(), self._number + place), copy_json(value))

    def value(self, node: Structural, path: Path) -> Any:
        pool = self._parent.pool(node)
        if node.type == "object" and not node.raw.get("enum"):
            if node.nullable and self._number % 5 == 4:
                return None
            return self.object(node, path)
        if node.type == "array" and not node.raw.get("enum"):
            return None if node.nullable and self._number % 5 == 3 else self._array(node, path)
        if pool:
            offset = len(path) * 3 + sum(map(len, path))
            # From lap to lap pools of the same length shift against each other.
            lap = self._number // len(pool) * (offset % 5 + 1)
            return copy_json(pool[(self._number + self._shift + offset + lap) % len(pool)])
        if node.type in ("", None):
            return copy_json(_ANY_JSON[self._number % len(_ANY_JSON)])
        return {"string": "a", "integer": 0, "number": 0, "boolean": False}.get(node.type)

    def _array(self, node: Structural, path: Path) -> list[Any]:
        raw = node.raw
        size = self._length(_whole(raw.get("minItems"), 0), _whole(raw.get("maxItems"), 10**6))
        if node.items is None:
            return [copy_json(_ANY_JSON[place % len(_ANY_JSON)]) for place in range(size)]
        items = [self._shifted(node.items, (*path, "*"), place) for place in range(size)]
        if size > 1 and self._number % 6 == 3:
            items[-1] = copy_json(items[0])
        return without_duplicates(node, items)

    def _shifted(self, node: Structural, path: Path, place: int) -> Any:
        """Return the value of a list item: items of one list get successive values."""
        before = self._shift
        self._shift = before + place
        value = self.value(node, path)
        self._shift = before
        return value

    def _length(self, least: int, most: int) -> int:
        wanted = self._size if self._size is not None else SIZES[self._number % len(SIZES)]
        return max(min(wanted, most), least, 0)


def _places(node: Structural, path: Path, depth: int) -> Iterator[tuple[Path, Structural]]:
    if path:
        yield path, node
    if depth > _DEEPEST:
        return
    for name, inner in node.properties.items():
        if path or name not in _COMMON_FIELDS:
            yield from _places(inner, (*path, name), depth + 1)
    for each in (node.items, node.additional):
        if isinstance(each, Structural):
            yield from _places(each, (*path, "*"), depth + 1)


def _branches(raw: Mapping[str, Any], number: int) -> tuple[set[str], set[str]]:
    """Return the required names of a node with one branch of each ``anyOf`` and ``oneOf`` chosen,
    and the names that the other branches of a ``oneOf`` require.
    """
    required, forbidden = set(_names(raw)), set[str]()
    for each in raw.get("allOf") or ():
        more, less = _branches(each, number)
        required, forbidden = required | more, forbidden | less
    for word in ("anyOf", "oneOf"):
        branches = [each for each in raw.get(word) or () if isinstance(each, Mapping)]
        if branches:
            chosen = set(_names(branches[number % len(branches)]))
            required |= chosen
            if word == "oneOf":
                forbidden |= {name for each in branches for name in _names(each)} - chosen
    return required, forbidden


def _names(raw: Mapping[str, Any]) -> Iterable[str]:
    return [str(name) for name in raw.get("required") or ()]


def _key(keys: Sequence[str], position: int) -> str:
    """Return the n-th key; after the end of the list a number makes it unique."""
    lap, place = divmod(position, len(keys))
    return f"{keys[place]}{lap}" if lap else keys[place]


def _whole(value: Any, default: int) -> int:
    return int(value) if isinstance(value, int | float) else default

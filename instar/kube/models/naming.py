"""Chooses names of generated classes and attributes: short, and longer only where two clash.

Called by ``modules.py`` and the generators in ``styles/``. Object schemas that are equal share one
class, also across versions.
"""

from __future__ import annotations

import keyword
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

import orjson

from instar.base.fast_dataclass import dataclass
from instar.kube.models.shapes import ClassShape, ModelShape, ShapeKind
from instar.kube.models.to_schema import class_schema

Key = bytes
"""Key that equal classes share."""
VAGUE = frozenset({"Spec", "Status", "Metadata", "Template", "Item"})
"""Names that are meaningless without their parent's name."""


@dataclass(slots=True)
class _NamedShape:
    shape: ClassShape
    doc: str
    path: tuple[str, ...]
    """Names on the path from the root; the first includes the root's own."""
    ends: list[list[str]] = field(default_factory=list)
    """The words of each property that uses it."""


@dataclass(frozen=True, slots=True)
class NamedClass:
    """A class to generate, with its name."""

    name: str
    shape: ClassShape
    doc: str


class ModelNaming:
    """The classes of a module, each after those it needs, and their names."""

    def __init__(
        self, roots: Sequence[tuple[str, ModelShape]], reserved: Collection[str] = ()
    ) -> None:
        self._found: dict[Key, _NamedShape] = {}
        self._keys: dict[int, Key] = {}
        self._roots: dict[Key, str] = {}
        for name, shape in roots:
            assert shape.members is not None
            self._walk_members(shape.members, (), root=name if shape.members.frame else "")
            key = self._key(shape)
            self._roots[key] = name
            self._found[key] = _NamedShape(shape.members, shape.doc, (name,))
        self._names = self._chosen(VAGUE.union(reserved))

    def classes(self) -> list[NamedClass]:
        return [
            NamedClass(self._names[key], found.shape, found.doc)
            for key, found in self._found.items()
        ]

    def name(self, shape: ModelShape) -> str:
        return self._names[self._key(shape)]

    def doc(self, shape: ModelShape) -> str:
        """Return the docstring of a shared class; fields with other texts have their own."""
        return self._found[self._key(shape)].doc

    def _walk_members(self, shape: ClassShape, path: tuple[str, ...], root: str = "") -> None:
        """Walk the members; those of the root have the root's name in theirs (``WidgetSpec``)."""
        before = [root] if root else []
        for member in shape.members:
            self._walk(member.shape, path, [*before, *split_words(member.name)])

    def _walk(self, shape: ModelShape, path: tuple[str, ...], words: list[str]) -> None:
        if shape.item is not None:
            self._walk(shape.item, path, [*words[:-1], singular(words[-1])])
        if shape.kind is not ShapeKind.CLASS or shape.members is None:
            return
        here = (*path, "".join(words))
        key = self._key(shape)
        if key not in self._found:
            self._walk_members(shape.members, here)
        found = self._found.setdefault(key, _NamedShape(shape.members, shape.doc, here))
        found.ends.append(words)

    def _key(self, shape: ModelShape) -> Key:
        """Return the sharing key; a shape without description does not share a class that has
        one."""
        members = shape.members
        assert members is not None
        known = self._keys.get(id(members))
        if known is None:
            frame = members.frame and (members.frame.api_version, members.frame.kind)
            content = [frame, bool(shape.doc), class_schema(members)]
            known = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
            self._keys[id(members)] = known
        return known

    def _chosen(self, reserved: frozenset[str]) -> dict[Key, str]:
        names = {key: _short(found) for key, found in self._found.items()}
        names |= self._roots
        for depth in range(
            2, 1 + max((len(each.path) for each in self._found.values()), default=1)
        ):
            for key in _clashing_names(names, reserved):
                found = self._found[key]
                if key not in self._roots and len(found.path) >= depth:
                    names[key] = "".join(found.path[-depth:])
        return _number_clashes(names, reserved, self._roots)


def _clashing_names(names: Mapping[Key, str], reserved: frozenset[str]) -> list[Key]:
    users: dict[str, list[Key]] = defaultdict(list)
    for key, name in names.items():
        users[name].append(key)
    return [
        key for name, keys in users.items() if len(keys) > 1 or name in reserved for key in keys
    ]


def _number_clashes(
    names: dict[Key, str], reserved: frozenset[str], roots: Mapping[Key, str]
) -> dict[Key, str]:
    """Append numbers, as a last resort."""
    used = {*reserved, *roots.values()}
    for key, name in names.items():
        if key in roots:
            continue
        wanted, number = name, 2
        while wanted in used:
            wanted, number = f"{name}{number}", number + 1
        used.add(wanted)
        names[key] = wanted
    return names


def _short(found: _NamedShape) -> str:
    """Return the last words that all uses share: ``aSecretRef`` and ``bSecretRef`` give
    SecretRef."""
    if not found.ends:
        return found.path[-1]
    common = found.ends[0]
    for words in found.ends[1:]:
        common = _common_end(common, words)
    clear = len(common) > 1 or common == found.ends[0]
    return "".join(common) if clear else found.path[-1]


def _common_end(one: list[str], other: list[str]) -> list[str]:
    length = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        length += 1
    return one[len(one) - length :]


def split_words(name: str) -> list[str]:
    """Split ``privateKeySecretRef`` into Private, Key, Secret, Ref; never empty, valid in a
    class name."""
    words: list[str] = []
    previous = ""
    for letter in name:
        if not (letter.isascii() and letter.isalnum()):
            previous = ""
            continue
        if not previous or (letter.isupper() and not previous.isupper()):
            words.append(letter.upper())
        else:
            words[-1] += letter
        previous = letter
    if not words or words[0][0].isdigit():
        words.insert(0, "Item")
    return words


def singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word


def attributes(names: Iterable[str], reserved: Collection[str], barred: str = "") -> dict[str, str]:
    """Return a valid attribute for each property, the same name if possible; none begins with
    ``barred``."""
    chosen: dict[str, str] = {}
    used = set(reserved)
    for name in names:
        attribute = "".join(each if _legal(each) else "_" for each in name).lstrip("_")
        starts_badly = barred and attribute.startswith(barred)
        if not attribute or attribute[0].isdigit() or starts_badly:
            attribute = f"field_{attribute}".rstrip("_")
        while keyword.iskeyword(attribute) or attribute in used:
            attribute += "_"
        used.add(attribute)
        chosen[name] = attribute
    return chosen


def _legal(letter: str) -> bool:
    return letter == "_" or (letter.isascii() and letter.isalnum())

"""Combines the objects of ``directed_objects.py``, which are built around values at which
converters break, into the inputs that each law (a property such as round trip) takes.

``search.py`` tries these inputs before the random ones of hypothesis. Objects are built once per
version and shared by all laws and directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from instar.base.json_values import Object
from instar.kube.schema.structure.structural import Structural
from instar.tools.sdk.checking.case import CheckCase, VersionSchema
from instar.tools.sdk.checking.directed_objects import DirectedObjects
from instar.tools.sdk.checking.laws import Input, VersionPair
from instar.tools.sdk.checking.mined_values import MinedValues, mine_code, mine_objects
from instar.tools.sdk.checking.parts import removable, without_paths

_MAX_SINGLE_FIELD_PARTS = 40
"""After this number of partial objects that lack one field, parts lack several fields."""
_MAX_PARTS = 120
"""After this number no further partial objects are made."""


class DirectedInputs:
    """Inputs for the laws of one case.

    ``code`` is what constants are mined from, usually the converter; ``real`` are objects of
    users, by version.
    """

    def __init__(
        self,
        case: CheckCase,
        *,
        most: int,
        code: object = None,
        real: dict[str, list[Object]] | None = None,
    ) -> None:
        self._case, self._most = case, most
        self._real = real or {}
        names = {name for each in case.versions.values() for name in _field_names(each)}
        mined = mine_code(code, names) if code is not None else MinedValues()
        for objects in self._real.values():
            mined = mined.merged(mine_objects(objects))
        self._mined = mined
        self._objects: dict[str, list[Object]] = {}

    def objects(self, version: VersionSchema) -> list[Object]:
        known = self._objects.get(version.name)
        if known is None:
            real = self._real.get(version.name, [])
            made = DirectedObjects(self._case.crd, version, self._mined, real)
            least = made.minimal()
            known = [*([] if least is None else [least]), *made.objects(self._most)]
            self._objects[version.name] = known
        return known

    def inputs(self, pair: VersionPair, wanted: Sequence[Input]) -> Iterator[list[Object]]:
        sources = self.objects(pair.source)
        if "part" in wanted:
            yield from _parts(sources, pair.source.compiled.structural)
        elif "target" in wanted:
            yield from _edits(sources, self.objects(pair.target))
        elif len(wanted) == 1:
            yield from ([each] for each in sources)
        else:
            for start in range(0, len(sources) - len(wanted) + 1, len(wanted)):
                yield sources[start : start + len(wanted)]


def _edits(sources: list[Object], targets: list[Object]) -> Iterator[list[Object]]:
    """Yield an object, an edit of it at the other version, and a second edit at its own version.

    Nearby objects have other values for the same fields; the first one has required fields alone,
    so that an edit removes everything else.
    """
    if not sources or not targets:
        return
    for place, source in enumerate(sources):
        near = targets[(place + 1) % len(targets)]
        again = sources[(place + 2) % len(sources)]
        yield [source, near, again]
        if place % 4 == 1:
            yield [source, targets[0], sources[0]]


def _parts(sources: list[Object], schema: Structural) -> Iterator[list[Object]]:
    """Yield partial objects: the first full objects without one field each, then without
    several.
    """
    given = 0
    for place, source in enumerate(sources):
        fields = removable(source, schema)
        if not fields:
            continue
        if given < _MAX_SINGLE_FIELD_PARTS:
            for field in fields[:_MAX_SINGLE_FIELD_PARTS]:
                given += 1
                yield [source, without_paths(source, [field])]
        else:
            given += 1
            yield [source, without_paths(source, fields[place % 3 :: 3])]
        if given > _MAX_PARTS:
            return


def _field_names(version: VersionSchema) -> Iterator[str]:
    waiting = [version.compiled.structural]
    while waiting:
        node = waiting.pop()
        yield from node.properties
        waiting += node.properties.values()
        waiting += [each for each in (node.items, node.additional) if isinstance(each, Structural)]

"""CRDs whose schemas, rules, columns and paths are wrong somewhere, and objects for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from instar.base.json_values import Object
from tests.fuzz import mutation
from tests.fuzz.material import GROUP, JSONPATHS, SAMPLE, SCHEMA_WORDS, Material, sample_crd
from tests.fuzz.mutation import TOKENS, number
from tests.robust.hostile_schemas import hostile_schema, hostile_value
from tests.support import crds

_COSTLY = 4
"""How many CRDs there are whose schemas are made to be costly."""
_OWN = 6
"""How many CRDs of the fuzzer's own there are at most."""


def own_number(chance: Random) -> int:
    return chance.randrange(_OWN)


def own_path(chance: Random, at: int) -> str:
    version = chance.choice(("v1", "v1", "v2"))
    return f"/apis/{GROUP}/{version}/namespaces/default/own{at}s"


def own_object(chance: Random, at: int, others: Sequence[Any]) -> Any:
    name = {"name": chance.choice("abc")}
    obj = {**SAMPLE, "kind": f"Own{at}", "metadata": {**SAMPLE["metadata"], **name}}
    return obj if chance.random() < 0.3 else mutation.value(chance, obj, others)


def own_crd(chance: Random, at: int, material: Material, others: Sequence[Any]) -> Object:
    """Its names are right; about half of them are accepted."""
    crd: Object = mutation.copied(sample_crd(f"own{at}s", f"Own{at}"))
    for _ in range(number(chance, 3)):
        _changed_version(chance, chance.choice(crd["spec"]["versions"]), material, others)
    if chance.random() < 0.5:
        crd["spec"]["versions"][1] = {**mutation.copied(crd["spec"]["versions"][0]), "name": "v2"}
        crd["spec"]["versions"][1]["storage"] = False
    return crd


class Costly:
    """CRDs whose schemas are made to be costly for small objects, and such objects."""

    def __init__(self) -> None:
        self._schemas: dict[int, Object] = {}

    def installed(self, chance: Random) -> Object:
        at = chance.randrange(_COSTLY)
        self._schemas[at] = hostile_schema(chance)
        stored = crds.version("v1", crds.fields(spec=self._schemas[at]))
        return crds.crd(stored, group=GROUP, plural=f"costly{at}s", kind=f"Costly{at}")

    def met(self, chance: Random) -> tuple[str, Object]:
        """A collection and an object for it."""
        at = chance.choice(sorted(self._schemas)) if self._schemas else 0
        spec = hostile_value(chance, self._schemas.get(at, {}))
        names = {"apiVersion": f"{GROUP}/v1", "kind": f"Costly{at}"}
        obj = {**names, "metadata": {"name": chance.choice("abc")}, "spec": spec}
        return f"/apis/{GROUP}/v1/namespaces/default/costly{at}s", obj


def changed_crd(chance: Random, material: Material, others: Sequence[Any]) -> Any:
    """A real one with anything wrong, its names too."""
    crd: Object = mutation.copied(chance.choice(material.crds))
    if chance.random() < 0.5:
        return mutation.value(chance, crd, others)
    _changed_version(chance, chance.choice(crd["spec"]["versions"]), material, others)
    crd["metadata"]["name"] = f"x{crd['metadata']['name']}"
    crd["spec"]["names"]["plural"] = f"x{crd['spec']['names']['plural']}"
    return crd


def _changed_version(
    chance: Random, version: Object, material: Material, others: Sequence[Any]
) -> None:
    kind = chance.randrange(5)
    if kind == 0:
        path = mutation.text(chance, chance.choice(JSONPATHS), TOKENS["jsonpath"])
        column = {
            "name": "x",
            "type": chance.choice(("string", "date", "integer")),
            "jsonPath": path,
        }
        version["additionalPrinterColumns"] = [column]
        return
    if kind == 1:
        path = mutation.text(chance, ".spec.name", TOKENS["jsonpath"], 100)
        version["selectableFields"] = [{"jsonPath": path}]
        return
    nodes = list(_nodes(version["schema"]["openAPIV3Schema"]))
    node = chance.choice(nodes)
    if kind == 2:
        _ruled(chance, node, material)
    elif kind == 3:
        word = chance.choice(sorted(SCHEMA_WORDS))
        value = SCHEMA_WORDS[word]
        if isinstance(value, str) and chance.random() < 0.6:
            value = mutation.text(chance, value, TOKENS["regex"], 300)
        elif chance.random() < 0.3:
            value = mutation.value(chance, value, others)
        node[word] = mutation.copied(value)
    else:
        changed = mutation.value(chance, node, others)
        if isinstance(changed, dict):
            node.clear()
            node.update(changed)


def _ruled(chance: Random, node: Object, material: Material) -> None:
    rules = []
    for _ in range(number(chance, 4)):
        text = chance.choice(material.rules)
        if chance.random() < 0.6:
            text = mutation.text(chance, text, TOKENS["cel"], 3000)
        rule: Object = {"rule": text}
        if chance.random() < 0.3:
            rule["messageExpression"] = chance.choice(material.rules)
        rules.append(rule)
    node["x-kubernetes-validations"] = rules


def _nodes(root: Object) -> Iterator[Object]:
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        yield node
        properties = node.get("properties")
        waiting += list(properties.values()) if isinstance(properties, dict) else []
        waiting += [node.get("items"), node.get("additionalProperties")]

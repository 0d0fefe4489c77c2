"""Real CRDs: every rule compiles, every estimate passes, quickly."""

from __future__ import annotations

from dataclasses import replace

from instar.kube.schema.cel_rules import compile as rules
from instar.kube.schema.cel_rules.check import check_rules
from instar.kube.schema.cel_rules.evaluate import compile_rules
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural, ValidationRule
from tests.cel.support import corpus_crds, gateway_schema


def schemas() -> list[tuple[str, Structural]]:
    found = []
    for name, crd in corpus_crds():
        for version in crd["spec"].get("versions") or ():
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema is not None:
                found.append((f"{name} {version['name']}", structural(schema)))
    return found


def test_all_rules_of_all_crds_compile_and_are_affordable() -> None:
    problems = {}
    for name, schema in schemas():
        found = check_rules(schema, "x", frozenset(), False)
        if found:
            problems[name] = [str(error) for error in found]

    assert problems == {}


def test_a_crd_with_hundreds_of_distinct_rules_is_accepted() -> None:
    """On one large type; how long it takes is in docs/explanation/performance.md."""
    route = gateway_schema("httproutes", release="v1.6.0").properties["spec"]
    source = (
        "self.rules.all(r, has(r.matches) && r.matches.size() < {0}) || self.hostnames == ['{0}']"
    )
    many = tuple(ValidationRule(source.format(number)) for number in range(300))
    schema = Structural(type="object", properties={"spec": replace(route, rules=many)})

    found = check_rules(schema, "x", frozenset(), True)

    assert found == []
    assert compile_rules(schema) is not None


def test_an_unchanged_schema_is_not_compiled_again() -> None:
    schema = gateway_schema("httproutes", release="v1.6.0")
    compile_rules(schema)
    before = len(rules._COMPILED)

    check_rules(structural(schema.raw), "x", frozenset(), False)
    compile_rules(structural(schema.raw))

    assert len(rules._COMPILED) == before

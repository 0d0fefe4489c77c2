"""What is remembered for clients is bounded by how large they made it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import instar
from instar.base.weighted_lru import WeightedLru
from instar.kube.access.attributes import Attributes, User
from instar.kube.access.authorizers import AuthzDecision
from instar.kube.access.rbac.authorizer import RbacAuthorizer
from instar.kube.access.rbac.policy import RbacPolicy
from instar.kube.admission import match_conditions
from instar.kube.admission.evaluation import ExpressionInputs, Meter
from instar.kube.apply import field_set, managed_fields, managers
from instar.kube.apply.managed_fields import ManagedFieldsEntry
from instar.kube.apply.ownership_schema import compile_schema
from instar.kube.cel.library import standard
from instar.kube.schema.cel_rules import compile as compiling
from instar.kube.schema.structure.parse import structural
from instar.server.registry.stored import object_bytes
from tests.support.sources import parsed

BY_NUMBER = {
    # name: why its entries are small, or few
    "instar.kube.api.string_rules._is_label": "asked for labels of legal length only",
    "instar.kube.api.string_rules._is_usual_name": "asked for names of legal length only",
    "instar.kube.api.string_rules._is_usual_value": "asked for values of legal length only",
    "instar.kube.apply.managed_fields._parsed_text": "texts up to 16 KiB",
    "instar.kube.apply.field_set._canonical": "texts up to 256 characters",
    "instar.kube.apply.field_set._canonical_scalar": "texts up to 256 characters",
    "instar.kube.protobuf.special_types.read": "messages up to 64 bytes",
    "instar.kube.protobuf.special_types.write_micro_time": "canonical times",
    "instar.kube.protobuf.special_types.write_time": "canonical times",
    "instar.kube.quantities._canonical": "texts up to a few hundred characters; others raise",
    "instar.kube.builtin_rules.pods.compute_resources.quantity_value": "canonical quantities",
    "instar.kube.pod_security.evaluation._checks": "three levels of 37 versions",
    "instar.server.registry.stored.object_bytes._shared": "up to 16 labels of legal length",
    "instar.server.registry.stored.object_bytes.labels_of": "texts of at most 1 kB",
    "instar.base.http2.huffman._decode": "texts up to 256 bytes",
    "instar.server.http.http2.heads._field": "names and values up to 256 bytes",
    "instar.wire.rpc.headers.read": "blocks up to 16 KiB, of the server we chose",
    "instar.wire.rpc.channel._timeout": "a number in, a dozen bytes out",
    "instar.kube.schema.generation.leaves._patterned": "not in the server",
    "instar.kube.schema.validation.pattern_automata._automaton": "not in the server",
    "instar.kube.schema.validation.pattern_automata.sample_texts": "not in the server",
    "instar.tools.console.views.rules.rules": "has no argument",
    "instar.kube.models.reading.docstrings._module_descriptions": "not in the server",
    "instar.kube.schema.validation.patterns._occurs": "texts up to 64 characters",
    "instar.kube.schema.validation.scalars._type_check": "names up to 64 characters",
    "instar.tools.sdk.typed._members": "types of a program",
    "instar.kube.schema.metadata.object_meta._is_canonical_time": "texts of 20 characters",
    "instar.server.rest.negotiate._clauses": "headers up to 256 characters",
    "instar.server.rest.negotiate._found_form": "headers up to 256 characters",
    "instar.server.rest.options.manager_from_user_agent": "headers up to 256 characters",
}
"""Results kept by their number (``lru_cache``). What is kept without any bound (``cache``) is made
of our own facts and files."""


def test_caches_bounded_by_number_hold_only_small_values() -> None:
    found = {f"{module}.{name}" for module, name in kept_by_number()}
    assert found == set(BY_NUMBER)


def kept_by_number() -> list[tuple[str, str]]:
    root = Path(instar.__file__).parent
    found: list[tuple[str, str]] = []
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        tree = parsed(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any(map(_is_lru, node.decorator_list)):
                found.append((module, node.name))
            if isinstance(node, ast.Call) and _is_lru(node.func) and node.args:
                found.append((module, ast.unparse(node.args[0])))
    return found


def _is_lru(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("lru_cache")


def test_over_the_weight_limit_the_oldest_entries_are_evicted() -> None:
    memory: WeightedLru[str, int] = WeightedLru(10)
    memory.put("a", 1, 4)
    memory.put("b", 2, 4)
    memory.get("a")

    memory.put("c", 3, 4)

    assert [memory.get(key) for key in "abc"] == [1, None, 3]


def test_an_entry_above_the_limit_is_not_kept_and_evicts_no_other() -> None:
    memory: WeightedLru[str, int] = WeightedLru(10)
    memory.put("a", 1, 4)

    assert memory.put("huge", 2, 11) == 2

    assert [memory.get(key) for key in ("a", "huge")] == [1, None]


def test_rules_on_large_types_are_not_kept_by_their_number() -> None:
    def schema(number: int) -> dict[str, Any]:
        fields = {f"f{number}x{at}": {"type": "string"} for at in range(2000)}
        rules = [{"rule": "size(self) >= 0"}]
        return {"type": "object", "properties": fields, "x-kubernetes-validations": rules}

    for number in range(150):
        assert compiling.build(structural(schema(number)), root=False) is not None

    assert 100_000 < compiling._COMPILED.weight <= compiling._MAX_CACHE_WEIGHT
    assert 100_000 < compiling._DECLARED.weight <= compiling._MAX_CACHE_WEIGHT


def test_long_spellings_are_not_kept() -> None:
    before = field_set._known_spelling.cache_info().currsize
    long = "x" * 100_000
    assert field_set.value_element(long) == f'v:"{long}"'
    assert field_set.parse({f'v:"{long}"': {}}) == {f'v:"{long}"': field_set.LEAF}
    assert field_set._known_spelling.cache_info().currsize == before


def test_large_sets_of_fields_are_not_kept() -> None:
    before = managed_fields._parsed_text.cache_info().currsize
    raw: dict[str, Any] = {f"f:{at}": {} for at in range(10_000)}
    assert sys.getsizeof(managed_fields._parsed(raw)) > 0
    assert managed_fields._parsed_text.cache_info().currsize == before


def test_large_sets_are_not_kept_by_the_schema_they_were_reconciled_with() -> None:
    schema = compile_schema(structural({"type": "object"}))
    large: dict[str, Any] = {f"f:{at}": field_set.LEAF for at in range(10_000)}
    for fields in (large, {"f:a": field_set.LEAF}):
        managers.reconcile(ManagedFieldsEntry(fields, "g/v1", ""), {"g/v1": schema})
    assert len(schema.reconciled) == 1


def test_labels_are_shared_only_where_they_are_few() -> None:
    before = object_bytes._shared.cache_info().currsize
    many = {f"label{at}": "x" for at in range(1_000)}
    assert object_bytes.share_labels(many) is many
    assert object_bytes._shared.cache_info().currsize == before


def test_patterns_that_data_brings_are_kept_by_weight() -> None:
    for number in range(200):
        assert standard.matches("a", f"a|{number}" + "b" * 2_000)
    assert standard._PATTERNS.weight <= 16 << 20
    assert len(standard._PATTERNS) < 200


def test_conditions_of_thousands_of_webhooks_are_compiled_once() -> None:
    texts = [f"object.metadata.name == 'name-{at}'" for at in range(2_000)]
    inputs = ExpressionInputs.of({"object": {"metadata": {"name": "name-7"}}})

    def judged() -> list[bool]:
        found = (match_conditions.Conditions((text,)).match(Meter(), inputs) for text in texts)
        return [each.holds for each in found]

    assert judged().count(True) == 1
    made = [match_conditions._KEPT.get((text, False)) for text in texts]
    judged()
    assert None not in made
    assert [match_conditions._KEPT.get((text, False)) for text in texts] == made


def test_a_question_about_very_many_groups_is_answered_and_forgotten() -> None:
    policy = RbacPolicy()
    policy.put_role(
        ("", "r"), {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}
    )
    subjects = [{"kind": "Group", "name": "g77777"}]
    role = {"kind": "ClusterRole", "name": "r"}
    policy.put_binding(("", "b"), {"roleRef": role, "subjects": subjects})
    authorizer = RbacAuthorizer(lambda: policy)
    groups = tuple(f"g{at}" for at in range(100_000))
    asked = Attributes(User("u", groups), "get", "", "v1", "pods", "", "n", "x", "/")
    few = asked._replace(user=User("u", ("g77777",)))
    assert authorizer.decide(asked) == authorizer.decide(few)
    assert _decided(authorizer, asked).allowed
    assert len(authorizer._known) == 1


def test_decisions_that_depend_on_very_many_names_are_not_all_kept() -> None:
    policy = RbacPolicy()
    names = [f"n{at}" for at in range(30_000)]
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": names}
    policy.put_role(("", "r"), {"rules": [rule]})
    role, subject = {"kind": "ClusterRole", "name": "r"}, {"kind": "User", "name": "u"}
    policy.put_binding(("", "b"), {"roleRef": role, "subjects": [subject]})
    authorizer = RbacAuthorizer(lambda: policy)
    for at in range(20):
        asked = Attributes(User("u"), "get", "", "v1", "pods", "", f"ns{at}", "n5", "/")
        assert _decided(authorizer, asked).allowed
    assert len(authorizer._known) < 10


def _decided(authorizer: RbacAuthorizer, asked: Attributes) -> AuthzDecision:
    decision = authorizer.decide(asked)
    assert decision is not None
    return decision

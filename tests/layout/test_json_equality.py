"""JSON values are compared and hashed by ``instar/base/json_values.py`` alone: in Python ``True``,
``1`` and ``1.0`` are equal, in kube-apiserver they are not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.layout.json_equality import JsonComparisons, json_comparisons

ROOT = Path(__file__).resolve().parents[2] / "instar"
TYPED = "fields of a built-in kind, which the decoder has given one Go type each"
TEXTS = "texts only: names, kinds, versions, or keys of an object"
LISTED = {
    "base/json_values.py": "the place itself",
    "kube/cel/": "CEL has its own equality, which tells a bool from a number",
    "kube/builtin_rules/": TYPED,
    "server/registry/kinds/": TYPED,
    "server/registry/admission/": TYPED,
    "server/registry/controllers/roles/": TYPED,
    "kube/schema/metadata/rules.py": "metadata, which was decoded as ObjectMeta",
    "kube/schema/validation/ratchet.py": "scalars of one class, which was compared before",
    "kube/apply/compare.py": "only skips the walk; what is loose is compared by same_json_numbers",
    "kube/patches/strategic_lists.py": "scalars of one type, which was checked before",
    "kube/admission/policies/type_checking.py": TEXTS,
    "kube/crds/": TEXTS,
    "server/audit/policy.py": TEXTS,
    "server/identity/oidc/flags_set.py": TEXTS,
    "server/registry/verbs/conflicts.py": TEXTS,
    "tools/console/jobs/checking.py": TEXTS,
    "tools/reviewer/config.py": TEXTS,
    "tools/reviewer/renames.py": TEXTS,
    "tools/reviewer/rules/values.py": "enum values by their JSON text",
    "tools/reviewer/witnesses/samples.py": TEXTS,
    "tools/sdk/manifests/documents.py": TEXTS,
    "tools/nodes/": TEXTS,
    "tools/sdk/typed.py": TEXTS,
    "tools/suites/": TEXTS,
    "tools/adopter/": TEXTS,
    "tools/upgrader/": TEXTS,
    "wire/conversion/contract.py": TEXTS,
}


def test_json_values_are_compared_in_one_place() -> None:
    found = [
        f"{module}:{line}: {text}"
        for module, line, text in json_comparisons(ROOT)
        if not module.startswith(tuple(LISTED))
    ]

    assert not found, "use same_json, is_among or json_key:\n" + "\n".join(found)


def test_every_listed_exception_is_needed() -> None:
    modules = {module for module, _, _ in json_comparisons(ROOT)}

    unused = [each for each in LISTED if not any(module.startswith(each) for module in modules)]

    assert not unused


@pytest.mark.parametrize(
    "body",
    [
        "return new == old",
        "return new['spec'] != old.get('spec')",
        "return any(new in (old.get('items') or ()) for _ in '')",
        "return set(new['items'])",
        "return {item for item in old['items']}",
        "for name, value in new.items():\n        if value != old[name]:\n            return name",
        "one, other = new.get('a'), old.get('a')\n    return one == other",
    ],
)
def test_a_comparison_of_json_values_is_found(body: str) -> None:
    visitor = JsonComparisons()

    visitor.visit(ast.parse(f"def judge(new: Object, old: Object) -> Any:\n    {body}\n"))

    assert visitor.found


def test_a_comparison_with_a_text_or_a_member_name_is_not() -> None:
    visitor = JsonComparisons()

    visitor.visit(
        ast.parse(
            "def judge(new: Object, name: str) -> bool:\n"
            "    return name in new or new['kind'] == 'Foo' or new.get('a') is None\n"
        )
    )

    assert not visitor.found

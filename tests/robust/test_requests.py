"""Requests that once stopped the server for everybody; each is sent while /livez is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.robust.conftest import GROUP, THINGS, thing
from tests.robust.victim import Victim

YAML, MERGE, JSON_PATCH, APPLY, STRATEGIC = (
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
)
HEAD = f"apiVersion: {GROUP}/v1\nkind: Thing\nmetadata: {{generateName: x-}}\n"
BROKEN = {
    "escaped quotes": b'{"a":"' + b'\\"' * 1_400_000,
    "digits": b'{"a":' + b"1" * 2_800_000,
    "commas": b"[" + b'"",' * 900_000,
    "half an escape": b'{"a":"' + b"\\u12" * 700_000,
}
HEAVY_YAML = {
    "sixties": HEAD + "spec: {texts: [" + "1:" * 300_000 + "1]}",
    "one line": HEAD + "spec: {texts: [" + "a," * 500_000 + "]}",
    "many lines": HEAD + "spec:\n  texts:\n" + "  - a\n" * 170_000,
    "merged": "a0: &a0 {k0: 1, k1: 1, k2: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12)),
    "tags": "".join(f"%TAG !h{n}! x\n" for n in range(150_000)),
    "deep": "- " * 1_000_000,
    "flow": "[" * 3_000_000,
    "wide keys": HEAD + "spec:\n  map:\n" + "".join(f"    k{n}: v\n" for n in range(100_000)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_json(victim: Victim, name: str) -> None:
    with victim.watched():
        answer = victim.request("POST", THINGS, BROKEN[name])
    assert answer.status == 400


@pytest.mark.parametrize("name", HEAVY_YAML)
def test_heavy_yaml(victim: Victim, name: str) -> None:
    body = HEAVY_YAML[name].encode()
    with victim.watched():
        answer = victim.request("POST", THINGS + "?dryRun=All", body, content_type=YAML)
    assert answer.status in (201, 400), answer.text[:300]


@pytest.mark.parametrize(
    "selector",
    ["a" + "+" * 60_000, "a+in+(" + "," * 60_000, "a=b," * 15_000, "a%3E" + "0" * 60_000],
)
@pytest.mark.parametrize("kind", ["label", "field"])
def test_selectors(victim: Victim, kind: str, selector: str) -> None:
    with victim.watched():
        answer = victim.request("GET", f"{THINGS}?{kind}Selector={selector}")
    assert answer.status in (200, 400)


def many(count: int, item: str) -> str:
    return "[" + ",".join([item] * count) + "]"


def body_with(spec: str, metadata: str = '{"generateName":"x-"}') -> bytes:
    text = f'{{"apiVersion":"{GROUP}/v1","kind":"Thing","metadata":{metadata},"spec":{spec}}}'
    return text.encode()


LABELS = "{" + ",".join(f'"-{n}":"!"' for n in range(80_000)) + "}"
HEAVY_JSON = {
    "floats": body_with('{"numbers":' + many(750_000, "1.5") + "}"),
    "whole floats": body_with('{"numbers":' + many(750_000, "1.0") + "}"),
    "large numbers": body_with('{"numbers":' + many(140_000, "1" * 20) + "}"),
    "invalid items": body_with('{"whole":' + many(300_000, '"x"') + "}"),
    "unknown fields": body_with("{" + ",".join(f'"u{n}":1' for n in range(250_000)) + "}"),
    "duplicate fields": body_with('{"map":{' + ",".join(['"a":"b"'] * 300_000) + "}}"),
    "spaced duplicates": body_with('{"map":{' + ",".join(['"a" :"b"'] * 300_000) + "}}"),
    "a long duration": body_with('{"wait":"' + "1" * 2_000_000 + '"}'),
    "bad labels": body_with("{}", f'{{"generateName":"x-","labels":{LABELS}}}'),
    "owners": body_with("{}", '{"generateName":"x-","ownerReferences":['
        + ",".join(f'{{"apiVersion":"v1","kind":"X","name":"n{n}","uid":"u{n}"}}'
                   for n in range(40_000)) + "]}"),
    "finalizers": body_with("{}", '{"generateName":"x-","finalizers":['
        + ",".join(f'"a/f{n}"' for n in range(150_000)) + "]}"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEAVY_JSON)
def test_heavy_json(victim: Victim, name: str) -> None:
    assert len(HEAVY_JSON[name]) < 3 << 20
    with victim.watched():
        query = "?dryRun=All" if "fields" not in name else "?dryRun=All&fieldValidation=Strict"
        answer = victim.request("POST", THINGS + query, HEAVY_JSON[name])
    assert answer.status in (201, 400, 422), answer.text[:300]


def created(victim: Victim, name: str, **spec: Any) -> None:
    answer = victim.request("POST", THINGS, thing(name, **spec))
    assert answer.status == 201, answer.text[:300]


def test_json_patches_at_the_front_of_a_long_list(victim: Victim) -> None:
    created(victim, "long-list", whole=list(range(300_000)))
    patch = json.dumps([{"op": "add", "path": "/spec/whole/0", "value": 1}] * 10_000)
    with victim.watched():
        answer = victim.request("PATCH", f"{THINGS}/long-list", patch, content_type=JSON_PATCH)
    assert answer.status == 200, answer.text[:300]
    victim.request("DELETE", f"{THINGS}/long-list")


def test_apply_on_many_owned_fields(victim: Victim) -> None:
    owned = {f"k{n}": "v" for n in range(170_000)}
    body = json.dumps(thing("owned", map=owned))
    with victim.watched():
        for value in ("v", "w"):
            answer = victim.request(
                "PATCH",
                f"{THINGS}/owned?fieldManager={value}&force=true",
                body.replace('"k0": "v"', f'"k0": "{value}"'),
                content_type=APPLY,
            )
            assert answer.status in (200, 201), answer.text[:300]
    victim.request("DELETE", f"{THINGS}/owned")


def test_merge_patches_of_many_fields(victim: Victim) -> None:
    created(victim, "patched", map={f"k{n}": "v" for n in range(100_000)})
    patch = json.dumps({"spec": {"map": {f"k{n}": None for n in range(0, 100_000, 2)}}})
    with victim.watched():
        answer = victim.request("PATCH", f"{THINGS}/patched", patch, content_type=MERGE)
    assert answer.status == 200, answer.text[:300]
    victim.request("DELETE", f"{THINGS}/patched")


@pytest.mark.parametrize(
    "accept",
    [YAML, "application/json;as=Table;g=meta.k8s.io;v=v1", f"{YAML};as=Table;g=meta.k8s.io;v=v1"],
)
def test_large_answers_in_other_forms(victim: Victim, accept: str) -> None:
    name = f"large-{abs(hash(accept))}"
    created(victim, name, whole=list(range(300_000)))
    with victim.watched():
        for path in (f"{THINGS}/{name}", THINGS, f"{THINGS}/{name}?pretty=true"):
            answer = victim.request("GET", path, headers={"Accept": accept})
            assert answer.status == 200, answer.text[:300]
    victim.request("DELETE", f"{THINGS}/{name}")


@pytest.mark.parametrize("depth", [600, 400])
def test_deep_patches_with_large_numbers(victim: Victim, depth: int) -> None:
    created(victim, f"deep-{depth}", free={})
    nested = '{"a":' * depth + "1" * 20 + "}" * depth
    with victim.watched():
        answer = victim.request(
            "PATCH",
            f"{THINGS}/deep-{depth}",
            f'{{"spec":{{"free":{nested}}}}}',
            content_type=MERGE,
        )
    assert answer.status == 400, answer.text[:300]
    assert "exceeded max depth" in answer.json["message"]

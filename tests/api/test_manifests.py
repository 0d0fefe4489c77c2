"""Manifests as every tool reads them: streams, lists, lines, and Kubernetes' idea of YAML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.api.encoding.manifests import (
    Document,
    UnreadableManifest,
    chunks,
    documents,
    members,
    only_document,
)

STREAM = """\
# a comment

kind: First
---
kind: Second
spec:
  when: 2024-02-30
...
%YAML 1.1
---
kind: Third
---
{"kind": "Fourth", "spec": {"face": "\\ud83d\\ude00"}}
---
---
kind: ThingList
items:
- kind: Fifth
  spec: {a: 1}
"""


def read(text: str) -> list[Document]:
    return [each for document in documents(text, "a.yaml") for each in members(document)]


def test_every_document_and_every_member_of_a_list_is_found_with_its_line() -> None:
    found = read(STREAM)

    assert [(each.value["kind"], each.line) for each in found] == [
        ("First", 3),
        ("Second", 5),
        ("Third", 11),
        ("Fourth", 12),
        ("Fifth", 18),
    ]
    assert {each.file for each in found} == {"a.yaml"}


def test_a_place_that_is_not_written_out_is_at_the_nearest_one_around_it() -> None:
    [_, second, *_, fifth] = read(STREAM)

    assert second.find(("spec", "when")) == (7, 2)
    assert second.find(("spec", "gone", 3)) == (6, 1)
    assert fifth.find(("spec", "a")) == (19, 2)
    assert Document({}, "kube:x").find(("spec",)) == (0, 0)


def test_json_is_read_as_json_and_dates_are_text() -> None:
    [_, second, _, fourth, _] = read(STREAM)

    assert second.value["spec"]["when"] == "2024-02-30"
    assert fourth.value["spec"]["face"] == "\N{GRINNING FACE}"


def test_a_mapping_in_yaml_may_begin_like_json() -> None:
    assert only_document("{a: b, c: [d]}", "x") == {"a": "b", "c": ["d"]}


def test_keys_are_text_unless_the_reader_wants_their_types() -> None:
    text = "true: a\n1: b\nx: c\n"

    assert only_document(text, "x") == {"true": "a", "1": "b", "x": "c"}
    assert only_document(text, "x", typed_keys=True) == {1: "b", "x": "c"} | {True: "b"}


def test_a_parse_error_names_file_and_line_of_the_whole_text() -> None:
    found = documents("a: 1\n---\nb: 2\n---\nc: [1,\n  2\nd: }\n", "some/file.yaml")

    assert next(found).value == {"a": 1}
    assert next(found).value == {"b": 2}
    with pytest.raises(UnreadableManifest) as caught:
        next(found)
    assert caught.value.line == 7
    assert str(caught.value).startswith("some/file.yaml:7: not readable as YAML: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000 + "]" * 5000,
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
        "a: .nan",
        "? [a]\n: b",
        "a: \udcff",
        "a: b\n--- |\n c\n%",
    ],
)
def test_no_text_makes_it_fail_otherwise(text: str) -> None:
    with pytest.raises(UnreadableManifest):
        list(documents(text, "x"))


@given(st.lists(st.sampled_from(["---", "...", "%YAML 1.1", "# c", "a: 1", "", "--- b", " ---"])))
def test_the_parts_of_a_text_are_the_text(lines: list[str]) -> None:
    text = "\n".join(lines)

    found = list(chunks(text))

    assert "".join(chunk.text for chunk in found) == text
    for chunk in found:
        position = text.count("\n") - "".join(
            later.text for later in found[found.index(chunk) :]
        ).count("\n")
        assert chunk.before == position

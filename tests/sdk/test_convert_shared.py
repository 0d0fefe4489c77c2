"""Manifests whose parts are shared by anchors, aliases and merge keys, and other people's line
ends: converted to what they mean, comments kept."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from instar.tools.sdk.manifests.documents import rewrite

MERGED = """\
apiVersion: example.com/v1
kind: Widget
metadata:
  name: one
spec:
  <<: &common {size: 1, color: red}
  # why it is blue
  color: blue  # really
"""
ALIASED = """\
apiVersion: v1
kind: List
items:
# the first
- apiVersion: example.com/v1
  kind: Widget
  metadata: {name: one}
  spec: &spec
    size: 1
- apiVersion: example.com/v1
  kind: Widget
  metadata: {name: two}
  spec: *spec
"""


def convert(obj: dict[str, Any]) -> dict[str, Any]:
    """``size`` becomes ``width`` and ``height``."""
    spec = dict(obj["spec"])
    size = spec.pop("size")
    return {**obj, "apiVersion": "example.com/v2", "spec": {**spec, "width": size, "height": size}}


def test_merged_fields_are_converted_as_what_they_mean() -> None:
    result = rewrite(MERGED, convert)

    assert result.problems == []
    assert yaml.safe_load(result.text)["spec"] == {"color": "blue", "width": 1, "height": 1}
    assert "# why it is blue" in result.text
    assert "# really" in result.text


def test_objects_that_share_a_part_are_each_converted() -> None:
    result = rewrite(ALIASED, convert)

    specs = [item["spec"] for item in yaml.safe_load(result.text)["items"]]
    assert result.problems == []
    assert specs == [{"width": 1, "height": 1}] * 2
    assert "# the first" in result.text


@pytest.mark.parametrize("text", [MERGED, ALIASED])
def test_line_ends_are_kept(text: str) -> None:
    result = rewrite(text.replace("\n", "\r\n"), convert)

    assert result.text == rewrite(text, convert).text.replace("\n", "\r\n")


def test_documents_that_need_no_conversion_keep_every_byte() -> None:
    other = "a: &x 1\r\nb: *x   # two\r\n"
    result = rewrite(f"{other}---\r\n{MERGED}", lambda obj: None)

    assert result.text == f"{other}---\r\n{MERGED}"

"""The CRD that ``instar check`` and ``instar.testing`` are given in a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
import yaml

from instar.cli.commands import check
from instar.cli.shared.failure import CliFailure
from instar.testing import read_crd_file
from tests.sdk import planted

HEAD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"


def _args(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    return parser.parse_args(words)


def test_a_date_in_a_crd_is_the_text_it_is_for_kubernetes(tmp_path: Path) -> None:
    path = tmp_path / "crd.yaml"
    text = yaml.safe_dump(planted.CRD)
    path.write_text(text.replace("- fast", "- 2024-01-01"))

    definition = read_crd_file(path)

    assert "2024-01-01" in json.dumps([dict(each.schema or {}) for each in definition.versions])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n---\nb: [", "crd.yaml:4: not readable as YAML"),
        ("kind: ConfigMap", "crd.yaml holds 0 CRDs; it must be one"),
        (f"{HEAD}spec: 7", "not a usable CRD: json: cannot unmarshal number"),
        (f"{HEAD}metadata: 7", "not a usable CRD: json: cannot unmarshal number"),
    ],
)
def test_a_file_without_a_usable_crd_is_reported_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "crd.yaml"
    path.write_text(text)

    with pytest.raises(CliFailure) as caught:
        check.run(_args("--crd", str(path), "--converter", "tests.sdk.planted:unknown_field"))

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)

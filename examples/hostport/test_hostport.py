from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from instar.sdk import ConversionError, load
from instar.testing import assert_converter

HERE = Path(__file__).parent
CONVERSION = str(HERE / "conversion.yaml")


def test_no_law_of_conversion_is_broken() -> None:
    assert_converter(HERE / "crd.yaml", CONVERSION, examples=50)


def test_the_sample_converts_as_expected() -> None:
    sample = yaml.safe_load((HERE / "sample.yaml").read_text())

    [converted] = load(CONVERSION).convert_all([sample], "example.com/v1")

    assert (converted["host"], converted["port"]) == ("localhost", "1234")


def test_a_hostport_without_colon_is_refused() -> None:
    sample = yaml.safe_load((HERE / "sample.yaml").read_text()) | {"hostPort": "localhost"}

    with pytest.raises(ConversionError, match="hostPort could not be parsed"):
        load(CONVERSION).convert_all([sample], "example.com/v1")

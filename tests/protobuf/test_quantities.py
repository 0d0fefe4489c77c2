"""Quantities: the one form each text is kept in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.quantities import QuantityError, canonical_quantity


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        (".5", "500m"),
        ("5.", "5"),
        ("100m", "100m"),
        ("0.0001", "100u"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1000000", "1M"),
        ("12000000", "12M"),
        ("1073741824", "1073741824"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("512", "512"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("2e9", "2e9"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1E", "1E"),
        ("20e8", "2e9"),
        ("1e-3", "1e-3"),
        ("-1", "-1"),
        ("-1.5Gi", "-1536Mi"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("1.0000000001", "1000000001n"),
        ("16Ei", "9223372036854775807"),
        (" 1Gi ", "1Gi"),
        (2.5, "2500m"),
        (3, "3"),
        (1e21, "1e21"),
    ],
)
def test_a_quantity_is_kept_in_its_canonical_form(text: str | float, kept: str) -> None:
    assert canonical_quantity(text) == kept


@pytest.mark.parametrize("text", ["", "a", "1 Gi", "1KiB", "0x1", "1e", "--1", ".", "1" * 2000])
def test_other_texts_are_not_quantities(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        canonical_quantity(text)


def test_a_huge_exponent_costs_no_more_than_a_small_one() -> None:
    assert canonical_quantity("1e1000000000") == "10e999999999"
    assert canonical_quantity("1e-1000000000") == "1e-9"


@given(
    st.from_regex(r"[+-]?[0-9]{1,6}(\.[0-9]{0,4})?(Ki|Mi|Gi|[numkMG]|e[+-]?[0-9])?", fullmatch=True)
)
def test_the_canonical_form_is_its_own(text: str) -> None:
    once = canonical_quantity(text)
    assert canonical_quantity(once) == once

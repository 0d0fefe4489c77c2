"""The string rules shared by names, labels and annotations."""

from __future__ import annotations

import pytest

from instar.kube.api import string_rules

LONG = "must be no more than"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (string_rules.dns1123_label, "a-1"),
        (string_rules.dns1123_subdomain, "1.a-b.c"),
        (string_rules.dns1035_label, "a1-b"),
        (string_rules.qualified_name, "example.com/My.Name_1"),
        (string_rules.qualified_name, "a"),
        (string_rules.label_value, ""),
        (string_rules.label_value, "A.b_c-1"),
        (string_rules.path_segment_name, "...a b"),
    ],
)
def test_valid_texts_earn_nothing(rule: string_rules.TextRule, text: str) -> None:
    assert rule(text) == []


@pytest.mark.parametrize(
    ("rule", "text", "starts"),
    [
        (string_rules.dns1123_label, "a.b", ["must not contain dots"]),
        (string_rules.dns1123_label, "A", ["a lowercase RFC 1123 label must consist of"]),
        (string_rules.dns1123_label, "a" * 64, [f"{LONG} 63 characters"]),
        (
            string_rules.dns1123_subdomain,
            "a..b",
            ["a lowercase RFC 1123 subdomain must consist of"],
        ),
        (string_rules.dns1123_subdomain, "a" * 254, [f"{LONG} 253 characters"]),
        (string_rules.dns1123_subdomain, "a\n", ["a lowercase RFC 1123 subdomain must consist of"]),
        (string_rules.dns1035_label, "1a", ["a DNS-1035 label must consist of"]),
        (string_rules.qualified_name, "a/b/c", ["a valid label key must consist of"]),
        (
            string_rules.qualified_name,
            "/",
            ["prefix part must be non-empty", "name part must be non-empty", "name part must con"],
        ),
        (string_rules.qualified_name, "A_/b", ["prefix part a lowercase RFC 1123 subdomain"]),
        (string_rules.qualified_name, "a" * 64, [f"name part {LONG} 63 bytes"]),
        (string_rules.label_value, "-a", ["a valid label must be an empty string or consist of"]),
        (string_rules.path_segment_name, "..", ["may not be '..'"]),
        (string_rules.path_segment_name, "a/%", ["may not contain '/'", "may not contain '%'"]),
    ],
)
def test_bad_texts_earn_upstreams_messages(
    rule: string_rules.TextRule, text: str, starts: list[str]
) -> None:
    found = rule(text)

    assert len(found) == len(starts)
    for message, start in zip(found, starts, strict=True):
        assert message.startswith(start)

"""String rules shared by names, labels and annotations (DNS labels, qualified names), with
upstream's messages.

Called by metadata validation, selectors, CRD rules and the rules of built-in kinds. Each rule maps
a text to a list of messages; an empty list means valid. Lengths are counted in bytes, as upstream
does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

TextRule = Callable[[str], list[str]]

SUBDOMAIN_MAX = 253
LABEL_MAX = 63

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME_PART})?"

_usual_name = re.compile(
    rf"(?:{_SUBDOMAIN}/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?", re.ASCII
).fullmatch
_usual_value = re.compile("[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII).fullmatch
_label = re.compile(_LABEL, re.ASCII).fullmatch
_subdomain = re.compile(_SUBDOMAIN, re.ASCII).fullmatch
_dns1035 = re.compile(_DNS1035, re.ASCII).fullmatch
_name_part = re.compile(_NAME_PART, re.ASCII).fullmatch
_label_value = re.compile(_LABEL_VALUE, re.ASCII).fullmatch


def too_long_text(most: int, unit: str = "characters") -> str:
    """Return the message. Upstream always counts bytes but names the unit only for labels."""
    return f"must be no more than {most} {unit}"


def regex_text(what: str, pattern: str, *examples: str) -> str:
    """Return upstream's message for a failed pattern; the double space before ``or`` is
    upstream's."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{what} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_TEXT = regex_text(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_TEXT = regex_text(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_DNS1035_TEXT = regex_text(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character",
    _DNS1035,
    "my-name",
    "abc-123",
)
_NAME_PART_TEXT = regex_text(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character",
    _NAME_PART,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_TEXT = regex_text(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def dns1123_label(text: str) -> list[str]:
    """Return why a text is not a DNS label; empty if it is one."""
    found = _length(text, LABEL_MAX)
    if _label(text) is None:
        found.append("must not contain dots" if _subdomain(text) else _LABEL_TEXT)
    return found


def dns1123_subdomain(text: str) -> list[str]:
    """Return why a text is not a DNS subdomain; empty if it is one."""
    if len(text) * 4 <= SUBDOMAIN_MAX and _subdomain(text) is not None:
        return []  # saves a call for names, of which every write has two
    found = _length(text, SUBDOMAIN_MAX)
    if _subdomain(text) is None:
        found.append(_SUBDOMAIN_TEXT)
    return found


def dns1035_label(text: str) -> list[str]:
    """Return why a text is not a DNS label that begins with a letter; empty if it is one."""
    found = _length(text, LABEL_MAX)
    if _dns1035(text) is None:
        found.append(_DNS1035_TEXT)
    return found


@lru_cache(maxsize=4096)
def _is_usual_name(text: str) -> bool:
    """Return whether the key is certainly valid. Cached, because most writes have the same few
    keys."""
    return _usual_name(text) is not None


@lru_cache(maxsize=4096)
def _is_usual_value(text: str) -> bool:
    return _usual_value(text) is not None


def is_usual_pair(name: str, value: str) -> bool:
    """Return whether a label is certainly valid, by a cached check without messages."""
    return (
        len(name) <= SUBDOMAIN_MAX
        and len(value) <= LABEL_MAX
        and _is_usual_name(name)
        and _is_usual_value(value)
    )


def is_usual_label(text: str) -> bool:
    """Return whether a DNS label is certainly valid. Cached, because every object has a
    namespace."""
    return len(text) <= LABEL_MAX and _is_label(text)


@lru_cache(maxsize=1024)
def _is_label(text: str) -> bool:
    return _label(text) is not None


def qualified_name(text: str) -> list[str]:
    """Check a label or annotation key: a name, optionally after a DNS subdomain and a slash."""
    if len(text) <= SUBDOMAIN_MAX and _is_usual_name(text):
        return []
    prefix, slash, name = text.rpartition("/")
    found: list[str] = []
    if slash:
        if "/" in prefix:
            return [
                f"a valid label key {_NAME_PART_TEXT} with an optional DNS subdomain prefix "
                "and '/' (e.g. 'example.com/MyName')"
            ]
        reasons = dns1123_subdomain(prefix) if prefix else ["must be non-empty"]
        found.extend(f"prefix part {reason}" for reason in reasons)
    if not name:
        found.append("name part must be non-empty")
    found.extend(f"name part {reason}" for reason in _length(name, LABEL_MAX, "bytes"))
    if _name_part(name) is None:
        found.append(f"name part {_NAME_PART_TEXT}")
    return found


def label_value(text: str) -> list[str]:
    """Return why a text cannot be the value of a label; empty if it can."""
    if len(text) <= LABEL_MAX and _is_usual_value(text):
        return []
    found = _length(text, LABEL_MAX, "bytes")
    if _label_value(text) is None:
        found.append(_LABEL_VALUE_TEXT)
    return found


def path_segment_name(text: str) -> list[str]:
    """Check a name that is one segment of a URL path."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return path_segment_prefix(text)


def path_segment_prefix(text: str) -> list[str]:
    return [f"may not contain '{char}'" for char in "/%" if char in text]


def _length(text: str, most: int, unit: str = "characters") -> list[str]:
    # A character takes at most four bytes, so short texts need no encoding.
    if len(text) * 4 <= most or len(text.encode("utf-8", "surrogatepass")) <= most:
        return []
    return [too_long_text(most, unit)]

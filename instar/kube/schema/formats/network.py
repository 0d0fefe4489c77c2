"""Validators of network formats: addresses, host names, URIs and mail addresses, as Go parses them.

Called by ``named.py``.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from instar.kube.cel.go_url import parse_request_uri

_MAC = re.compile(
    r"([0-9a-f]{2}([:-])[0-9a-f]{2}(\2[0-9a-f]{2}){4}((\2[0-9a-f]{2}){2}|(\2[0-9a-f]{2}){14})?)"
    r"|[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40}"
    r"|([0-9a-f]{4}\.[0-9a-f]{4}(\.[0-9a-f]{4}){1}((\.[0-9a-f]{4}){1}|(\.[0-9a-f]{4}){7})?)",
    re.ASCII | re.IGNORECASE,
)
_ATOM_CHARS = r"A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\u0080-\U0010ffff"
_ATOM = f"[{_ATOM_CHARS}]+"
_DOT_ATOM = rf"{_ATOM}(?:\.{_ATOM})*"
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\x20-\x7e\t])*"'
# Kept as text: compiling these large character classes would slow down every start.
_ADDRESS = rf"(?:{_DOT_ATOM}|{_QUOTED})@(?:{_DOT_ATOM}|\[[^\[\]\\\x00-\x20]+\])"
_DISPLAY_NAME = rf"(?:[{_ATOM_CHARS}. \t]|{_QUOTED})*"


def is_ipv4(text: str) -> bool:
    return "." in text and _is_address(text)


def is_ipv6(text: str) -> bool:
    return ":" in text and _is_v6(text)


def is_cidr(text: str) -> bool:
    address, slash, size = text.partition("/")
    if not slash or not size.isascii() or not size.isdigit() or len(size) > 9:
        return False
    if ":" in address:
        return _is_v6(address, tolerant=True) and int(size) <= 128
    return _is_v4(address) and int(size) <= 32


def is_mac(text: str) -> bool:
    return _MAC.fullmatch(text) is not None


def is_hostname(text: str) -> bool:
    encoded = text.encode("utf-8", "replace")
    if not text or len(encoded) > 255:
        return False
    labels = text.split(".")
    if any(len(label.encode("utf-8", "replace")) > 63 for label in labels):
        return False
    if len(labels) == 1:
        return _is_single_label(text)
    return all(map(_is_inner_label, labels[:-1])) and _is_top_label(labels[-1])


def is_request_uri(text: str) -> bool:
    """Return whether Go's ParseRequestURI accepts it: an absolute URI or an absolute path."""
    try:
        parse_request_uri(text)
    except ValueError:
        return False
    return True


def is_email(text: str) -> bool:
    """Return whether it is a mail address, bare or after a display name."""
    bare = text.strip(" \t")
    if re.fullmatch(_ADDRESS, bare):
        return True
    if not bare.endswith(">"):
        return False
    name, opening, address = bare[:-1].rpartition("<")
    return bool(opening) and bool(re.fullmatch(_ADDRESS, address)) and _is_display_name(name)


def _is_display_name(name: str) -> bool:
    return re.fullmatch(_DISPLAY_NAME, name.strip(" \t")) is not None


def _is_address(text: str) -> bool:
    return _is_v6(text, tolerant=True) if ":" in text else _is_v4(text)


def _is_v4(text: str) -> bool:
    """Return whether it is dotted decimal; leading zeros are allowed."""
    parts = text.split(".")
    return len(parts) == 4 and all(
        part.isascii() and part.isdigit() and int(part[-9:]) <= 255 and len(part) < 10
        for part in parts
    )


def _is_v6(text: str, *, tolerant: bool = False) -> bool:
    head, colon, tail = text.rpartition(":")
    if "." in tail:
        if not (_is_v4(tail) if tolerant else _is_strict_v4(tail)):
            return False
        text = f"{head}{colon}1.2.3.4"
    if "%" in text:
        return False
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def _is_strict_v4(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def _is_letter(char: str) -> bool:
    """Return whether it is a letter, digit or symbol, which the middle of a host name may
    contain."""
    return (char.isascii() and char.isalnum()) or unicodedata.category(char)[0] in "SL"


def _is_single_label(text: str) -> bool:
    """Return whether it is one label with at most one hyphen, after the first character."""
    first, rest = text[0], text[1:].removeprefix("-")
    return _is_letter(first) and len(rest) <= 62 and all(map(_is_letter, rest))


def _is_inner_label(label: str) -> bool:
    return (
        0 < len(label) <= 63
        and _is_letter(label[0])
        and _is_letter(label[-1])
        and all(char == "-" or _is_letter(char) for char in label)
    )


def _is_top_label(label: str) -> bool:
    return 2 <= len(label) <= 63 and all(
        (char.isascii() and char.isalpha()) or unicodedata.category(char)[0] == "L"
        for char in label
    )

"""IP address and prefix parser with the rules and error messages of Go's netip.

Called by the IP and CIDR functions and by ``go_url.py``.
"""

from __future__ import annotations

import ipaddress

from instar.base.field_errors import go_quote

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_MAX_LENGTH = 64
"""More characters than any address has, except with a long zone."""


def parse_address(text: str) -> tuple[Address, str]:
    """Return the address and its zone. Raises ValueError with Go's message."""
    found = read_address(text)
    if found is None:
        problem, at = _problem(text)
        place = f" (at {go_quote(at)})" if at else ""
        raise ValueError(f"ParseAddr({go_quote(text)}): {problem}{place}")
    return found


def read_address(text: str) -> tuple[Address, str] | None:
    """Return the address and its zone, or None."""
    bare, percent, zone = text.partition("%")
    if len(bare) > _MAX_LENGTH or (percent and not zone):
        return None
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    return None if zone and address.version == 4 else (address, zone)


def parse_prefix(text: str) -> tuple[Address, int]:
    """Return the address with its host bits and the number of bits. Raises ValueError with Go's
    message."""
    shown = f"netip.ParsePrefix({go_quote(text)})"
    head, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError(f"{shown}: no '/'")
    try:
        address, zone = parse_address(head)
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from None
    if zone:
        raise ValueError(f"{shown}: IPv6 zones cannot be present in a prefix")
    number = bits.isascii() and bits.isdigit() and len(bits) <= 18
    if not number or (len(bits) > 1 and bits[0] == "0"):
        raise ValueError(f"{shown}: bad bits after slash: {go_quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise ValueError(f"{shown}: prefix length out of range")
    return address, int(bits)


def _problem(text: str) -> tuple[str, str]:
    """Return the error of an invalid address, and the position."""
    for char in text:
        if char == ".":
            return _v4_problem(text)
        if char == ":":
            return _v6_problem(text)
        if char == "%":
            return "missing IPv6 address", ""
    return "unable to parse IP", ""


def _v4_problem(text: str) -> tuple[str, str]:
    value, field = "", 0  # never more than three digits
    for at, char in enumerate(text):
        if "0" <= char <= "9":
            if value == "0":
                return "IPv4 field has octet with leading zero", ""
            value += char
            if int(value) > 255:
                return "IPv4 field has value >255", ""
        elif char == ".":
            if at in (0, len(text) - 1) or text[at - 1] == ".":
                return "IPv4 field must have at least one digit", text[at:]
            if field == 3:
                return "IPv4 address too long", ""
            value, field = "", field + 1
        else:
            return "unexpected character", text[at:]
    return "IPv4 address too short", ""


def _v6_problem(text: str) -> tuple[str, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        return "zone must be a non-empty string", ""
    gap = rest.startswith("::")
    rest, groups = rest[2:] if gap else rest, 0
    while groups < 8:
        digits = _hex_digits(rest)
        if digits > 4:
            return "each group must have 4 or less digits", rest
        if digits == 0:
            return "each colon-separated field must have at least one digit", rest
        if rest[digits : digits + 1] == ".":
            return _embedded_problem(rest, groups, gap)
        groups, rest = groups + 1, rest[digits:]
        if not rest:
            break
        if rest[0] != ":":
            return "unexpected character, want colon", rest
        if len(rest) == 1:
            return "colon must be followed by more characters", rest
        rest = rest[1:]
        if rest[0] == ":":
            if gap:
                return "multiple :: in address", rest
            gap, rest = True, rest[1:]
            if not rest:
                break
    if rest:
        return "trailing garbage after address", rest
    if groups == 8 and gap:
        return "the :: must expand to at least one field of zeros", ""
    return "address string too short", ""


def _embedded_problem(rest: str, groups: int, gap: bool) -> tuple[str, str]:
    if not gap and groups != 6:
        return "embedded IPv4 address must replace the final 2 fields of the address", rest
    if groups > 6:
        return "too many hex fields to fit an embedded IPv4 at the end of the address", rest
    return _v4_problem(rest)


def _hex_digits(text: str) -> int:
    count = 0
    while count < len(text) and count < 5 and text[count] in "0123456789abcdefABCDEF":
        count += 1
    return count

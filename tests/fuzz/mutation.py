"""Changes that make a good value, text or string of bytes into one that may hurt.

Pure, and decided by the ``Random`` handed in: a seed makes the same changes again.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Place = tuple[Any, Any]
"""A container and the key or index in it."""

_DIGITS = "1" * 5000
_MUCH = 2000
INTERESTING: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, -(2**63) - 1, 10**30, 1.5, 1e308, 5e-324,
    -0.0,
    "", " ", "a", "-", ".", "/", "\x00", "\n", "é", "😀", "\u2028", "a/b/c", "..", "NaN", "1e400",
    "1h", "-1ns", "0.5", "1Ki", "12e3", "1:1:1", _DIGITS, "9" * 20, "2024-01-01T00:00:00Z",
    "0000-00-00T00:00:00Z", "10.0.0.1/33", "::1", "x" * 300, "*", "$", "{}", "[]",
    [], {}, [None], [[]], [{}], {"": None}, {"a": {"a": {}}}, ["a", "a"], {"$patch": "delete"},
)  # fmt: skip
WORDS = (
    "metadata", "name", "namespace", "spec", "status", "items", "kind", "apiVersion", "labels",
    "annotations", "finalizers", "ownerReferences", "managedFields", "deletionTimestamp", "uid",
    "resourceVersion", "generation", "generateName", "selfLink", "creationTimestamp", "fieldsV1",
    "f:spec", "k:{\"a\":1}", "v:1", "i:0", ".", "$patch", "$retainKeys", "$setElementOrder/ports",
    "$deleteFromPrimitiveList/finalizers", "$ref", "type", "properties", "default", "data",
    "matchLabels", "matchExpressions", "template", "containers", "ports", "rules", "webhooks",
)  # fmt: skip
TOKENS: dict[str, Sequence[str]] = {
    "json": ("{", "}", "[", "]", ",", ":", '"', "\\", "\\u", "\\ud800", "1e", "-", "null", "tru",
             '{"a":', "[[[[", '"":', "\x00", "\t", "1" * 400, "0.0", "E+"),
    "yaml": ("- ", ": ", "? ", "&a ", "*a", "<<: ", "!!int ", "!!binary ", "!x ", "%TAG ! x\n",
             "---\n", "...\n", "|\n", ">-\n", "# ", "[", "{", "'", '"', "\t", "\n", "1:1:1",
             "0x", "~", ".nan", "2001-01-01", "{<<: 1}", "{? }", "@", "`", "\\x", "\u2028"),
    "cel": ("self", "oldSelf", ".all(x, ", ".map(x, ", ".exists(", "has(", "(", ")", "[", "]", "{",
            "}", ".", ",", "?", ":", "&&", "||", "!", "==", "<=", "+", "-", "*", "/", "%", " in ",
            "'", '"', "r'", "b'", "0x", "1u", "1e9", "9223372036854775807", "duration('1h')",
            "timestamp('", "quantity('1Ki')", "cidr('", "ip('", "semver('", "url('", ".matches('",
            ".find('", ".split(", ".join(", ".format([", "optional.of(", ".orValue(", "?.", "[?",
            "sets.contains(", "math.greatest(", "cel.bind(x, ", "size(", "int(", "string(", "type(",
            "dyn(", "bytes(", "double(", ".isSorted()", ".transformMap(k, v, ", "format.named('",
            "int('", "isQuantity('", "`a`", "\\", "//", "\n", "self." * 40, "(" * 60, "1+" * 80),
    "jsonpath": (".", "[", "]", "[*]", "[0]", "[-1]", "[0:6:0]", "[1:", "..", "?(@.", ")", "'", '"',
                 "\\", "{", "}", "*", "==", "$", "@", "[?(@.a==1)]", "range ", "end", ".spec",
                 "[0]" * 90, " " * 200, "['a']", "\\x", ",", "[,]", "0x", "1e9"),
    "selector": ("=", "==", "!=", "!", " in ", " notin ", "(", ")", ",", ">", "<", " ", "a.b/c",
                 "metadata.name", "\\", "\\,", "-", "_", "/", "é", "+", "%", "a" * 64, "0" * 30),
    "number": ("0", "1", "-", "+", ".", "e", "E", "Ki", "m", "n", "h", "ms", "µs", "9" * 25, "_"),
    "regex": ("(", ")", "[", "]", "*", "+", "?", "{1000}", "{1,2}", "|", "^", "$", "\\", "\\p{L}",
              "(?i)", "(?P<a>", ".", "\\pN", "[[:alpha:]]", "\\Q", "\\C", "{0,1001}"),
    "path": ("/", "//", "..", "%2f", "%00", "%", "%zz", "?", "#", ";", "é", "%C3%A9", "%FF", "api",
             "apis", "v1", "namespaces", "default", "status", "scale", "watch", "a" * 300, ":"),
}  # fmt: skip


def number(chance: Random, most: int) -> int:
    """Mostly small, sometimes large."""
    return int(most ** chance.random())


def text(chance: Random, given: str, tokens: Sequence[str], most: int = 2000) -> str:
    for _ in range(number(chance, 6)):
        at, until = sorted((chance.randint(0, len(given)), chance.randint(0, len(given))))
        until = min(until, at + number(chance, 40))
        kind = chance.randrange(6)
        if kind == 0:
            given = given[:at] + given[until:]
        elif kind == 1:
            given = given[:at] + chance.choice(tokens) + given[at:]
        elif kind == 2:
            given = given[:at] + chance.choice(tokens) + given[until:]
        elif kind == 3:
            piece = given[at:until] or chance.choice(tokens)
            given = given[:at] + piece * number(chance, most // max(len(piece), 1) + 2) + given[at:]
        elif kind == 4:
            given = given[:at] + chr(number(chance, 0xD000)) + given[until:]
        else:
            given = given[:until]
    return given


def binary(chance: Random, given: bytes) -> bytes:
    data = bytearray(given)
    for _ in range(number(chance, 8)):
        at = chance.randint(0, len(data))
        kind = chance.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[at:at] = chance.randbytes(number(chance, 12))
        elif kind == 2:
            del data[at : at + number(chance, 12)]
        elif kind == 3:
            data[at:at] = data[at : at + number(chance, 20)] * number(chance, 40)
        elif at < len(data):
            data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
    return bytes(data)


def copied(given: Any) -> Any:
    """All of it anew, so that no two places are one."""
    return marshal.loads(marshal.dumps(given, 2))


def place(chance: Random, given: Any) -> Place | None:
    """Somewhere inside; None where there is no inside."""
    found: Place | None = None
    while isinstance(given, dict | list) and given:
        keys: Sequence[Any] = list(given) if isinstance(given, dict) else range(len(given))
        found = given, chance.choice(keys)
        given = given[found[1]]
        if chance.random() < 0.2:
            break
    return found


def value(chance: Random, given: Any, others: Sequence[Any]) -> Any:
    """A changed copy. ``others`` lend pieces."""
    made = copied(given)
    for _ in range(number(chance, 5)):
        found = place(chance, made)
        if found is None:
            return copied(chance.choice(INTERESTING))
        chance.choice(_CHANGES)(chance, *found, others)
    return made


def _replaced(chance: Random, container: Any, key: Any, others: Sequence[Any]) -> None:
    container[key] = copied(chance.choice(INTERESTING))


def _removed(chance: Random, container: Any, key: Any, others: Sequence[Any]) -> None:
    del container[key]


def _wrapped(chance: Random, container: Any, key: Any, others: Sequence[Any]) -> None:
    for _ in range(number(chance, 260)):
        container[key] = [container[key]] if chance.random() < 0.5 else {"a": container[key]}


def _renamed(chance: Random, container: Any, key: Any, others: Sequence[Any]) -> None:
    if isinstance(container, dict):
        container[chance.choice(WORDS)] = container.pop(key)


def _lent(chance: Random, container: Any, key: Any, others: Sequence[Any]) -> None:
    other = chance.choice(others)
    found = place(chance, other)
    piece = other if found is None or chance.random() < 0.2 else found[0][found[1]]
    container[key] = copied(piece)


def _repeated(chance: Random, container: Any, key: Any, others: Sequence[Any]) -> None:
    times = number(chance, 500) if len(repr(container[key])) < _MUCH else 2
    if isinstance(container, list):
        container[key:key] = [copied(container[key]) for _ in range(times)]
    else:
        for count in range(min(times, 100)):
            container[f"{key}{count}"] = copied(container[key])


def _retold(chance: Random, container: Any, key: Any, others: Sequence[Any]) -> None:
    told = container[key]
    if isinstance(told, str):
        tokens = TOKENS[chance.choice(sorted(TOKENS))]
        container[key] = text(chance, told, tokens)
    elif isinstance(told, bool) or told is None:
        container[key] = str(told)
    elif isinstance(told, int | float):
        container[key] = chance.choice((-told, told + 1, told * 1000003, told / 7, str(told)))


def _added(chance: Random, container: Any, key: Any, others: Sequence[Any]) -> None:
    piece = copied(chance.choice(INTERESTING))
    if isinstance(container, dict):
        container[chance.choice(WORDS)] = piece
    else:
        container.insert(key, piece)


_CHANGES: tuple[Callable[[Random, Any, Any, Sequence[Any]], None], ...] = (
    _replaced, _replaced, _removed, _wrapped, _renamed, _lent, _repeated, _retold, _retold, _added,
)  # fmt: skip

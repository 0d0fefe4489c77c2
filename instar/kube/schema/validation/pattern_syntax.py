"""Parses the common part of RE2's syntax into a small tree, for `pattern_automata.py`.

A pattern outside that part (word boundaries, Unicode classes, unusual flags) raises
``UnsupportedPattern``; callers then do without an automaton. ``patterns.py`` decides whether a
pattern is valid; only patterns that RE2 compiles are parsed here.
"""

from __future__ import annotations

from typing import NamedTuple

LAST = 0x10FFFF
Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint ranges of code points, both ends included."""
ANY: Ranges = ((0, LAST),)
_NO_NEWLINE: Ranges = ((0, 9), (11, LAST))


class UnsupportedPattern(ValueError):
    """The pattern uses syntax for which no automaton can be built."""


class Characters(NamedTuple):
    """One character out of a set."""

    ranges: Ranges


class Sequence(NamedTuple):
    parts: tuple[Node, ...]


class Alternatives(NamedTuple):
    branches: tuple[Node, ...]


class Repeat(NamedTuple):
    """``most`` is None without an upper bound."""

    inner: Node
    least: int
    most: int | None


class Anchor(NamedTuple):
    """The beginning of the text, or its end."""

    at_end: bool


Node = Characters | Sequence | Alternatives | Repeat | Anchor

_DIGITS, _SPACES = ((48, 57),), ((9, 10), (12, 13), (32, 32))
_WORD = ((48, 57), (65, 90), (95, 95), (97, 122))
_PERL: dict[str, Ranges] = {"d": _DIGITS, "s": _SPACES, "w": _WORD}
_POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}


def parse_pattern(pattern: str) -> Node:
    """Return the syntax tree of a pattern that RE2 accepts."""
    parser = _Parser(pattern)
    node = parser.choice()
    if parser.position < len(pattern):
        raise UnsupportedPattern(pattern)
    return node


def union(*sets: Ranges) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(each for ranges in sets for each in ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    found, start = [], 0
    for low, high in ranges:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        found.append((start, LAST))
    return tuple(found)


class _Parser:
    """Recursive descent; flags hold until their group ends."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.position = 0
        self._fold = self._dot_all = self._lines = False

    def choice(self) -> Node:
        kept = self._fold, self._dot_all, self._lines
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        self._fold, self._dot_all, self._lines = kept
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self.position < len(self._text) and self._text[self.position] not in "|)":
            if self._text.startswith("\\Q", self.position):
                parts += self._quoted()
                continue
            part = self._atom()
            if part is not None:
                parts.append(self._repeated(part))
        return Sequence(tuple(parts))

    def _quoted(self) -> list[Node]:
        start = self.position + 2
        end = self._text.find("\\E", start)
        self.position = len(self._text) if end < 0 else end + 2
        quoted = self._text[start:] if end < 0 else self._text[start:end]
        return [self._characters(((ord(each), ord(each)),)) for each in quoted]

    def _repeated(self, part: Node) -> Node:
        while self.position < len(self._text):
            mark = self._text[self.position]
            if mark in "*+?":
                self.position += 1
                bounds: tuple[int, int | None] | None = {
                    "*": (0, None),
                    "+": (1, None),
                    "?": (0, 1),
                }[mark]
            else:
                bounds = self._counted()
            if bounds is None:
                return part
            self._take("?")  # lazy: the same texts match
            part = Repeat(part, *bounds)
        return part

    def _counted(self) -> tuple[int, int | None] | None:
        """Parse ``{2}``, ``{2,}`` or ``{2,5}``; other braces are literal."""
        end = self._text.find("}", self.position)
        if self._text[self.position] != "{" or end < 0:
            return None
        low, comma, high = self._text[self.position + 1 : end].partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None
        self.position = end + 1
        most = int(high) if high else None
        return int(low), most if comma else int(low)

    def _atom(self) -> Node | None:
        character = self._text[self.position]
        if character == "(":
            return self._group()
        if character == "[":
            return self._characters(self._class())
        if character == "\\":
            return self._escaped()
        self.position += 1
        if character == ".":
            return Characters(ANY if self._dot_all else _NO_NEWLINE)
        if character in "^$":
            if self._lines:
                raise UnsupportedPattern("(?m)")
            return Anchor(at_end=character == "$")
        return self._characters(((ord(character), ord(character)),))

    def _group(self) -> Node | None:
        self.position += 1
        kept = self._fold, self._dot_all, self._lines
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                self.position = self._text.index(">", self.position) + 1
            elif self._flags() == ")":
                return None  # flags for the rest of the group around
        inner = self.choice()
        self._fold, self._dot_all, self._lines = kept
        if not self._take(")"):
            raise UnsupportedPattern(self._text)
        return inner

    def _flags(self) -> str:
        value = True
        while self.position < len(self._text):
            flag = self._text[self.position]
            self.position += 1
            if flag in ":)":
                return flag
            if flag == "-":
                value = False
            elif flag == "i":
                self._fold = value
            elif flag == "s":
                self._dot_all = value
            elif flag == "m":
                self._lines = value
            else:
                raise UnsupportedPattern(f"(?{flag})")
        raise UnsupportedPattern(self._text)

    def _escaped(self) -> Node:
        letter = self._text[self.position + 1 : self.position + 2]
        if letter == "A" or letter == "z":
            self.position += 2
            return Anchor(at_end=letter == "z")
        if letter in ("b", "B", "C"):
            raise UnsupportedPattern(f"\\{letter}")
        return self._characters(self._escape())

    def _escape(self) -> Ranges:
        """Parse the escape after a backslash, in a class or outside."""
        letter = self._text[self.position + 1 : self.position + 2]
        self.position += 2
        if letter.lower() in _PERL:
            ranges = _PERL[letter.lower()]
            return ranges if letter.islower() else complement(ranges)
        if letter in _CONTROLS:
            return ((_CONTROLS[letter], _CONTROLS[letter]),)
        if letter == "x":
            return self._hexadecimal()
        if not letter or letter.isalnum():
            raise UnsupportedPattern(f"\\{letter}")
        return ((ord(letter), ord(letter)),)

    def _hexadecimal(self) -> Ranges:
        if self._take("{"):
            end = self._text.index("}", self.position)
            digits, self.position = self._text[self.position : end], end + 1
        else:
            digits = self._text[self.position : self.position + 2]
            self.position += 2
        code = int(digits, 16)
        return ((code, code),)

    def _class(self) -> Ranges:
        self.position += 1
        negated = self._take("^")
        found: list[Ranges] = []
        first = True
        while first or self._text[self.position] != "]":
            first = False
            found.append(self._class_item())
        self.position += 1
        ranges = self._folded(union(*found))
        return complement(ranges) if negated else ranges

    def _class_item(self) -> Ranges:
        if self._take("[:"):
            end = self._text.index(":]", self.position)
            name, self.position = self._text[self.position : end], end + 2
            ranges = _POSIX.get(name.removeprefix("^"))
            if ranges is None:
                raise UnsupportedPattern(name)
            return complement(ranges) if name.startswith("^") else ranges
        low = self._class_character()
        if len(low) != 1 or low[0][0] != low[0][1]:
            return low
        after = self._text[self.position : self.position + 2]
        if not after.startswith("-") or after == "-]" or len(after) < 2:
            return low
        self.position += 1
        high = self._class_character()
        return ((low[0][0], high[0][1]),)

    def _class_character(self) -> Ranges:
        if self._text[self.position] == "\\":
            return self._escape()
        self.position += 1
        code = ord(self._text[self.position - 1])
        return ((code, code),)

    def _characters(self, ranges: Ranges) -> Characters:
        return Characters(self._folded(ranges))

    def _folded(self, ranges: Ranges) -> Ranges:
        """Add the other case of ASCII letters, under ``(?i)``."""
        if not self._fold:
            return ranges
        lower = [(max(low, 65) + 32, min(high, 90) + 32) for low, high in ranges]
        upper = [(max(low, 97) - 32, min(high, 122) - 32) for low, high in ranges]
        more = tuple(each for each in (*lower, *upper) if each[0] <= each[1])
        return union(ranges, more)

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

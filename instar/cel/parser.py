"""Tokens to a tree, by precedence climbing. Macros are expanded by ``macros.py`` on the way."""

from __future__ import annotations

from collections.abc import Sequence

from instar.cel.ast import (
    Call,
    Const,
    Entry,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    qualified_name,
)
from instar.cel.issues import BadExpression, Issue
from instar.cel.lexer import KEYWORDS, RESERVED, Token, tokenize
from instar.cel.macros import expand

MAX_CODE_POINTS = 100_000
MAX_NESTING = 80
"""Parentheses, calls and brackets inside each other; keeps Python's stack out of danger."""

_BINARY = {
    "||": 1, "&&": 2,
    "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_LITERALS = {"true": True, "false": False, "null": None}
_PRIMARY = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
    "STRING, BYTES, IDENTIFIER}"
)


def parse(source: str) -> Node:
    """The tree of ``source``; raises BadExpression."""
    if len(source) > MAX_CODE_POINTS:
        text = (
            f"expression code point size exceeds limit: size: {len(source)}, "
            f"limit {MAX_CODE_POINTS}"
        )
        raise BadExpression(source, [Issue(0, text)])
    return _Parser(source, tokenize(source)).whole()


class _Parser:
    def __init__(self, source: str, tokens: list[Token]) -> None:
        self._source = source
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        token = self._peek()
        if token.kind != "eof":
            raise self._error(token, f"extraneous input '{token.text}' expecting <EOF>")
        return node

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_NESTING:
            issue = Issue(self._peek().pos, f"expression recursion limit exceeded: {MAX_NESTING}")
            raise BadExpression(self._source, [issue])
        condition = self._binary(1)
        question = self._peek()
        if question.text == "?" and question.kind == "op":
            self._next()
            then = self._binary(1)
            self._expect(":")
            condition = Call(question.pos, "_?_:_", None, [condition, then, self._expression()])
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Node:
        left = self._unary()
        while True:
            token = self._peek()
            precedence = _BINARY.get(token.text, 0) if token.kind != "const" else 0
            if precedence < level:
                return left
            if precedence <= 2:
                left = self._chain(left, token.text, precedence)
                continue
            self._next()
            right = self._binary(precedence + 1)
            name = "@in" if token.text == "in" else f"_{token.text}_"
            left = Call(token.pos, name, None, [left, right])

    def _chain(self, first: Node, operator: str, precedence: int) -> Node:
        """``a && b && c`` as a balanced tree, so a long chain does not become a deep one."""
        terms, positions = [first], []
        while self._peek().kind == "op" and self._peek().text == operator:
            positions.append(self._next().pos)
            terms.append(self._binary(precedence + 1))
        return _balanced(f"_{operator}_", terms, positions)

    def _unary(self) -> Node:
        token = self._peek()
        if token.kind != "op" or token.text not in ("!", "-"):
            return self._member()
        count = 0
        while self._peek().kind == "op" and self._peek().text == token.text:
            self._next()
            count += 1
        follow = self._peek()
        if count == 1 and token.text == "-" and type(follow.value) in (int, float):
            self._next()
            return self._postfix(Const(token.pos, -follow.value))
        operand = self._member()
        return Call(token.pos, f"{token.text}_", None, [operand]) if count % 2 else operand

    def _member(self) -> Node:
        return self._postfix(self._primary())

    def _postfix(self, node: Node) -> Node:
        while True:
            token = self._peek()
            if token.kind != "op":
                return node
            if token.text == ".":
                node = self._selection(node)
            elif token.text == "[":
                node = self._index(node)
            elif token.text == "{" and (name := qualified_name(node)) is not None:
                return self._struct(node, name)
            else:
                return node

    def _selection(self, operand: Node) -> Node:
        dot = self._next()
        optional = self._peek().text == "?" and self._peek().kind == "op"
        if optional:
            self._next()
        name = self._next()
        if name.kind != "ident" or name.text in KEYWORDS:
            raise self._error(name, f"no viable alternative at input '.{_shown(name)}'")
        if optional:
            return Call(dot.pos, "_?._", None, [operand, Const(name.pos, name.text)])
        if self._peek().text == "(" and self._peek().kind == "op":
            opening = self._next()
            args = self._list_until(")")
            return expand(self._source, Call(opening.pos, name.text, operand, args))
        return Select(dot.pos, operand, name.text)

    def _index(self, operand: Node) -> Node:
        bracket = self._next()
        optional = self._peek().text == "?" and self._peek().kind == "op"
        if optional:
            self._next()
        key = self._expression()
        self._expect("]")
        return Call(bracket.pos, "_[?_]" if optional else "_[_]", None, [operand, key])

    def _struct(self, node: Node, name: str) -> Node:
        """Read to the closing brace; the checker refuses every struct, so fields are dropped."""
        self._next()
        while not self._accept("}"):
            self._next()
            self._expect(":")
            self._expression()
            if not self._accept(","):
                self._expect("}")
                break
        return StructLiteral(node.pos, name)

    def _primary(self) -> Node:
        token = self._next()
        if token.kind == "const":
            if token.value == 1 << 63 and type(token.value) is int:
                raise BadExpression(self._source, [Issue(token.pos, "invalid int literal")])
            return Const(token.pos, token.value)
        if token.kind == "ident" and token.text != "in":
            return self._name(token)
        if token.text == "(":
            node = self._expression()
            self._expect(")")
            return node
        if token.text == "[":
            return self._list(token)
        if token.text == "{":
            return self._map(token)
        if token.text == "." and self._peek().kind == "ident":
            return self._name(self._next())
        raise self._error(token, f"mismatched input '{token.text}' expecting {_PRIMARY}")

    def _name(self, token: Token) -> Node:
        if token.text in _LITERALS:
            return Const(token.pos, _LITERALS[token.text])
        if token.text in RESERVED:
            issue = Issue(token.pos, f"reserved identifier: {token.text}")
            raise BadExpression(self._source, [issue])
        if self._peek().text == "(" and self._peek().kind == "op":
            opening = self._next()
            args = self._list_until(")")
            return expand(self._source, Call(opening.pos, token.text, None, args))
        return Ident(token.pos, token.text)

    def _list(self, bracket: Token) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while not self._accept("]"):
            if self._accept("?"):
                optional.add(len(items))
            items.append(self._expression())
            if not self._accept(","):
                self._expect("]")
                break
        return ListLiteral(bracket.pos, items, frozenset(optional))

    def _map(self, brace: Token) -> Node:
        entries: list[Entry] = []
        while not self._accept("}"):
            optional = self._accept("?")
            key = self._expression()
            self._expect(":")
            entries.append(Entry(key, self._expression(), optional))
            if not self._accept(","):
                self._expect("}")
                break
        return MapLiteral(brace.pos, entries)

    def _list_until(self, closing: str) -> list[Node]:
        items: list[Node] = []
        if self._accept(closing):
            return items
        while True:
            items.append(self._expression())
            if not self._accept(","):
                self._expect(closing)
                return items

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "eof":
            self._at += 1
        return token

    def _accept(self, text: str) -> bool:
        token = self._peek()
        if token.kind == "op" and token.text == text:
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        token = self._peek()
        if not self._accept(text):
            raise self._error(token, f"mismatched input '{token.text}' expecting '{text}'")

    def _error(self, token: Token, text: str) -> BadExpression:
        return BadExpression(self._source, [Issue(token.pos, f"Syntax error: {text}")])


def _shown(token: Token) -> str:
    return "" if token.kind == "eof" else token.text


def _balanced(name: str, terms: Sequence[Node], positions: Sequence[int]) -> Node:
    if len(terms) == 1:
        return terms[0]
    middle = (len(terms) + 1) // 2
    left = _balanced(name, terms[:middle], positions[: middle - 1])
    right = _balanced(name, terms[middle:], positions[middle:])
    return Call(positions[middle - 1], name, None, [left, right])

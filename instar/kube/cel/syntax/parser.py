"""CEL parser: operator precedence with an explicit stack, so nesting uses no Python frames.

Called by ``engine.analyse``. Upstream's two nesting limits are counted as upstream does: open
grammar rules, and depth of the finished tree. Calls go through ``macros.py``; the stack's entries
are in ``parser_stack.py``.
"""

from __future__ import annotations

from typing import NoReturn

from instar.kube.cel.syntax.ast import CallNode, Const, Ident, Node, Select, qualified_name
from instar.kube.cel.syntax.issues import NOWHERE, BadExpression, Issue
from instar.kube.cel.syntax.lexer import Cursor, Token, begins_value, tokenize
from instar.kube.cel.syntax.macros import MacroError, expand
from instar.kube.cel.syntax.parser_stack import (
    AND,
    OR,
    PRECEDENCE,
    Arguments,
    Binary,
    Choice,
    Construct,
    Items,
    Logic,
    Nesting,
    Operand,
    Pairs,
    Pending,
    PendingFields,
    PendingGroup,
    Prefix,
    Subscript,
    TooNested,
    balance_operators,
    finish_bracket,
)
from instar.kube.cel.syntax.property_names import KEYWORDS, RESERVED

MAX_CODE_POINTS = 100_000
MAX_DEPTH = 250

_LITERALS = {"true": True, "false": False, "null": None}
_PRIMARY = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
    "STRING, BYTES, IDENTIFIER}"
)
_TRAILING_COMMA = (Items, Pairs, PendingFields)
_MARKABLE = (Items, Pairs, PendingFields, Subscript)


def parse(source: str) -> Node:
    """Return the tree of ``source``. Raises BadExpression."""
    if len(source) > MAX_CODE_POINTS:
        text = (
            f"expression code point size exceeds limit: size: {len(source)}, "
            f"limit {MAX_CODE_POINTS}"
        )
        raise BadExpression(source, [Issue(NOWHERE, text)])
    return _Parser(source).whole()


class _Unreadable(Exception):
    """The rest of the text cannot be parsed; issues found before still count."""


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        tokens, self._issues = tokenize(source)
        self._tokens = Cursor(tokens)
        self._operands: list[Operand] = []
        self._pending: list[Pending] = []
        self._nesting = Nesting(MAX_DEPTH)

    def whole(self) -> Node:
        try:
            self._read()
        except _Unreadable:
            pass
        except TooNested as error:
            self._issues.append(Issue(NOWHERE, str(error)))
        if not self._issues and self._operands[0].depth > MAX_DEPTH:
            self._issues.append(Issue(NOWHERE, "max recursion depth exceeded"))
        if self._issues:
            raise BadExpression(self._source, self._issues)
        return self._operands[0].node

    def _read(self) -> None:
        begins = True
        while True:
            token = self._tokens.next()
            if begins:
                begins = self._begin(token)
            elif token.kind == "eof":
                return self._end(token)
            else:
                begins = self._go_on(token)

    # States in which a value must begin. Each method returns whether one must still begin
    # afterwards.

    def _begin(self, token: Token) -> bool:
        match token.kind:
            case "const":
                if type(token.value) is int and token.value == 1 << 63:
                    return self._push(self._report(token.pos, "invalid int literal"))
                return self._push(Const(token.pos, token.value))
            case "wrong":
                return self._push(self._report(token.pos, token.value))
            case "ident" if token.text != "in":
                return self._name(token, "")
            case "op":
                return self._begin_with(token)
        return self._unexpected(token)

    def _begin_with(self, token: Token) -> bool:
        match token.text:
            case "!" | "-":
                return self._prefix(token)
            case "(":
                return self._open(PendingGroup(token.pos))
            case "[":
                return self._open(Items(token.pos))
            case "{":
                return self._open(Pairs(token.pos))
            case "." if self._tokens.peek().kind == "ident":
                return self._name(self._tokens.next(), ".")
        return self._unexpected(token)

    def _unexpected(self, token: Token) -> bool:
        """Skip one extra token if a value begins after it."""
        if token.kind == "eof" or not begins_value(self._tokens.peek()):
            self._mismatched(token)
        text = f"Syntax error: extraneous input '{token.text}' expecting {_PRIMARY}"
        self._report(token.pos, text)
        return True

    def _mismatched(self, token: Token) -> NoReturn:
        self._fail(token, f"mismatched input '{token.text}' expecting {_PRIMARY}")

    def _name(self, token: Token, dot: str) -> bool:
        name = token.text
        if name in _LITERALS and not dot:
            return self._push(Const(token.pos, _LITERALS[name]))
        if name in RESERVED or name in KEYWORDS:
            return self._push(self._report(token.pos - len(dot), f"reserved identifier: {name}"))
        if self._tokens.is_op("("):
            return self._open(Arguments(self._tokens.next().pos, function=dot + name))
        return self._push(Ident(token.pos, dot + name))

    def _prefix(self, token: Token) -> bool:
        count = 1
        while self._tokens.accept(token.text):
            count += 1
        follow = self._tokens.peek()
        if token.text == "-" and count == 1 and type(follow.value) in (int, float):
            self._tokens.next()
            return self._push(Const(token.pos, -follow.value))
        signed = follow.text == "-" and type(self._tokens.ahead().value) in (int, float)
        if follow.kind == "op" and follow.text in ("!", "-") and not signed:
            self._mismatched(follow)
        self._pending.append(Prefix(token.pos, f"{token.text}_", count % 2 == 1))
        return True

    def _open(self, construct: Construct) -> bool:
        self._nesting.bracket(1)
        self._pending.append(construct)
        trailing = isinstance(construct, _TRAILING_COMMA) and self._tokens.is_op(",")
        if trailing and self._tokens.ahead().text == construct.closing:
            self._tokens.next()
        if not isinstance(construct, (PendingGroup, Subscript)) and self._tokens.accept(
            construct.closing
        ):
            return self._close(construct)
        return self._element(construct)

    def _element(self, construct: Construct) -> bool:
        """Read what precedes an element: its question mark, and in a struct its name."""
        construct.marked = isinstance(construct, _MARKABLE) and self._tokens.accept("?")
        if isinstance(construct, PendingFields):
            name = self._tokens.next()
            if name.kind != "ident":
                self._fail(name, f"mismatched input '{name.text}' expecting IDENTIFIER")
            construct.name = name.text
            colon = self._tokens.next()
            if colon.text != ":":
                self._fail(colon, f"mismatched input '{colon.text}' expecting ':'")
            construct.colon = colon.pos
        return True

    # States in which a value has ended.

    def _go_on(self, token: Token) -> bool:
        text = token.text
        if token.kind == "op":
            if text == ".":
                return self._member(token)
            if text == "[":
                return self._open(Subscript(token.pos, target=self._operands.pop()))
            if text == "{" and (name := self._type_name()) is not None:
                return self._open(PendingFields(token.pos, type_name=name))
        self._reduce_prefix()
        if token.kind in ("op", "ident") and text in PRECEDENCE:
            return self._infix(token, PRECEDENCE[text])
        if token.kind == "op":
            if text == "?":
                return self._question(token)
            if text == ":":
                return self._colon(token)
            if text == ",":
                return self._comma(token)
        return self._closing(token)

    def _member(self, dot: Token) -> bool:
        optional = self._tokens.accept("?")
        name = self._tokens.next()
        if name.kind == "escaped":
            self._report(name.pos, "unsupported syntax: '`'")
            name = name._replace(kind="ident")
        if name.kind != "ident" or name.text in KEYWORDS:
            text = "" if name.kind == "eof" else name.text
            if text in _LITERALS:
                self._fail(name, f"mismatched input '{text}' expecting IDENTIFIER")
            problem = f"no viable alternative at input '.{text}'"
            if text != "in":
                self._fail(name, problem)
            # Upstream continues as if the dot were not there.
            self._report(name.pos, f"Syntax error: {problem}")
            return self._infix(name, PRECEDENCE["in"])
        operand = self._operands.pop()
        if optional:
            field = Const(name.pos, name.text)
            # Upstream's visitor sees one node; the name is part of it.
            call = CallNode(dot.pos, "_?._", None, [operand.node, field])
            return self._push(call, operand.depth + 1)
        if self._tokens.is_op("("):
            opening = self._tokens.next()
            return self._open(Arguments(opening.pos, function=name.text, target=operand))
        return self._push(Select(dot.pos, operand.node, name.text), operand.depth + 1)

    def _type_name(self) -> str | None:
        """Return the name before a brace, taken off the stack; None if it is not a name."""
        if self._tokens.behind().kind != "ident":
            return None
        name = qualified_name(self._operands[-1].node)
        if name is not None:
            self._operands.pop()
        return name

    def _infix(self, token: Token, precedence: int) -> bool:
        self._reduce(precedence + (precedence in (AND, OR)))
        left = self._operands.pop()
        if precedence in (AND, OR):
            top = self._pending[-1] if self._pending else None
            if not isinstance(top, Logic) or top.precedence != precedence:
                top = Logic(f"_{token.text}_", precedence, [], [])
                self._pending.append(top)
            top.terms.append(left)
            top.positions.append(token.pos)
            return True
        self._nesting.operator(precedence, 1)
        name = "@in" if token.text == "in" else f"_{token.text}_"
        self._pending.append(Binary(token.pos, name, precedence, left))
        return True

    def _question(self, token: Token) -> bool:
        self._reduce(OR)
        top = self._pending[-1] if self._pending else None
        if isinstance(top, Choice) and top.then is None:
            self._fail(token, "mismatched input '?' expecting ':'")
        self._pending.append(Choice(token.pos, self._operands.pop()))
        return True

    def _colon(self, token: Token) -> bool:
        self._reduce(OR)
        top = self._pending[-1] if self._pending else None
        if isinstance(top, Choice) and top.then is None:
            top.then = self._operands.pop()
            self._nesting.expression(1)
            return True
        self._reduce_choices()
        top = self._pending[-1] if self._pending else None
        if isinstance(top, Pairs) and top.key is None:
            top.key = self._operands.pop()
            return True
        return self._closing(token)

    def _comma(self, token: Token) -> bool:
        self._reduce_choices()
        construct = self._pending[-1] if self._pending else None
        if not isinstance(construct, Construct) or isinstance(construct, (PendingGroup, Subscript)):
            return self._closing(token)
        self._collect(construct, token)
        if isinstance(construct, _TRAILING_COMMA) and self._tokens.accept(construct.closing):
            return self._close(construct)
        return self._element(construct)

    def _closing(self, token: Token) -> bool:
        self._reduce_choices()
        construct = self._pending[-1] if self._pending else None
        if not isinstance(construct, Construct):
            self._surplus(token, ":" if isinstance(construct, Choice) else "<EOF>")
        if token.text != construct.closing or token.kind != "op":
            self._surplus(token, construct.closing)
        self._collect(construct, token)
        return self._close(construct)

    def _end(self, token: Token) -> None:
        self._reduce_prefix()
        self._reduce_choices()
        if self._pending:
            self._closing(token)

    def _surplus(self, token: Token, wanted: str) -> NoReturn:
        shown = wanted if wanted == "<EOF>" else f"'{wanted}'"
        follow = self._tokens.peek().text
        if token.kind == "eof":
            self._fail(token, f"missing {shown} at '<EOF>'")
        kind = "extraneous" if follow == wanted else "mismatched"
        self._fail(token, f"{kind} input '{token.text}' expecting {shown}")

    # Reducing the stack.

    def _reduce_prefix(self) -> None:
        while self._pending and isinstance(self._pending[-1], Prefix):
            prefix = self._pending.pop()
            assert isinstance(prefix, Prefix)
            if prefix.odd:
                operand = self._operands.pop()
                call = CallNode(prefix.pos, prefix.function, None, [operand.node])
                self._push(call, operand.depth)

    def _reduce(self, least: int) -> None:
        """Reduce operators that bind at least that tightly; their right side is complete."""
        while self._pending:
            top = self._pending[-1]
            if not isinstance(top, (Binary, Logic)) or top.precedence < least:
                return
            self._pending.pop()
            right = self._operands.pop()
            if isinstance(top, Logic):
                terms = [*top.terms, right]
                node = balance_operators(top.function, [term.node for term in terms], top.positions)
                self._push(node, max(term.depth for term in terms))
            else:
                self._nesting.operator(top.precedence, -1)
                call = CallNode(top.pos, top.function, None, [top.left.node, right.node])
                self._push(call, 1 + max(top.left.depth, right.depth))

    def _reduce_choices(self) -> None:
        self._reduce(OR)
        while self._pending and isinstance(self._pending[-1], Choice):
            choice = self._pending[-1]
            assert isinstance(choice, Choice)
            if choice.then is None:
                return
            self._pending.pop()
            self._nesting.expression(-1)
            parts = [choice.condition, choice.then, self._operands.pop()]
            call = CallNode(choice.pos, "_?_:_", None, [part.node for part in parts])
            self._push(call, 1 + max(part.depth for part in parts))

    def _collect(self, construct: Construct, token: Token) -> None:
        """Add the value on the stack to the construct."""
        if isinstance(construct, Pairs) and construct.key is None:
            self._surplus(token, ":")
        construct.collect(self._operands.pop())

    def _close(self, construct: Construct) -> bool:
        self._pending.pop()
        self._nesting.bracket(-1)
        if isinstance(construct, Arguments):
            return self._push(self._call(construct), construct.depth())
        return self._push(finish_bracket(construct), construct.depth())

    def _call(self, construct: Arguments) -> Node:
        target = None if construct.target is None else construct.target.node
        try:
            return expand(CallNode(construct.pos, construct.function, target, construct.nodes()))
        except MacroError as error:
            return self._report(error.pos, str(error))

    # Helpers.

    def _push(self, node: Node, depth: int = 0) -> bool:
        self._operands.append(Operand(node, depth))
        return False

    def _report(self, pos: int, text: str) -> Node:
        """Record an issue and continue; return a placeholder for the value."""
        self._issues.append(Issue(pos, text))
        return Const(pos, None)

    def _fail(self, token: Token, text: str) -> NoReturn:
        self._issues.append(Issue(token.pos, f"Syntax error: {text}"))
        raise _Unreadable

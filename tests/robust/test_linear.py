"""Linear by construction: what meets input takes time in proportion to it.

Every regular expression of the package is listed here with the text that is worst for it; the
walk over the source asks for those that are not. The standard library's engine backtracks, so
each is fed its worst at 100 kB and at 1 MB, and everything at 8 kB that could upset it.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable
from functools import lru_cache, partial
from types import BuiltinMethodType
from typing import Any

import pytest

from instar.base.errors import ApiError
from instar.kube.api.encoding.go_json_errors import syntax_error
from instar.kube.api.encoding.pem import blocks
from instar.kube.api.selectors import parse_field_selector, parse_label_selector
from instar.kube.builtin_rules.advice.tls_pairs import mismatch
from instar.kube.schema.formats import network
from instar.kube.schema.formats.named import FORMATS
from instar.kube.schema.metadata import types
from instar.server.rest.deadlines import duration
from tests.robust.regexes import Use, uses

pytestmark = pytest.mark.alone
"""Times are compared, so nothing else may run meanwhile (``scripts/test``)."""

NOT_FROM_CLIENTS = (
    "instar.cli.serving.runtime_config",  # a flag of the operator
    "instar.tools.reviewer",  # files of whoever runs it
    "instar.tools.sdk",  # the same
    "instar.kube.models",  # the same
    "instar.tools.migrator",  # the same
    "instar.tools.suites",  # the same
    "instar.kube.schema.generation.leaves",  # used by both
)
WORST: dict[str, tuple[str, ...]] = {
    # beginning|repeated|end
    "instar.kube.api.encoding.cbor_times:_RFC3339": ("2001-01-01T00:00:00.|1|x",),
    "instar.kube.api.encoding.go_json_errors:_STRUCTURE": ('|\\"|', '"|a|', "|,|"),
    "instar.kube.api.encoding.go_json_errors:_DIGIT_RUN": ("|1|x",),
    "instar.kube.api.encoding.go_json_errors:_NUMBER": ("|1|x",),
    "instar.kube.api.encoding.go_json_errors:_SPACES": ("| |x",),
    "instar.kube.api.encoding.go_json_errors:_SURROGATE": ("|\\ud|", "|\\|"),
    "instar.kube.api.encoding.go_yaml_scalars:_INTEGER": ("|1|x", "|0|8", "0x|f|g"),
    "instar.kube.api.encoding.go_yaml_scalars:_ODD_BINARY": ("0b-|1|2",),
    "instar.kube.api.encoding.go_yaml_scalars:_FLOAT": ("|1|x", ".|1|x", "1e|1|x"),
    "instar.kube.api.encoding.go_yaml_scalars:_DOTTED": (".1|_1|x", ".|1|x", ".1e1|_1|x"),
    "instar.kube.api.encoding.go_yaml_scalars:_TIMESTAMP": ("2001-1-1 1:1:1.|1|x",),
    "instar.kube.api.encoding.go_yaml_scalars:_SEXAGESIMAL": ("1|:1|x", "1|_|x", "|1|x", "1|:11|x"),
    "instar.kube.api.jsonpath:_ESCAPE": ("|\\|", "|\\x|"),
    "instar.kube.api.jsonpath:_FLOAT": ("|1|x", "1.|1|x", ".|1|x"),
    "instar.kube.api.jsonpath:_KEY": ("'|a|", "|'|"),
    "instar.kube.api.jsonpath:_SLICE": ("|1|x", "1:|1|x", "1:1:|1|x"),
    "instar.kube.builtin_rules.advice.tls_keys:_FORMS": ("0\1\2\1\0010\1\6\1|a|", "|0|"),
    "instar.kube.cel.syntax.lexer:_ESCAPED": ("|\\x|", "|\\|"),
    "instar.kube.cel.syntax.lexer:_PARTIAL_ESCAPE": ("|\\x|",),
    "instar.kube.cel.syntax.lexer:_UNFINISHED": ('"|a|', '"|\\n|', "r'''|a|"),
    "instar.kube.cel.library.quantity:_EXPONENT": ("e|1|x",),
    "instar.kube.cel.library.semver:_ALPHANUMERIC": ("|a|!",),
    "instar.kube.cel.library.standard:_DOUBLE": ("|1|x", "1.|1|x", "0x|a|!"),
    "instar.wire.storage.encryption.config:_DURATION_PART": ("|1|x", "1.|1|x"),
    "instar.kube.schema.structure.field_path:_ESCAPE": ("|\\a|",),
    "instar.kube.cel.go_url:_SCHEME": ("|a|!",),
    "instar.kube.cel.go_url:_CONTROL": ("|a|",),
    "instar.kube.cel.go_url:_ESCAPE": ("|%|",),
    "instar.kube.cel.go_url:_USER": ("|a|{",),
    "instar.kube.cel.go_url:_BAD_HOST": ("|a|",),
    "instar.kube.cel.time_text:_LOOSE_PART": ("|1|", "1| |", "|1 |"),
    "instar.kube.builtin_rules.policies:_IDENTIFIER": ("|a|!",),
    "instar.kube.builtin_rules.networking:_WILDCARD": ("*.|a|!", "*.|a.|!", "*.a|-|"),
    "instar.kube.api.encoding.json_text:_FLOAT": ("|.0|", "|e+|", "|e1|"),
    "instar.kube.api.names:_KUBE_VERSION": ("v|1|x",),
    "instar.kube.api.selectors:_TOKEN": ("a| |", "|=|", "|a|", "|!|"),
    "instar.kube.api.selectors:_NUMBER": ("|0|x", "|1|x"),
    "instar.kube.api.selectors:_FIELD_OPERATOR": ("|!|",),
    "instar.kube.api.string_rules:_usual_name": ("|a|!", "|a.|!", "|a-|!"),
    "instar.kube.api.string_rules:_usual_value": ("|a|!",),
    "instar.kube.api.string_rules:_label": ("|a|!", "a|-|"),
    "instar.kube.api.encoding.manifests:_BOUNDARY": ("|---\n|", "|\n---|", "|...\n|", "|-|"),
    "instar.kube.api.encoding.manifests:_HEAD": ("| |", "---| |x", "|\n|x"),
    "instar.kube.api.string_rules:_subdomain": ("|a|!", "|a.|!", "a|-|", "|a-a.|!"),
    "instar.kube.api.string_rules:_dns1035": ("|a|!", "a|-|"),
    "instar.kube.api.string_rules:_name_part": ("|a|!", "a|-|"),
    "instar.kube.api.string_rules:_label_value": ("|a|!", "a|-|"),
    "instar.kube.api.encoding.yaml_key_order:_WORD": ("|a|1",),
    "instar.kube.api.encoding.yaml_key_order:_NO_DIGITS": ("|a|1",),
    "instar.kube.cel.json_to_cel:_NOT_URL_SAFE": ("|a|!",),
    "instar.kube.cel.syntax.lexer:_TOKEN": (
        *('"|a|', '|"|', "|1|", "| |"),
        *("'''|a|", "|/|", "|a|", '"|\\\\|'),
    ),
    "instar.kube.cel.library.formats:_UUID": ("|a|",),
    "instar.kube.cel.library.formats:_bounded": (),
    "instar.kube.cel.library.formats:_name_part": ("|a|!", "a|-|"),
    "instar.kube.cel.library.quantity:_FORM": ("|1|x", "1.|1|x", "1e|1|x"),
    "instar.kube.cel.library.times:_OFFSET": ("|1|",),
    "instar.kube.cel.library.urls:_BAD_ESCAPE": ("|%aa|",),
    "instar.kube.cel.syntax.property_names:_REACHABLE_NAME": ("|a|!",),
    "instar.kube.cel.syntax.property_names:_ESCAPED_PARTS": ("|_|", "|__|"),
    "instar.kube.cel.time_text:_PART": ("|1|x", "|.|x", "1.|1|x"),
    "instar.kube.cel.time_text:_RFC3339": ("2001-01-01T00:00:00.|1|x",),
    "instar.kube.pod_security.labels:_VERSION": ("v1.|1|x",),
    "instar.base.field_errors:_STEPS": ("|[|", "|a|", "|[]|", "[|a|"),
    "instar.kube.builtin_rules.addresses:_LEADING_ZEROS": ("|0|x", "|.0|x", "1|0|x"),
    "instar.kube.patches.json_patch:_INDEX": ("|1|x", "+|1|x"),
    "instar.server.access.websocket_tokens:_URL_ALPHABET": ("|a|!",),
    "instar.server.audit.request_record:_ADDRESS": ("|1.|x", "|a|!"),
    "instar.server.http.http2.heads:_METHOD": ("|A|(",),
    "instar.server.http.http2.heads:_NAME": ("|a|(",),
    "instar.server.http.http2.heads:_CONTROL": ("|a|\n",),
    "instar.server.http.http2.heads:_SIZE": ("|1|x",),
    "instar.server.identity.bootstrap_tokens:_TOKEN": ("|a|.", "abcdef.|a|"),
    "instar.server.identity.bootstrap_tokens:_GROUP": (
        "system:bootstrappers:|a|!",
        "system:bootstrappers:|-|",
    ),
    "instar.server.identity.bootstrap_tokens:_TIME": ("2026-01-01T00:00:00.|1|x",),
    "instar.base.escaping:_NOT_IN_NAMES": ("|!|", "|a!|", "a|!|a"),
    "instar.base.escaping:_NOT_IN_FILES": ("|/|", "|a/|", "a|/|a"),
    "instar.base.escaping:_CONTROL": ("|\n|", "|a\n|"),
    "instar.base.escaping:_NOT_IN_XML": ("|\x00|", "|a\x00|"),
    "instar.base.escaping:_MARKDOWN_SYNTAX": ("|_|", "|a_|", "|](|", "|`|"),
    "instar.base.escaping:_FIRST_IN_MARKDOWN": ("|1|", "|1|.", "|#|"),
    "instar.base.escaping:_NOT_PLAIN": ("|!|", "|a!|"),
    "instar.base.escaping:_LINE_ENDS": ("|\n|", "|a\n|"),
    "instar.base.escaping:_FENCE": ("|`|", "|``a|", "|```a|"),
    "instar.wire.storage.postgres.url:_URL": (
        "postgresql://|a|#", "postgresql://|@|#", "postgresql://|a@|#", "postgresql://h/|a|#",
    ),
    "instar.wire.storage.postgres.url:_SCHEMA": ("|a|", "|a|!"),
    "instar.server.registry.controllers.garbage.object_facts:_UID": (
        '|"uid":"|',
        '"uid":"|a|',
        '|"uid":"a",|',
    ),
    "instar.kube.crds.validation.ca_bundle:_HEADER": ("|a|", "|a\n|"),
    "instar.kube.crds.validation.go_url:_SCHEME": ("|a|",),
    "instar.kube.crds.validation.go_url:_PORT": (":|1|x",),
    "instar.kube.crds.validation.go_url:_ESCAPE": ("|%aa|",),
    "instar.kube.openapi.protobuf.messages:_PLAIN": ("|a|!",),
    "instar.kube.quantities:_FORM": ("|1|x", "1.|1|x", "1e|1|x"),
    "instar.kube.builtin_rules.basics:_PERCENT": ("|1|x",),
    "instar.kube.builtin_rules.basics:_CONFIG_KEY": ("|a|!",),
    "instar.kube.builtin_rules.basics:_PORT_NAME": ("|a|!", "|-|!"),
    "instar.kube.builtin_rules.cron:_INTEGER": ("|1|x",),
    "instar.kube.builtin_rules.cron:_DURATION": ("|1|", "|1s|x", "|1.|", "|1.1|", "|1m|s"),
    "instar.kube.builtin_rules.pods.probes:_HEADER": ("|a|!", "|-|!"),
    "instar.kube.builtin_rules.pods.security:_is_sysctl": ("|a|!", "|a.|!", "a|-|", "|a-a.|!"),
    "instar.server.registry.kinds.workloads.podspec_defaults:_IMAGE": (
        "|a|!",
        "|a/|!",
        "a/|a-|!",
        "a/|a-a/|!",
        "a:|1|!",
        "a@b:|0|!",
    ),
    "instar.server.registry.kinds.builtin_resources:_STABLE": ("v|1|x",),
    "instar.kube.schema.formats.named:_matches": (),
    "instar.kube.schema.formats.named:_DATE": ("|1|",),
    "instar.kube.schema.formats.named:_TIME": ("00:00:00.|1|x",),
    "instar.kube.schema.formats.check_digits:_ISBN10": ("|1|",),
    "instar.kube.schema.formats.check_digits:_ISBN13": ("|1|",),
    "instar.kube.schema.formats.check_digits:_ISSUERS": ("|4|", "|3|"),
    "instar.kube.schema.formats.check_digits:_NOT_DIGITS": ("|a|", "|a1|"),
    "instar.kube.schema.formats.network:_MAC": ("|00:|", "|0000.|"),
    "instar.kube.schema.formats.network:is_email()": (),
    "instar.kube.schema.formats.network:_is_display_name()": (),
    "instar.kube.schema.metadata.types:_RFC3339": ("2001-01-01T00:00:00.|1|x",),
    "instar.kube.schema.metadata.types:_time_text()": (),
    "instar.server.rest.deadlines:_PART": ("|1|", "|.|", "|a|"),
    "instar.server.http.messages:_INTEGER": ("|1|x",),
    "instar.server.rest.warnings:_CONTROL": ("|a|",),
    "instar.kube.typed.scalars:_MICRO_TIME": ("2001-01-01T00:00:00.|1|x",),
    "instar.kube.typed.scalars:_micro_time_error()": (),
    "instar.kube.api.encoding.yaml_text:_FLOAT": ("|1.|", "|1e|"),
}  # fmt: skip
ELSEWHERE: set[str] = set()
"""Known to be slow and being mended on branches of their own, which take them out of here."""
UNITS = [
    *"01aA.-_:/\\\"' \n()[]{},+e%é=!<>@;#\t",
    "1.", "a.", "a-", "\\\"", "1:", " a", "a b", "%a", "%aa", "1s", "1e", "-1", "..", "a@", "::",
    "a/", "'a", '"a', "[a", "(a", "{a", ",a", "= ", "a=", "é ", "\r\n", "__", "1_", "\\u",
    "&&", "||",
]  # fmt: skip
SMALL, LARGE = 100_000, 1_000_000


@lru_cache
def found() -> list[Use]:
    return [use for use in uses() if not use.module.startswith(NOT_FROM_CLIENTS)]


def test_every_expression_is_listed_with_its_worst_case() -> None:
    known, present = set(WORST), {str(use) for use in found()}
    assert present - known == set(), "name the texts that are worst for these"
    assert known - present == set(), "these are gone"


def callers(use: Use) -> list[tuple[str, Callable[[Any], object]]]:
    """The ways an assigned expression is used, on text or on bytes."""
    value = getattr(importlib.import_module(use.module), use.name, None)
    if isinstance(value, re.Pattern):
        is_bytes = isinstance(value.pattern, bytes)
        made = []
        for method in use.methods & {"match", "fullmatch", "search", "findall", "finditer", "sub"}:
            call = _caller(value, method)
            made.append((method, (lambda text, c=call: c(text.encode())) if is_bytes else call))
        return made
    return [("fullmatch", value)] if isinstance(value, BuiltinMethodType) else []


def _caller(pattern: re.Pattern[Any], method: str) -> Callable[[Any], object]:
    if method == "sub":
        return lambda text: pattern.sub(b"" if isinstance(text, bytes) else "", text)
    if method == "finditer":
        return lambda text: sum(1 for _ in pattern.finditer(text))
    called: Callable[[Any], object] = getattr(pattern, method)
    return called


EXPRESSIONS = [
    pytest.param(call, use, id=f"{use}.{method}")
    for use in dict.fromkeys(found())
    if not use.name.endswith("()") and str(use) not in ELSEWHERE
    for method, call in sorted(callers(use), key=lambda pair: pair[0])
]


@pytest.mark.parametrize(("call", "use"), EXPRESSIONS)
def test_expressions_take_time_in_proportion(call: Callable[[str], object], use: Use) -> None:
    for unit in UNITS:
        check_quick(call, unit * (8_000 // len(unit)))
        check_quick(call, unit * (8_000 // len(unit)) + "!")
    for worst in WORST[str(use)]:
        check_linear(call, partial(text_of, worst))


def quiet(call: Callable[[str], object]) -> Callable[[str], object]:
    def called(text: str) -> object:
        try:
            return call(text)
        except ApiError:
            return None

    return called


PARSERS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    **{f"format {name}": (accepts, ()) for name, accepts in FORMATS.items()},
    "is_email": (network.is_email, ("|a.|@", '"|\\a|', '"|a|', "|a @|", "a@|a.|!", "|a |<a@b")),
    "PEM": (lambda text: list(blocks(text.encode())),
            ("|-----BEGIN A-----\n|", "-----BEGIN A-----\n|a|", "|-|", "-----BEGIN |A|",
             "|-----BEGIN A-----\n-----END B-----\n|", "|-----BEGIN |\n")),
    "TLS pair": (lambda text: mismatch(text.encode(), text.encode()),
                 ("|-----BEGIN A-----\n|", "|-----BEGIN A-----\n-----END B-----\n|",
                  "|-----BEGIN A-----\n-----END A-----\n|", "-----BEGIN A-----\n|a: b\n|",
                  "-----BEGIN A-----\n|a:\n|-----END A-----")),
    "time": (types._time_text, ("2001-01-01T00:00:00.|1|x",)),
    "label selector": (quiet(parse_label_selector), ("a| |", "a in (|,|", "|a,|", "a>|0|", "|(|")),
    "field selector": (quiet(parse_field_selector), ("|\\,|", "|a=b,|", "a=|\\|", "|,|")),
    "timeout": (quiet(duration), ("|1|", "|1s|", "|.|", "|1.|")),
    "broken JSON": (lambda text: syntax_error(text.encode(), len(text)),
                    ('{"a":"|\\"|', '["|\\u12|', "[|1|x", "[|1,|x", '[|"",|x', "[| |x", "|[|")),
}  # fmt: skip


@pytest.mark.parametrize("name", PARSERS)
def test_parsers_take_time_in_proportion(name: str) -> None:
    call, worst_texts = PARSERS[name]
    for unit in UNITS:
        check_quick(call, unit * (8_000 // len(unit)))
    for worst in worst_texts:
        check_linear(call, partial(text_of, worst))


def text_of(worst: str, size: int) -> str:
    begin, unit, end = worst.rsplit("|", 2) if worst.count("|") > 2 else worst.split("|")
    return begin + unit * (size // len(unit)) + end


def took(call: Callable[[str], object], text: str) -> float:
    """Processor time: others may be busy."""
    began = time.thread_time()
    call(text)
    return time.thread_time() - began


def check_quick(call: Callable[[str], object], text: str) -> None:
    """Eight thousand squared is 64 million steps, a second; eight thousand are nothing."""
    least = min(took(call, text) for _ in range(2))
    assert least < 0.05, f"{least:.2f} s for {text[:20]!r}…"


def check_linear(call: Callable[[str], object], make: Callable[[int], str]) -> None:
    small = min(took(call, make(SMALL)) for _ in range(2))
    assert small < 0.5, f"{small:.2f} s for {SMALL} of {make(20)!r}"
    large = took(call, make(LARGE))
    assert large < 30 * max(small, 0.01), f"{small:.3f} s, ten times more: {large:.3f} s"

"""What a text is read by takes time in proportion to its length, whatever stands in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from time import process_time

import pytest

from instar.kube.cel.engine import BadExpression, CelRunner, analyse, prepare
from instar.kube.cel.json_to_cel import to_bytes, to_date, to_duration, to_timestamp
from instar.kube.cel.syntax.parser import MAX_CODE_POINTS
from instar.kube.cel.types import STRING
from instar.kube.cel.values import CelError

pytestmark = pytest.mark.alone
"""Times are compared, so nothing else may run meanwhile (``scripts/test``)."""

FORMATS = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)
READERS = [
    *(f"string({name}(self)) == ''" for name in ("int", "uint", "double", "bool")),
    *(f"string({name}(self)) == ''" for name in ("duration", "timestamp")),
    *(f"{name}(self)" for name in ("isQuantity", "isIP", "isCIDR", "isURL", "isSemver")),
    "isSemver(self, true)",
    "url(self).getQuery().size() > 0",
    *(f"format.{name}().validate(self).hasValue()" for name in FORMATS),
    "self.split('').size() > 0",
    "self.trim().lowerAscii().replace('1', '2').size() > 0",
    "self.matches('(1|11|a|aa)+$')",
    "strings.quote(self).indexOf('x') > self.lastIndexOf('y')",
    "'%s'.format([self]).size() > 0",
]
PIECES = (
    *("1", "9", "0", "a", "-", ":", ".", "%", " ", "/", "e", "1.", "1e", "a.", "a-", "1 ", "1s"),
    *("::", "1:", "%2", "@", "é", "1m", ".1", "Ki", "+", "a@"),
)
SMALL = 20_000
TIMES = 10
CONVERTERS = (to_duration, to_timestamp, to_date, to_bytes)


def texts(size: int) -> Iterator[str]:
    for piece in PIECES:
        body = piece * (size // len(piece))
        yield body
        yield f"1{body}!"
        yield f"http://{body}"
        yield f"1.1.1-{body}"


def runner(source: str) -> CelRunner:
    return prepare(analyse(source, {"self": STRING}), ("self",))


def slowest(reader: CelRunner, size: int) -> float:
    """What the machine adds once it does not add three times."""
    worst = 0.0
    for text in texts(size):
        took = seconds(reader, text)
        if took > worst:
            worst = max(worst, min(took, seconds(reader, text), seconds(reader, text)))
    return worst


def seconds(reader: CelRunner, text: str) -> float:
    start = process_time()
    reader.run((text,), 10**12, float("inf"))
    return process_time() - start


@pytest.mark.parametrize("source", READERS)
def test_a_longer_text_takes_longer_in_proportion(source: str) -> None:
    reader = runner(source)

    small, large = slowest(reader, SMALL), slowest(reader, SMALL * TIMES)

    assert large < 0.05 + small * TIMES * 4


@pytest.mark.parametrize("convert", CONVERTERS)
def test_values_of_an_object_are_read_in_proportion(convert: object) -> None:
    assert callable(convert)
    for text in texts(SMALL * TIMES):
        start = process_time()
        with suppress(CelError):
            convert(text)
        assert process_time() - start < 0.5


@pytest.mark.parametrize(
    "piece", ["1", "(", "[", "'", '"', '"""', "a.", "a?", "-", "!", "\\", "{", "1e", "//", "`"]
)
def test_any_text_is_parsed_or_refused_in_proportion(piece: str) -> None:
    source = piece * (MAX_CODE_POINTS // len(piece))

    start = process_time()
    with suppress(BadExpression):
        analyse(source, {"a": STRING})

    assert process_time() - start < 3

"""Every function of the Kubernetes library, each with an example that must be true."""

from __future__ import annotations

import re

import pytest

from instar.kube.cel.engine import BadExpression, analyse
from instar.kube.cel.library import KUBERNETES, authorizer
from instar.kube.cel.values import CelError
from tests.cel.support import evaluate

TRUE = {
    "operators": [
        "!false",
        "true && true",
        "false || true",
        "true ? true : false",
        "1 == 1",
        "1 != 2",
        "1 < 2 && 1u < 2u && 1.0 < 2.0 && 'a' < 'b' && b'a' < b'b' && false < true",
        "1 <= 1 && 2 > 1 && 2 >= 2",
        "1 < 1.5 && 1u < 2 && 2.5 > 2u",
        "dyn(1) == 1.0 && dyn(1u) == 1 && dyn(true) != 1",
        "1 + 2 == 3 && 1u + 2u == 3u && 1.5 + 1.5 == 3.0",
        "'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]",
        "3 - 1 == 2 && 3u - 1u == 2u && 3.0 - 1.0 == 2.0",
        "3 * 2 == 6 && 3u * 2u == 6u && 1.5 * 2.0 == 3.0",
        "7 / 2 == 3 && -7 / 2 == -3 && 7u / 2u == 3u && 7.0 / 2.0 == 3.5",
        "7 % 2 == 1 && -7 % 2 == -1 && 7u % 2u == 1u",
        "-(1) == -1 && -(1.5) == -1.5",
        "1 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1}",
        "[1, 2][1] == 2 && {'a': 1}['a'] == 1 && {'a': 1}.a == 1",
        "1.0 / 0.0 > 1e308",
        "duration('1h') + duration('1m') == duration('61m')",
        "timestamp('2020-01-01T00:00:00Z') + duration('1h') > timestamp('2020-01-01T00:00:00Z')",
        "duration('1h') + timestamp('2020-01-01T00:00:00Z') == timestamp('2020-01-01T01:00:00Z')",
        "timestamp('2020-01-01T01:00:00Z') - duration('1h') == timestamp('2020-01-01T00:00:00Z')",
        "timestamp('2020-01-01T01:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('1h')",
        "duration('2h') - duration('1h') == duration('60m')",
    ],
    "standard": [
        "size('héllo') == 5 && 'abc'.size() == 3 && size(b'abc') == 3",
        "size([1, 2]) == 2 && {'a': 1}.size() == 1",
        "int('42') == 42 && int(4.9) == 4 && int(-4.9) == -4 && int(3u) == 3 && int(1) == 1",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60 && int(duration('1s')) == 1000000000",
        "uint('42') == 42u && uint(4.9) == 4u && uint(1) == 1u && uint(1u) == 1u",
        "double('1.5') == 1.5 && double(2) == 2.0 && double(2u) == 2.0",
        "bool('true') && !bool('false') && bool(true)",
        "string(1) == '1' && string(1u) == '1' && string(1.5) == '1.5' && string(true) == 'true'",
        "string(b'abc') == 'abc' && string('x') == 'x'",
        "string(duration('1h30m')) == '5400s' && string(duration('1.5s')) == '1.5s'",
        "string(timestamp('2020-01-02T03:04:05.5Z')) == '2020-01-02T03:04:05.5Z'",
        "string(timestamp('2020-01-02T03:04:05.5+01:00')) == '2020-01-02T03:04:05.5+01:00'",
        "string(timestamp('2020-01-02T03:04:05-05:30') + duration('1s')).endsWith('06-05:30')",
        "bytes('abc') == b'abc' && bytes(b'a') == b'a'",
        "dyn('a') == 'a'",
        "type(1) == int && type('a') == string && type([]) == list && type({}) == map",
        "type(1.0) == double && type(1u) == uint && type(b'') == bytes && type(null) == null_type",
        "type(type(1)) == type && type(true) == bool",
        "type(duration('1s')) == google.protobuf.Duration",
        "duration('1h2m3s').getSeconds() == 3723 && duration(duration('1s')) == duration('1s')",
        "timestamp('2020-01-01T00:00:00+01:00') == timestamp('2019-12-31T23:00:00Z')",
        "timestamp(60) == timestamp('1970-01-01T00:01:00Z')",
        "'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')",
        "'abc'.matches('^[a-c]+$') && matches('abc', 'b') && !'abc'.matches('^b')",
    ],
    "times": [
        "timestamp('2020-03-04T05:06:07.089Z').getFullYear() == 2020",
        "timestamp('2020-03-04T05:06:07.089Z').getMonth() == 2",
        "timestamp('2020-03-04T05:06:07.089Z').getDate() == 4",
        "timestamp('2020-03-04T05:06:07.089Z').getDayOfMonth() == 3",
        "timestamp('2020-03-04T05:06:07.089Z').getDayOfWeek() == 3",
        "timestamp('2020-03-04T05:06:07.089Z').getDayOfYear() == 63",
        "timestamp('2020-03-04T05:06:07.089Z').getHours() == 5",
        "timestamp('2020-03-04T05:06:07.089Z').getHours('+02:00') == 7",
        "timestamp('2020-03-04T05:06:07.089Z').getHours('America/New_York') == 0",
        "timestamp('2020-03-04T05:06:07.089Z').getMinutes() == 6",
        "timestamp('2020-03-04T05:06:07.089Z').getSeconds() == 7",
        "timestamp('2020-03-04T05:06:07.089Z').getMilliseconds() == 89",
        "duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90",
        "duration('1.5s').getMilliseconds() == 1500 && duration('-90s').getMinutes() == -1",
    ],
    "strings": [
        "'hello'.charAt(4) == 'o' && 'hello'.charAt(5) == ''",
        "'hello mellow'.indexOf('ello') == 1 && 'hello mellow'.indexOf('ello', 2) == 7",
        "'hello mellow'.indexOf('jello') == -1 && 'hello'.indexOf('') == 0",
        "'hello mellow'.lastIndexOf('ello') == 7 && 'hello mellow'.lastIndexOf('ello', 6) == 1",
        "'TacoCÆt'.lowerAscii() == 'tacocÆt' && 'tacocæt'.upperAscii() == 'TACOCæT'",
        "'hello hello'.replace('he', 'we') == 'wello wello'",
        "'hello hello'.replace('he', 'we', 1) == 'wello hello'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'abc'.split('') == ['a', 'b', 'c'] && 'a,b'.split(',', 0) == []",
        "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco'",
        "'  trim\\n '.trim() == 'trim'",
        "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b'",
        "'%s is %d'.format([dyn('a'), 1]) == 'a is 1'",
        "'%.2f|%e|%b|%x|%X|%o'.format([dyn(1.5), 1000.0, 5, 255, 255, 8])"
        " == '1.50|1.000000×10⁰³|101|ff|FF|10'",
        "'%s'.format([[1, 2]]) == '[1, 2]' && '%s'.format([{'a': 1}]) == '{\"a\":1}'",
        "'%x'.format(['hi']) == '6869' && '100%%'.format([]) == '100%'",
        "'%s %s'.format([dyn(duration('1s')), true]) == '1s true'",
        'strings.quote("a\\nb") == "\\"a\\\\nb\\""',
    ],
    "lists": [
        "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [1.0, 2.0].isSorted()",
        "[1, 2, 3].sum() == 6 && [1.5, 1.5].sum() == 3.0 && [1u, 2u].sum() == 3u",
        "[duration('1s'), duration('2s')].sum() == duration('3s')",
        "[3, 1, 2].min() == 1 && ['b', 'a'].min() == 'a'",
        "[3, 1, 2].max() == 3 && [false, true].max()",
        "[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(5) == -1",
    ],
    "listsext": [
        "[1, 2, 3, 4].slice(1, 3) == [2, 3]",
        "[[1], [2, 3]].flatten() == [1, 2, 3]",
        "[[[1], [2]], [[3]]].flatten(2) == [1, 2, 3]",
        "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b']",
        "['aaa', 'b', 'cc'].sortBy(s, s.size()) == ['b', 'cc', 'aaa']",
        "[1, 2, 3].reverse() == [3, 2, 1]",
        "[1, 2, 1, 3].distinct() == [1, 2, 3]",
        "lists.range(3) == [0, 1, 2] && lists.range(0) == []",
    ],
    "sets": [
        "sets.contains([1, 2, 3], [2]) && !sets.contains([1], [2]) && sets.contains([1], [])",
        "sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [1, 2])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
    ],
    "regex": [
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
        "'123 abc 456'.findAll('[0-9]+') == ['123', '456']",
        "'1 2'.findAll('[0-9]', 0) == [] && '1 2'.findAll('[0-9]', -1) == ['1', '2']",
        "dyn([]).sum() == 0 && dyn([1.0, 2.0]).sum() == 3.0 && ([0] + [1]).min() == 0",
        "'123 abc 456'.findAll('[0-9]+', 1) == ['123'] && 'abc'.findAll('[0-9]') == []",
    ],
    "optionals": [
        "optional.of(1).hasValue() && !optional.none().hasValue()",
        "optional.of(1).value() == 1",
        "!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue(1).hasValue()",
        "optional.none().or(optional.of(2)).value() == 2 && optional.none().orValue(3) == 3",
        "{'a': {'b': 1}}.?a.?b.orValue(0) == 1 && {'a': {'b': 1}}.?x.b.orValue(0) == 0",
        "{'a': 1}[?'a'].value() == 1 && ![1][?5].hasValue() && optional.of([1])[0].value() == 1",
        "{?'a': optional.of(1), ?'b': optional.none()} == {'a': 1}",
        "[?optional.of(1), ?optional.none()] == [1]",
        "optional.of(1).optMap(x, x + 1).value() == 2 && !optional.none().optMap(x, x).hasValue()",
        "optional.of(1).optFlatMap(x, optional.of(x + 1)).value() == 2",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![].first().hasValue()",
        "optional.unwrap([optional.of(1), optional.none()]) == [1]",
        "[optional.of(1), optional.none()].unwrapOpt() == [1]",
        "has({'a': 1}.a) && !has(optional.of({'a': 1}).b)",
    ],
    "macros": [
        "has({'a': 1}.a) && !has({'a': 1}.b)",
        "[1, 2].all(x, x > 0) && {'a': 1}.all(k, k == 'a')",
        "[1, 2].exists(x, x == 2) && ![1, 2].exists(x, x == 3)",
        "[1, 2].exists_one(x, x == 2) && ![2, 2].exists_one(x, x == 2)",
        "[1, 2].map(x, x * 2) == [2, 4] && [1, 2].map(x, x > 1, x * 2) == [4]",
        "[1, 2].filter(x, x > 1) == [2] && {'a': 1, 'b': 2}.filter(k, k == 'a') == ['a']",
        "[1, 2].all(i, v, i + 1 == v) && {'a': 1}.all(k, v, k == 'a' && v == 1)",
        "[1, 2].exists(i, v, i == 1 && v == 2) && {'a': 1}.exists(k, v, v == 1)",
        "[1, 2].existsOne(i, v, v > 1) && {'a': 1}.existsOne(k, v, v == 1)",
        "[1, 2].transformList(i, v, i + v) == [1, 3]",
        "[1, 2].transformList(i, v, i > 0, v) == [2]",
        "{'a': 1}.transformList(k, v, k + string(v)) == ['a1']",
        "{'a': 1, 'b': 2}.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}",
        "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v) == {'b': 2}",
        "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}",
        "['x'].transformMapEntry(i, v, i >= 0, {v: i}) == {'x': 0}",
        "[1, 0].exists(x, 1 / x == 1) && ![0, 1].all(x, 1 / x == 5)",
    ],
    "urls": [
        "isURL('https://a.b/c') && isURL('/path') && !isURL('a b') && !isURL('')",
        "url('HTTPS://a.b:80/c').getScheme() == 'https' && url('/x').getScheme() == ''",
        "url('https://a.b:80/c').getHost() == 'a.b:80'",
        "url('https://[::1]:80/').getHostname() == '::1'",
        "url('https://a.b:80').getHostname() == 'a.b'",
        "url('https://a.b:80/c').getPort() == '80' && url('https://a.b/c').getPort() == ''",
        "url('https://a.b/with space').getEscapedPath() == '/with%20space'",
        "url('https://u:p@a.b/x?k=c#top').getQuery() == {'k': ['c']} && isURL('https://a/b#c')",
        "url('https://u:p@a.b:8/x#top').getEscapedPath() == '/x' && !isURL('https://a:b:c/')",
        "url('https://a.b/?k=1&k=2&x=y+z').getQuery() == {'k': ['1', '2'], 'x': ['y z']}",
    ],
    "quantity": [
        "isQuantity('1.3G') && isQuantity('100m') && !isQuantity('1.3GG') && !isQuantity('')",
        "quantity('1k') == quantity('1000') && quantity('1Ki') == quantity('1024')",
        "sign(quantity('-1')) == -1 && sign(quantity('0')) == 0 && sign(quantity('5')) == 1",
        "quantity('50k').isInteger() && !quantity('9999m').isInteger()",
        "quantity('50k').asInteger() == 50000",
        "quantity('1500m').asApproximateFloat() == 1.5",
        "quantity('1k').add(quantity('1')) == quantity('1001')",
        "quantity('1').add(2) == quantity('3') && quantity('3').sub(2) == quantity('1')",
        "quantity('1k').sub(quantity('1')) == quantity('999')",
        "quantity('1Mi').isLessThan(quantity('1Gi')) && !quantity('1').isLessThan(quantity('1'))",
        "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        "quantity('200M').compareTo(quantity('0.2G')) == 0",
        "quantity('1').compareTo(quantity('2')) == -1",
        "quantity('2e3') == quantity('2k') && quantity('1n').isGreaterThan(quantity('0'))",
    ],
    "ip": [
        "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP('::ffff:1.2.3.4')",
        "!isIP('fe80::1%eth0') && !isIP('127.0.0.01')",
        "ip.isCanonical('127.0.0.1') && ip.isCanonical('2001:db8::abcd')",
        "!ip.isCanonical('2001:DB8::ABCD')",
        "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6",
        "ip('0.0.0.0').isUnspecified() && ip('127.0.0.1').isLoopback()",
        "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
        "ip('ff02::1').isLinkLocalMulticast() && ip('fe80::1').isLinkLocalUnicast()",
        "ip('169.254.169.254').isLinkLocalUnicast() && ip('192.168.0.1').isGlobalUnicast()",
        "!ip('255.255.255.255').isGlobalUnicast()",
        "string(ip('2001:DB8::ABCD')) == '2001:db8::abcd'",
        "ip('::1') == ip('0:0:0:0:0:0:0:1')",
    ],
    "cidr": [
        "isCIDR('192.168.0.0/24') && !isCIDR('192.168.0.0/33') && !isCIDR('192.168.0.0')",
        "cidr('192.168.0.0/24').containsIP('192.168.0.1')",
        "cidr('192.168.0.0/24').containsIP(ip('192.168.0.1'))",
        "!cidr('192.168.0.0/24').containsIP('::1')",
        "cidr('192.168.0.0/24').containsCIDR('192.168.0.0/25')",
        "!cidr('192.168.0.0/24').containsCIDR(cidr('192.168.0.0/23'))",
        "cidr('192.168.0.5/24').ip() == ip('192.168.0.5')",
        "cidr('192.168.0.5/24').masked() == cidr('192.168.0.0/24')",
        "cidr('::1/128').prefixLength() == 128",
        "string(cidr('192.168.0.5/24')) == '192.168.0.5/24'",
    ],
    "format": [
        "!format.dns1123Label().validate('my-label').hasValue()",
        "format.dns1123Label().validate('My_Label').hasValue()",
        "!format.dns1123Subdomain().validate('a.b-c').hasValue()",
        "format.dns1123Subdomain().validate('a..b').hasValue()",
        "!format.dns1035Label().validate('a-1').hasValue()",
        "format.dns1035Label().validate('1-a').hasValue()",
        "!format.qualifiedName().validate('example.com/MyName').hasValue()",
        "format.qualifiedName().validate('a/b/c').hasValue()",
        "!format.dns1123LabelPrefix().validate('my-label-').hasValue()",
        "!format.dns1123SubdomainPrefix().validate('my.sub-').hasValue()",
        "!format.dns1035LabelPrefix().validate('my-').hasValue()",
        "!format.labelValue().validate('').hasValue()",
        "format.labelValue().validate('a b').hasValue()",
        "!format.uri().validate('http://x').hasValue() && format.uri().validate('x').hasValue()",
        "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
        "format.uuid().validate('x').value() == ['does not match the UUID format']",
        "!format.byte().validate('aGVsbG8=').hasValue()",
        "format.byte().validate('!!').value() == ['invalid base64']",
        "!format.date().validate('2020-02-29').hasValue()",
        "format.date().validate('2021-02-29').value() == ['invalid date']",
        "!format.datetime().validate('2020-01-01T00:00:00Z').hasValue()",
        "format.datetime().validate('x').value() == ['invalid datetime']",
        "format.named('dns1123Label').hasValue() && !format.named('nope').hasValue()",
        "format.named('dns1123Label').value().validate('A').value().size() == 1",
    ],
    "semver": [
        "isSemver('1.2.3') && isSemver('1.2.3-rc.1+b') && !isSemver('1.2') && !isSemver('v1.2.3')",
        "isSemver('v1.2', true) && isSemver('01.2.3', true)",
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2",
        "semver('1.2.3').patch() == 3",
        "semver('v1.2', true) == semver('1.2.0')",
        "semver('1.2.3').isLessThan(semver('1.10.0'))",
        "semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1'))",
        "semver('1.0.0-alpha').compareTo(semver('1.0.0-alpha.1')) == -1",
        "semver('1.0.0-2').compareTo(semver('1.0.0-10')) == -1",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(text, id=f"{name}:{text[:60]}")
        for name, texts in TRUE.items()
        for text in texts
    ],
)
def test_function_gives_what_the_language_promises(source: str) -> None:
    assert evaluate(source) is True


def test_every_declared_function_has_an_example() -> None:
    examples = " ".join(text for family in TRUE.values() for text in family)
    asking = {overload.function for overload in authorizer.overloads()}
    names = [name for name in KUBERNETES.names() if name[0].isalpha() and name not in asking]
    words = [name.rpartition(".")[2] for name in names if "@" not in name]

    missing = [word for word in words if not re.search(rf"\b{word}\(", examples)]

    assert missing == []


ERRORS = {
    "1 / 0 == 1": "division by zero",
    "1 % 0 == 1": "modulus by zero",
    "9223372036854775807 + 1 == 0": "integer overflow",
    "-(-9223372036854775808) == 0": "integer overflow",
    "0u - 1u == 0u": "unsigned integer overflow",
    "[1][3] == 1": "index out of bounds: 3",
    "{'a': 1}['b'] == 1": "no such key: b",
    "{'a': 1}.b == 1": "no such key: b",
    "[1].filter(x, false).min() == 1": "min called on empty list",
    "[1].filter(x, false).max() == 1": "max called on empty list",
    "optional.none().value() == 1": "optional.none() dereference",
    "'a'.substring(3) == ''": "index out of range: 3",
    "'abc'.substring(2, 1) == ''": "invalid substring range. start: 2, end: 1",
    "'a'.charAt(9) == ''": "index out of range: 9",
    "quantity('1.5').asInteger() == 1": "cannot convert value to integer",
    "dyn(1) + 'a' == 'b'": "no such overload",
    "dyn('a').startsWith('a') && dyn(1).startsWith('a')": "no such overload",
    "{'a': [1][dyn(0)]}.map(k, int(k))[0] == 1": "type conversion error from 'string' to 'int'",
    "[1].slice(0, 5) == [1]": "cannot slice(0, 5), list is length 1",
}


@pytest.mark.parametrize("source", ERRORS)
def test_a_function_that_cannot_answer_says_why(source: str) -> None:
    with pytest.raises(CelError, match=re.escape(ERRORS[source])):
        evaluate(source)


@pytest.mark.parametrize(
    "source",
    [
        "math.greatest(1, 2) == 2",
        "math.ceil(1.5) == 2.0",
        "'abc'.reverse() == 'cba'",
        "cel.bind(x, 1, x == 1)",
        "base64.encode(b'a') == 'YQ=='",
        "quantity('1').sign() == 1",
        "authorizer.path('/x').check('get').allowed()",
    ],
)
def test_functions_that_upstream_lacks_do_not_compile(source: str) -> None:
    with pytest.raises(BadExpression):
        analyse(source, {})

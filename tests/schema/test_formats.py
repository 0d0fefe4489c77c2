"""Which texts each named format accepts."""

from __future__ import annotations

import pytest

from instar.kube.schema.formats.named import is_supported, string_format

ACCEPTED: dict[str, list[str]] = {
    "bsonobjectid": ["507f1f77bcf86cd799439011"],
    "uri": ["http://a.b/c?d#e", "/foo", "mailto:x@y", "http://[::1]:80/", "urn:a:b"],
    "email": ["a@b", "Bob <a@b.c>", '"q q"@x.y'],
    "hostname": ["a.example.com", "localhost", "123", "xn--a.de", "☃.net"],
    "ipv4": ["10.0.0.1", "010.0.0.1", "::ffff:1.2.3.4"],
    "ipv6": ["::1", "fe80::1", "::ffff:1.2.3.4"],
    "cidr": ["10.0.0.1/8", "010.0.0.0/8", "fe80::/10"],
    "mac": ["00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01"],
    "uuid": ["A8098C1A-f86e-11da-bd1a-00112444be1e", "a8098c1af86e11dabd1a00112444be1e"],
    "uuid3": ["6fa459ea-ee8a-3ca4-894e-db77e160355e"],
    "uuid4": ["16fd2706-8baf-433b-82eb-8c7fada847da"],
    "uuid5": ["886313e1-3b8a-5372-9b90-0c9aee199e5d"],
    "isbn": ["0321751043", "978-0321751041"],
    "isbn10": ["0-321-75104-3", "080442957X"],
    "isbn13": ["978 0321751041"],
    "creditcard": ["4111-1111-1111-1111", "378282246310005"],
    "ssn": ["111-11-1111", "111 11 1111"],
    "hexcolor": ["#FFF", "a0b1c2"],
    "rgbcolor": ["rgb(0, 100,255)"],
    "byte": ["YQ==", "+/+/"],
    "password": ["", "anything"],
    "date": ["2024-02-29"],
    "date-time": [
        "2024-02-29T23:59:59Z",
        "2024-01-01t00:00:00.123z",
        "2024-01-01T00:00:00+99:99",
    ],
    "duration": ["1.5h", "-1s", "0", "3 days", "2weeks", "abc 5m", "1h30m"],
    "k8s-short-name": ["a-1", "1"],
    "k8s-long-name": ["a.b-c.1"],
}
REFUSED: dict[str, list[str]] = {
    "bsonobjectid": ["507f1f77bcf86cd79943901", "z" * 24],
    "uri": ["", "foo", "foo/bar", "http://a b/", "/%zz", ":x"],
    "email": ["a", "a@", "Bob a@b>", "a@b c"],
    "hostname": ["", "-a.com", "a_b.com", "a.c", "a.123", "a." + "b" * 64 + ".com"],
    "ipv4": ["10.0.0", "256.0.0.1", "::1", "10.0.0.1 "],
    "ipv6": ["1.2.3.4", ":::", "fe80::1%eth0", "::ffff:01.2.3.4"],
    "cidr": ["10.0.0.1", "10.0.0.1/33", "::/129", "10.0.0.1/-1"],
    "mac": ["00:00:5e:00:53", "00:00-5e:00:53:01", "0000.5e00"],
    "uuid": ["a8098c1a", "g8098c1a-f86e-11da-bd1a-00112444be1e"],
    "uuid4": ["16fd2706-8baf-433b-72eb-8c7fada847da"],
    "isbn": ["0321751044"],
    "creditcard": ["4111-1111-1111-1112", "1234567890123456"],
    "ssn": ["111111111", "111-11-11111"],
    "hexcolor": ["#ffff", "#ggg"],
    "rgbcolor": ["rgb(256,0,0)", "rgba(0,0,0)"],
    "byte": ["", "YQ=", "-_-_"],
    "date": ["2024-02-30", "2024-2-3", "24-02-03"],
    "date-time": ["2024-01-01T00:00:00", "2024-01-01T24:00:00Z", "2024-01-01T00:00:60Z", "x"],
    "duration": ["", "5", "5 parsecs", "h"],
    "k8s-short-name": ["A", "-a", "a.b", "a" * 64],
    "k8s-long-name": ["a..b", "a" * 254],
}


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), cases(ACCEPTED))
def test_accepted(name: str, text: str) -> None:
    accepts = string_format(name)
    assert accepts is not None
    assert accepts(text)


@pytest.mark.parametrize(("name", "text"), cases(REFUSED))
def test_refused(name: str, text: str) -> None:
    accepts = string_format(name)
    assert accepts is not None
    assert not accepts(text)


def test_dashes_in_names_do_not_count() -> None:
    assert string_format("datetime") is string_format("date-time")
    assert is_supported("int32")
    assert not is_supported("int64x")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("duration", "1" * 200_000 + "x"),
        ("email", "a" * 200_000 + "<"),
        ("email", "a " * 100_000 + "<x>"),
        ("uri", "a" * 200_000),
        ("hostname", "a-" * 100_000),
        ("k8s-long-name", "a." * 100_000),
    ],
)
def test_hostile_texts_are_refused_in_linear_time(name: str, text: str) -> None:
    accepts = string_format(name)
    assert accepts is not None
    assert not accepts(text)

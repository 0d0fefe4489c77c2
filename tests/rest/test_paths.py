"""Which URL and method mean what, and how everything else is turned away."""

from __future__ import annotations

import pytest

from tests.rest.support import MERGE, Collection, failed, make_crd, not_served, version, watching
from tests.support.server import LiveServer


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/apis/ex.io/v1/namespaces/default/nopes"),
        ("GET", "/apis/nope.ex.io/v1/namespaces/default/foos"),
        ("GET", "/apis/ex.io/v2/namespaces/default/foos"),
        ("GET", "/apis/ex.io/v1alpha1/namespaces/default/foos"),
        ("POST", "/apis/ex.io/v1/foos"),
        ("DELETE", "/apis/ex.io/v1/foos"),
        ("GET", "/apis/ex.io/v1/foos/a"),
        ("PUT", "/apis/ex.io/v1/foos/a"),
        ("PATCH", "/apis/ex.io/v1/foos/a"),
        ("DELETE", "/apis/ex.io/v1/foos/a"),
        ("GET", "/apis/ex.io/v1/namespaces/default/bars"),
        ("POST", "/apis/ex.io/v1/namespaces/default/bars"),
        ("GET", "/apis/ex.io/v1/namespaces/default/bars/a"),
        ("GET", "/nope"),
        ("GET", "/apis/ex.io/v2"),
        ("GET", "/apis/nope.ex.io"),
    ],
)
def test_an_unserved_path_is_a_plain_text_404(
    foos: Collection, bars: Collection, method: str, path: str
) -> None:
    not_served(foos.server.request(method, foos.say(path), {} if method != "GET" else None))


def test_an_undeclared_subresource_is_a_404_naming_the_object(foos: Collection) -> None:
    foos.create("sub")
    for name in ("sub", "absent"):
        answer = foos.request("GET", f"/{name}/bogus")
        details = failed(answer, 404, "NotFound", foos.say(f'foos.ex.io "{name}" not found'))
        assert details == {"name": name, "group": foos.group, "kind": "foos"}
    beta = foos.at(version="v1beta1").request("GET", "/sub/status")
    failed(beta, 404, "NotFound", foos.say('foos.ex.io "sub" not found'))


@pytest.mark.parametrize(
    ("method", "rest", "verb"),
    [
        ("POST", "/a/status", "create"),
        ("DELETE", "/a/status", "delete"),
        ("POST", "/a/scale", "create"),
        ("DELETE", "/a/scale", "delete"),
        ("OPTIONS", "/a", ""),
        ("OPTIONS", "", ""),
        ("OPTIONS", "/a/status", ""),
    ],
)
def test_a_method_without_meaning_is_405(
    foos: Collection, method: str, rest: str, verb: str
) -> None:
    answer = foos.request(method, rest)
    text = foos.say(f'{verb} is not supported on resources of kind "foos.ex.io"')
    details = failed(answer, 405, "MethodNotAllowed", text)
    assert details == {"group": foos.group, "kind": "foos"}
    assert answer.header("allow") is None


def test_put_and_patch_of_a_collection_need_a_name(foos: Collection) -> None:
    failed(foos.request("PUT", "", {}), 400, "BadRequest", "name must be provided")
    answer = foos.request("PATCH", "", {}, content_type=MERGE)
    failed(answer, 400, "BadRequest", "name must be provided")
    answer = foos.request("PATCH", "", {}, content_type="text/plain")
    assert answer.status == 415, "a patch's content type is checked first"


def test_post_to_a_named_url_creates_what_the_body_names(foos: Collection) -> None:
    answer = foos.request("POST", "/ignored", foos.obj("post-named"))
    assert answer.status == 201
    assert answer.json["metadata"]["name"] == "post-named"


def test_path_parts_after_the_subresource_are_ignored(foos: Collection) -> None:
    foos.create("deep")
    answer = foos.request("GET", "/deep/status/x")
    assert (answer.status, answer.json["kind"]) == (200, "Foo")


def test_watch_of_a_named_url_is_a_plain_get(foos: Collection) -> None:
    foos.create("named-watch")
    answer = foos.request("GET", "/named-watch?watch=1")
    assert (answer.status, answer.json["kind"]) == (200, "Foo")


@pytest.mark.parametrize("value", ["maybe", "", "1", "TRUE"])
def test_anything_but_false_and_0_means_watch(foos: Collection, value: str) -> None:
    with watching(foos.server, f"{foos.path}?watch={value}") as stream:
        assert stream.answer.status == 200
        assert stream.answer.getheader("transfer-encoding") == "chunked"


@pytest.mark.parametrize("value", ["false", "0", "False", "FALSE"])
def test_false_and_0_mean_list(foos: Collection, value: str) -> None:
    answer = foos.request("GET", f"?watch={value}")
    assert answer.json["kind"] == "FooList"


def test_export_is_refused(foos: Collection) -> None:
    foos.create("export")
    text = "the export parameter, deprecated since v1.14, is no longer supported"
    failed(foos.request("GET", "/export?export=true"), 400, "BadRequest", text)


def test_the_deprecated_watch_prefix_watches_a_collection_or_one_object(
    foos: Collection, bars: Collection
) -> None:
    foos.create("prefix-1")
    foos.create("prefix-2")
    bars.create("prefix-3")
    end = "?allowWatchBookmarks=true"
    for rest, names in (
        ("/namespaces/default/foos/prefix-2", ["prefix-2"]),
        ("/namespaces/default/foos/absent", []),
        ("/bars/prefix-3", ["prefix-3"]),
        ("/bars", ["prefix-3"]),
    ):
        with watching(foos.server, f"{foos.root}/watch{rest}{end}") as stream:
            assert stream.initial_names() == names
    for rest in ("/foos", "/namespaces/default/foos"):
        with watching(foos.server, f"{foos.root}/watch{rest}{end}") as stream:
            assert {"prefix-1", "prefix-2"} <= set(stream.initial_names())


def test_head_answers_like_get_without_a_body(foos: Collection) -> None:
    foos.create("head")
    head, get = foos.request("HEAD", "/head"), foos.request("GET", "/head")
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-length") == str(len(get.body))
    assert foos.request("HEAD", "/absent").status == 404
    assert foos.request("HEAD", "").status == 200


def test_a_deprecated_version_warns_on_every_answer(foos: Collection) -> None:
    beta = foos.at(version="v1beta1")
    text = foos.say('299 - "ex.io/v1beta1 Foo is deprecated; use ex.io/v1 Foo"')
    beta.create("old")
    for method, rest, status in (
        ("GET", "", 200),
        ("GET", "/old", 200),
        ("GET", "/absent", 404),
        ("GET", "/old/bogus", 404),
        ("DELETE", "/old", 200),
    ):
        answer = beta.request(method, rest)
        assert (answer.status, answer.warnings) == (status, [text])
    with beta.watch() as stream:
        assert stream.answer.getheader("warning") == text
    assert foos.server.request("GET", beta.root).warnings == []
    assert beta.at(version="v1alpha1").request("GET", "").warnings == []


def test_recommended_versions_by_priority(server: LiveServer) -> None:
    group = "recommend.ex.io"
    server.create_crd(
        make_crd(
            group,
            [
                version("v1beta2", storage=True),
                version("foo1"),
                version("v1alpha1", deprecated=True),
                version("foo10", deprecated=True),
                version("v10", deprecated=True),
                version("v1alpha2", deprecated=True, deprecationWarning='custom "q" \\ msg'),
            ],
        )
    )
    wanted = {
        "v1alpha1": [f"{group}/v1alpha1 Foo is deprecated; use {group}/v1beta2 Foo"],
        "foo10": [f"{group}/foo10 Foo is deprecated; use {group}/v1beta2 Foo"],
        "v10": [f"{group}/v10 Foo is deprecated"],
        "v1alpha2": ['custom \\"q\\" \\\\ msg'],
        "v1beta2": [],
        "foo1": [],
    }
    for name, texts in wanted.items():
        answer = server.request("GET", f"/apis/{group}/{name}/foos")
        assert answer.warnings == [f'299 - "{text}"' for text in texts]

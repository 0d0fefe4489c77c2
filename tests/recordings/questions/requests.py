"""Requests themselves: bodies that cannot be read, field validation, options, paths, methods,
media types, dry runs, metadata of objects."""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.json_values import Object
from tests.recordings.scenarios import YAML, Scenario, with_spec

_SCHEMA = with_spec(a={"type": "string"}, n={"type": "integer"}, o={"type": "object", "properties": {"x": {"type": "string"}}},
                    l={"type": "array", "items": {"type": "object", "properties": {"y": {"type": "string"}}}})  # fmt: skip
_STRICTNESS = ("Strict", "Warn", "Ignore")


def _text(scenario: Scenario, spec: str, metadata: str = '"name":"a"', more: str = "") -> str:
    return f'{{"apiVersion":"{scenario.group}/v1","kind":"Foo","metadata":{{{metadata}}},"spec":{spec}{more}}}'


def _validation() -> Iterator[Scenario]:
    scenario = Scenario("field-validation")
    scenario.make_crd(scenario.crd(_SCHEMA))
    bodies = [
        _text(scenario, '{"unknown":1}'), _text(scenario, '{"o":{"z":1},"l":[{"y":"1","q":1},{"r":2}]}'), _text(scenario, '{"a":"1","a":"2"}'),
        _text(scenario, '{"o":{"x":"1","x":"2"},"o":{}}'), _text(scenario, "{}", more=',"extra":1,"other":2'), _text(scenario, "{}", '"name":"a","unknown":1'),
        _text(scenario, "{}", '"name":"a","labels":{"x":"1","x":"2"}'), _text(scenario, "{}", '"name":"a","name":"b"'), _text(scenario, "{}", more=',"spec":{"a":"1"}'),
        _text(scenario, '{"A":"1"}'), _text(scenario, '{"n":"x","unknown":1}'), _text(scenario, "{}", '"Name":"a"'), _text(scenario, "{}", more=',"status":{"x":1}'),
        _text(scenario, '{"l":[{"y":"1","y":"2"},{"y":"3","y":"4"}]}'), _text(scenario, "{}", '"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","zzz":1}]'),
    ]  # fmt: skip
    for body in bodies:
        for strictness in (*_STRICTNESS, ""):
            scenario.post(f"{scenario.path('foos')}?dryRun=All&fieldValidation={strictness}", body)
    scenario.post(f"{scenario.path('foos')}?dryRun=All&fieldValidation=strict", bodies[0])
    scenario.post(f"{scenario.path('foos')}?dryRun=All", bodies[0])
    yaml = f"apiVersion: {scenario.group}/v1\nkind: Foo\nmetadata:\n  name: y\nspec:\n  a: '1'\n  a: '2'\n  unknown: 1\n"
    for strictness in _STRICTNESS:
        scenario.post(
            f"{scenario.path('foos')}?dryRun=All&fieldValidation={strictness}",
            yaml,
            "yaml",
            media=YAML,
        )
    yield scenario
    built_in = Scenario("field-validation-builtin")
    texts = [
        '{"metadata":{"name":"a"},"data":{"a":"1"},"unknown":1}', '{"metadata":{"name":"a"},"data":{"a":"1","a":"2"}}', '{"metadata":{"name":"a","zz":1},"Data":{"a":"1"}}',
        '{"metadata":{"name":"a"},"data":{"a":1}}', '{"metadata":{"name":"a"},"data":[]}', '{"metadata":[],"data":{}}', '{"metadata":{"name":"a","labels":{"a":1}}}',
        '{"metadata":{"name":"a","creationTimestamp":"x"}}', '{"metadata":{"name":"a"},"binaryData":{"a":"%"}}', '{"metadata":{"name":"a"},"immutable":"yes"}',
        '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}', '{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"a"}}', '{"kind":"ConfigMap","metadata":{"name":"a"}}',
        '{"metadata":{"name":"a","annotations":null},"data":null}', '{"metadata":{"name":"a"},"data":{"a":null}}', '{"METADATA":{"NAME":"a"}}',
    ]  # fmt: skip
    for text in texts:
        for strictness in (*_STRICTNESS, ""):
            built_in.post(
                f"{built_in.path('configmaps', group='')}?dryRun=All&fieldValidation={strictness}",
                text,
            )
    yield built_in


def _bodies() -> Scenario:
    scenario = Scenario("bodies")
    scenario.make_crd(scenario.crd(_SCHEMA))
    good = _text(scenario, "{}")
    texts = [
        "", " ", "{", "}", "[]", "null", "5", '"x"', "{}", good[:-1], good + "x", good + good, good.replace('"Foo"', '"Bar"'), good.replace("/v1", "/v2"), good.replace('"Foo"', "5"),
        good.replace('"Foo"', '""'), good.replace("kind", "Kind"), good.replace(f"{scenario.group}/", ""), "\x00", '{"a":\x01}', '{"a":"\\ud800"}', '{"a":1e999}', '{"a":01}', "{'a':1}",
        good.replace('"metadata":{"name":"a"}', '"metadata":null'), good.replace('"metadata":{"name":"a"}', '"metadata":5'), good.replace('"name":"a"', '"name":5'),
        good.replace('"name":"a"', '"name":"a","labels":{"x":5}'), good.replace('"name":"a"', '"name":"a","generation":"x"'), good.replace('"name":"a"', '"name":"a","finalizers":"x"'),
        good.replace('"name":"a"', '"name":"a","ownerReferences":{}'), good.replace('"name":"a"', '"name":"a","creationTimestamp":"yesterday"'), good.replace('"name":"a"', '"name":"a","managedFields":[5]'),
        good.replace('"name":"a"', '"name":"a","deletionGracePeriodSeconds":1.5'), good.replace('"name":"a"', '"name":"a","annotations":["x"]'), good.replace('"name":"a"', '"name":"a","uid":7'),
        _text(scenario, "null"), _text(scenario, "[]"), _text(scenario, '"x"'), _text(scenario, "5"), "[" * 200, '{"a":' * 200,
    ]  # fmt: skip
    foos = scenario.path("foos")
    for text in texts:
        scenario.post(f"{foos}?dryRun=All", text)
        scenario.post(
            f"{scenario.path('configmaps', group='')}?dryRun=All",
            text.replace(f"{scenario.group}/v1", "v1")
            .replace('"Foo"', '"ConfigMap"')
            .replace(',"spec":{}', ""),
        )
    for media in (
        "text/plain",
        "application/json; charset=utf-8",
        "application/vnd.kubernetes.protobuf",
        "",
        "application/xml",
        "application/merge-patch+json",
        "*/*",
        "application/cbor",
        "application/x-www-form-urlencoded",
    ):
        scenario.post(f"{foos}?dryRun=All", good, f"media {media}", media=media)
    for text in (
        "a: [",
        "a: b: c",
        "- a",
        "--- \n---\n",
        "a: &x 1\nb: *x",
        "\t",
        "kind: Foo",
        "%YAML 9\n---\na: 1",
        "a: !!binary x",
    ):
        scenario.post(f"{foos}?dryRun=All", text, "yaml", media=YAML)
    return scenario


_OPTIONS = (
    "dryRun=All", "dryRun=all", "dryRun=", "dryRun=All&dryRun=All", "dryRun=All&dryRun=x", "dryRun=None", "fieldManager=a", "fieldManager=" + "m" * 129, "fieldManager=%00", "fieldManager=%C3%A9",
    "fieldValidation=x", "pretty=true", "pretty=1", "unknown=1", "timeout=1s", "timeout=x", "timeout=0", "force=true", "limit=x", "resourceVersion=x", "%zz=1", "a=b;c=d",
)  # fmt: skip


def _options() -> Scenario:
    scenario = Scenario("options")
    maps = scenario.path("configmaps", group="")
    scenario.post(maps, {"metadata": {"name": "base"}, "data": {"a": "1"}})
    for option in _OPTIONS:
        scenario.post(f"{maps}?{option}", {"metadata": {"name": "made"}}, f"post {option}")
        scenario.delete(f"{maps}/made", None, "gone", only_code=True)
        scenario.put(
            f"{maps}/base?{option}",
            {"metadata": {"name": "base"}, "data": {"a": option}},
            f"put {option}",
        )
        scenario.merge(f"{maps}/base?{option}", {"data": {"b": option}}, f"patch {option}")
        scenario.get(f"{maps}/base?{option}", f"get {option}")
    return scenario


def _paths() -> Scenario:
    scenario = Scenario("paths")
    scenario.make_crd(scenario.crd(_SCHEMA))
    foos = scenario.path("foos")
    scenario.post(foos, scenario.object("a", spec={"a": "1"}))
    group = f"/apis/{scenario.group}"
    paths = [
        f"{foos}/none", f"{foos}/a/status", f"{foos}/a/scale", f"{foos}/a/other", f"{foos}/a/status/x", f"{group}/v2/foos", f"{group}/v1/bars", f"{group}/v1/foos", f"{group}/v1/foos/a",
        f"{group}/v1/namespaces/{scenario.name}", f"{group}/v1/namespaces/none/foos", f"{group}/v1/namespaces/none/foos/a", f"{foos}/", f"{foos}/a/", f"{group}/v1/namespaces//foos",
        "/apis/none.rec.example", "/apis/none.rec.example/v1", "/api/v1/none", "/api/v2", "/apis/apps/v2", "/apis/apps/v1/none", "/api/v1/namespaces/none", "/api/v1/namespaces/none/pods",
        "/api/v1/namespaces/none/pods/x", f"/api/v1/namespaces/{scenario.name}/status", f"/api/v1/namespaces/{scenario.name}/finalize", "/none", "/api/v1/pods/x", "/api/v1/nodes/x/status",
        "/api/v1/namespaces/x/nodes", "/api/v1/namespaces/x/nodes/y", "/apis/apps", "/api/v1/componentstatuses/none", "/healthz/none", "/version/x",
        f"{foos}/%2e%2e", f"{foos}/a%2Fb", f"{foos}/A", f"{foos}/a%20b", "/api/v1/namespaces/%zz", f"/apis/{scenario.group}/v1/namespaces/{scenario.name}/foos/a/b/c/d",
    ]  # fmt: skip
    for path in paths:
        scenario.get(path)
    for method in ("PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"):
        for path in (f"{foos}/none", f"{group}/v1", "/none", f"{foos}/a/other"):
            if method != "HEAD":
                scenario.ask(
                    method,
                    path,
                    {} if method in ("PUT", "POST", "PATCH") else None,
                    f"{method} {path.rpartition('/')[2]}",
                )
    scenario.ask("PUT", foos, {}, "put of a collection")
    scenario.ask("POST", f"{foos}/a", {}, "post of an object")
    scenario.ask("PUT", f"{group}/v1/foos", {}, "put over namespaces")
    scenario.ask("POST", f"{group}/v1/foos", scenario.object("x"), "post over namespaces")
    scenario.ask("POST", "/api/v1/pods", {"metadata": {"name": "x"}}, "pod over namespaces")
    scenario.ask(
        "POST", f"{group}/v1/namespaces/none/foos", scenario.object("x"), "no such namespace"
    )
    scenario.ask(
        "POST",
        "/api/v1/namespaces/none/configmaps",
        {"metadata": {"name": "x"}},
        "no such namespace for a map",
    )
    scenario.ask(
        "POST", foos, scenario.object("x", metadata={"namespace": "other"}), "other namespace"
    )
    scenario.ask("PUT", f"{foos}/a", scenario.object("b"), "other name")
    scenario.ask(
        "PUT",
        f"{foos}/a",
        scenario.object("a", metadata={"namespace": "other"}),
        "put in other namespace",
    )
    for accept in ("application/json", "application/yaml", "text/html", "application/xml", "*/*", "application/*", "", "application/json;q=0", "application/cbor", "text/plain, application/json",
                   "application/json;as=Other;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=x",
                   "application/json;stream=watch", "application/json;pretty=1", "x"):  # fmt: skip
        scenario.get(f"{foos}/a", f"accept {accept}", accept=accept)
        if accept != "application/yaml":  # managedFields of a bootstrap object
            scenario.get("/api/v1/namespaces/default", f"accept {accept}", accept=accept)
    return scenario


_NAMES = (
    "",
    "A",
    "a_b",
    "a.b",
    "a b",
    "-a",
    "a-",
    "a" * 253,
    "a" * 254,
    "1",
    ".",
    "..",
    "a/b",
    "a%b",
    "é",
    "a..b",
    "a.-b",
    "status",
)
_METADATA: list[Object] = [
    {"labels": {"a": "b"}}, {"labels": {"": "b"}}, {"labels": {"a b": "c"}}, {"labels": {"a/b/c": "d"}}, {"labels": {"A.B/c": "d"}}, {"labels": {"a": "x" * 64}}, {"labels": {"a": "-"}}, {"labels": {"x" * 64: "b"}},
    {"labels": {"example.com/": "b"}}, {"labels": {"/a": "b"}}, {"labels": None}, {"annotations": {"a b": "c"}}, {"annotations": {"": ""}}, {"annotations": {"A/b": "any é\n"}}, {"annotations": {"x" * 64: ""}},
    {"finalizers": ["a"]}, {"finalizers": ["rec.example/a"]}, {"finalizers": [""]}, {"finalizers": ["a b"]}, {"finalizers": ["orphan", "foregroundDeletion"]}, {"finalizers": ["orphan"]}, {"finalizers": ["rec.example/a", "rec.example/a"]},
    {"ownerReferences": [{}]}, {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}]}, {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]},
    {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "Pod", "name": "a", "uid": "u"}]}, {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": True} for name in ("a", "b")]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}] * 2}, {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "blockOwnerDeletion": True}]},
    {"generateName": "gen-"}, {"generateName": "Gen-"}, {"generateName": ""}, {"namespace": "other"}, {"namespace": ""}, {"uid": "mine"}, {"resourceVersion": "1"}, {"resourceVersion": "x"}, {"generation": 5}, {"selfLink": "/x"},
    {"creationTimestamp": "2001-01-01T00:00:00Z"}, {"creationTimestamp": None}, {"deletionTimestamp": "2001-01-01T00:00:00Z"}, {"deletionGracePeriodSeconds": 5}, {"managedFields": []}, {"managedFields": [{"manager": "x"}]},
    {"annotations": {"big": "x" * 1000, "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
]  # fmt: skip


def _metadata() -> Iterator[Scenario]:
    for name, builtin in (("metadata-custom", False), ("metadata-builtin", True)):
        scenario = Scenario(name)
        if builtin:
            path = scenario.path("configmaps", group="")
        else:
            scenario.make_crd(scenario.crd(_SCHEMA))
            path = scenario.path("foos")

        def made(scenario: Scenario, metadata: Object, builtin: bool) -> Object:
            own = (
                {"apiVersion": "v1", "kind": "ConfigMap"}
                if builtin
                else {"apiVersion": f"{scenario.group}/v1", "kind": "Foo"}
            )
            return {**own, "metadata": metadata}

        for each in _NAMES:
            scenario.post(
                f"{path}?dryRun=All", made(scenario, {"name": each}, builtin), f"name {each[:20]}"
            )
            if len(each) < 50:  # longer ones are cut, and the mark with them
                generated = {"generateName": f"{each}gen-"}
                scenario.post(
                    f"{path}?dryRun=All",
                    made(scenario, generated, builtin),
                    "generated",
                    only_failure=True,
                )
        for metadata in _METADATA:
            scenario.post(
                f"{path}?dryRun=All", made(scenario, {"name": "m", **metadata}, builtin), "create"
            )
        scenario.post(path, made(scenario, {"name": "u", "labels": {"l": "1"}}, builtin), "made")
        for metadata in _METADATA:
            scenario.put(
                f"{path}/u?dryRun=All",
                made(scenario, {"name": "u", **metadata}, builtin),
                "replace",
            )
        scenario.put(
            f"{path}/u",
            made(
                scenario,
                {"name": "u", "resourceVersion": "{{made.metadata.resourceVersion}}"},
                builtin,
            ),
            "fresh",
        )
        scenario.put(
            f"{path}/u",
            made(
                scenario,
                {
                    "name": "u",
                    "resourceVersion": "{{made.metadata.resourceVersion}}",
                    "labels": {"x": "y"},
                },
                builtin,
            ),
            "stale",
        )
        scenario.put(
            f"{path}/u",
            made(scenario, {"name": "u", "uid": "{{made.metadata.uid}}"}, builtin),
            "same uid",
        )
        scenario.put(f"{path}/none", made(scenario, {"name": "none"}, builtin), "put of none")
        scenario.put(
            f"{path}/none",
            made(scenario, {"name": "none", "uid": "x"}, builtin),
            "put of none with uid",
        )
        scenario.put(
            f"{path}/none",
            made(scenario, {"name": "none", "resourceVersion": "5"}, builtin),
            "put of none with revision",
        )
        scenario.post(path, made(scenario, {"name": "u"}, builtin), "exists")
        yield scenario


def scenarios() -> Iterator[Scenario]:
    yield from _validation()
    yield _bodies()
    yield _options()
    yield _paths()
    yield from _metadata()

"""Lists: selectors, pages, revisions, tables, partial objects; watches from a revision."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from instar.base.json_values import Object
from tests.recordings.scenarios import PARTIAL, PARTIAL_LIST, TABLE, Scenario, a_version, with_spec

_LABELS = (
    "a=1", "a==1", "a!=1", "a", "!a", "a in (1,2)", "a notin (1)", "a in ()", "a in (1", "a=1,b=2", "a=1,!b", "a = 1 , b != 2", "", ",", "a=", "a=b=c", "=1", "a>1", "a<2", "a>x", "a>1,a<3",
    "A/b=1", "a b=1", "a=é", "x/y/z", "a in (1,1)", "a notin (1,2),b", "rec.example/l=1", "a=" + "x" * 64, "!a,!b", "a in (,1)", "(a)", "a!", "!", "a in 1",
)  # fmt: skip
_FIELDS = (
    "metadata.name=o1", "metadata.name!=o1", "metadata.name==o1", "metadata.namespace=listing", "metadata.namespace!=listing", "metadata.name=o1,metadata.namespace=x", "spec.a=one", "spec.a!=one",
    "spec.n=2", "spec.b=true", "spec.none=1", "metadata.uid=x", "", "metadata.name", "metadata.name in (o1)", "=x", "metadata.name=", "spec.a=one,spec.n=1", "spec.a==", "a\\=b=c", "metadata.labels.a=1", "status.phase=x",
)  # fmt: skip
_PAGES = (
    "limit=2", "limit=0", "limit=-1", "limit=x", "limit=100", "limit=1.5", "continue=x", "continue=e30", "limit=2&continue=", "limit=2&resourceVersion=0", "limit=2&resourceVersion=1",
    "resourceVersion=0", "resourceVersion=x", "resourceVersion=-1", "resourceVersion=0&resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact",
    "resourceVersion=5&resourceVersionMatch=Other", "resourceVersionMatch=NotOlderThan", "resourceVersion=99999999&resourceVersionMatch=Exact", "resourceVersion=&resourceVersionMatch=",
    "sendInitialEvents=true", "sendInitialEvents=false", "allowWatchBookmarks=true", "timeoutSeconds=x", "timeoutSeconds=5", "labelSelector=a=1&limit=1", "fieldSelector=metadata.name=o1&limit=1",
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4In0", "shards=2", "limit=2&labelSelector=a", "resourceVersion=5&continue=x&limit=1",
)  # fmt: skip
_COLUMNS = [
    {"name": "Text", "type": "string", "jsonPath": ".spec.a"}, {"name": "Number", "type": "integer", "jsonPath": ".spec.n", "priority": 1, "description": "a number"},
    {"name": "Flag", "type": "boolean", "jsonPath": ".spec.b"}, {"name": "Items", "type": "string", "jsonPath": ".spec.l[*]"}, {"name": "Float", "type": "number", "format": "float", "jsonPath": ".spec.f"},
    {"name": "When", "type": "date", "jsonPath": ".spec.d"}, {"name": "Object", "type": "string", "jsonPath": ".spec.o"}, {"name": "Deep", "type": "string", "jsonPath": ".spec.o.x"},
    {"name": "Label", "type": "string", "jsonPath": ".metadata.labels.a"}, {"name": "Filter", "type": "string", "jsonPath": ".spec.lo[?(@.k==\"x\")].v"}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]  # fmt: skip
_SPECS: list[Object] = [
    {"a": "one", "n": 1, "b": True, "l": ["p", "q"], "f": 1.5, "d": "2001-01-01T00:00:00Z", "o": {"x": "y"}, "lo": [{"k": "x", "v": "found"}]}, {"a": "two", "n": 2, "b": False, "l": []}, {}, {"a": "", "n": 0, "f": 1e21},
    {"a": "one", "n": 1, "l": ["only"], "o": {}, "lo": [{"k": "y", "v": "no"}, {"k": "x", "v": "1"}, {"k": "x", "v": "2"}]},
]  # fmt: skip


def _prepared(name: str, scope: str = "Namespaced") -> Scenario:
    scenario = Scenario(name)
    string: Object = {"type": "string"}
    items = {"type": "array", "items": {"type": "object", "properties": {"k": string, "v": string}}}
    schema = with_spec(a=string, n={"type": "integer"}, b={"type": "boolean"}, l={"type": "array", "items": string}, f={"type": "number"}, d={"type": "string", "format": "date-time"},
                       o={"type": "object", "properties": {"x": string}}, lo=items)  # fmt: skip
    selectable = [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.n"}, {"jsonPath": ".spec.b"}]
    version = a_version(
        "v1", schema, additionalPrinterColumns=_COLUMNS, selectableFields=selectable
    )
    scenario.make_crd(scenario.crd([version], scope=scope))
    foos = scenario.path("foos") if scope == "Namespaced" else scenario.cluster_path("foos")
    for place, spec in enumerate(_SPECS):
        labels = [
            {"a": "1", "b": "2"},
            {"a": "2"},
            {},
            {"b": "3", "rec.example/l": "1"},
            {"a": "10"},
        ][place]
        scenario.post(
            foos,
            scenario.object(f"o{place}", spec=spec, metadata={"labels": labels} if labels else {}),
            f"o{place}",
        )
    return scenario


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _selectors() -> Iterator[Scenario]:
    scenario = _prepared("listing")
    foos = scenario.path("foos")
    for selector in _LABELS:
        scenario.get(
            f"{foos}?labelSelector={_quoted(selector)}",
            f"labels {selector[:30]}",
            accept=PARTIAL_LIST,
        )
    for selector in _FIELDS:
        scenario.get(
            f"{foos}?fieldSelector={_quoted(selector)}", f"fields {selector}", accept=PARTIAL_LIST
        )
    scenario.get(f"/apis/{scenario.group}/v1/foos", "over namespaces")
    yield scenario
    built_in = Scenario("listing-maps")
    maps = built_in.path("configmaps", group="")
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", None)):
        built_in.post(
            maps,
            {
                "metadata": {"name": name, **({"labels": labels} if labels else {})},
                "data": {name: name},
            },
        )
    for selector in (
        "x=1",
        "x",
        "!x",
        "x in (1,2)",
        "x notin (1)",
        "x>1",
        "bad value=1",
        "x=1,x=2",
    ):
        built_in.get(f"{maps}?labelSelector={_quoted(selector)}", f"labels {selector}")
    for selector in (
        "metadata.name=a",
        "metadata.name!=a",
        "data.a=a",
        "metadata.namespace=listing-maps",
        "x",
    ):
        built_in.get(f"{maps}?fieldSelector={_quoted(selector)}", f"fields {selector}")
    for resource, fields in (("pods", ("spec.nodeName=x", "status.phase=Running", "spec.none=x", "spec.restartPolicy=Always", "status.podIP=")), ("secrets", ("type=Opaque", "data=x")),
                             ("events", ("involvedObject.name=x", "reason=x", "type=Normal", "none=x", "source=x")), ("services", ("spec.clusterIP=None", "spec.type=ClusterIP", "spec.x=y"))):  # fmt: skip
        for field in fields:
            built_in.get(
                f"{built_in.path(resource, group='')}?fieldSelector={_quoted(field)}",
                f"{resource} {field}",
            )
    yield built_in


def _pages() -> Iterator[Scenario]:
    scenario = _prepared("paging")
    foos = scenario.path("foos")
    for option in _PAGES:
        if "sendInitial" not in option or "watch" not in option:
            scenario.get(f"{foos}?{option}", option[:40], accept=PARTIAL_LIST)
    scenario.get(f"{foos}?limit=2", "first", accept=PARTIAL_LIST)
    scenario.get(
        f"{foos}?limit=2&continue={{{{first.metadata.continue}}}}", "second", accept=PARTIAL_LIST
    )
    scenario.get(
        f"{foos}?limit=2&continue={{{{second.metadata.continue}}}}", "third", accept=PARTIAL_LIST
    )
    scenario.get(
        f"{foos}?continue={{{{first.metadata.continue}}}}&resourceVersion=1", "with revision"
    )
    scenario.get(
        f"{foos}?continue={{{{first.metadata.continue}}}}&labelSelector=a",
        "other selector",
        accept=PARTIAL_LIST,
    )
    scenario.delete(f"{foos}/o3")
    scenario.get(
        f"{foos}?limit=2&continue={{{{first.metadata.continue}}}}",
        "consistent",
        accept=PARTIAL_LIST,
    )
    scenario.get(
        f"{foos}?resourceVersion={{{{first.metadata.resourceVersion}}}}&resourceVersionMatch=Exact",
        "exact",
        accept=PARTIAL_LIST,
    )
    scenario.get(
        f"{foos}?resourceVersion={{{{first.metadata.resourceVersion}}}}&resourceVersionMatch=NotOlderThan",
        "not older",
        accept=PARTIAL_LIST,
    )
    for option in (
        "resourceVersion=0",
        "resourceVersion=x",
        "resourceVersion={{o0.metadata.resourceVersion}}",
        "resourceVersionMatch=Exact",
        "limit=1",
    ):
        scenario.get(f"{foos}/o0?{option}", f"get {option}")
    yield scenario


def _tables() -> Iterator[Scenario]:
    for scope in ("Namespaced", "Cluster"):
        scenario = _prepared(f"tables-{scope.lower()}", scope)
        foos = scenario.path("foos") if scope == "Namespaced" else scenario.cluster_path("foos")
        for include in (
            "",
            "?includeObject=None",
            "?includeObject=Object",
            "?includeObject=Metadata",
            "?includeObject=x",
            "?limit=2",
            "?labelSelector=a",
        ):
            scenario.get(f"{foos}{include}", f"table {include}", accept=TABLE)
            scenario.get(f"{foos}/o0{include}", f"row {include}", accept=TABLE)
        for accept in (
            PARTIAL,
            PARTIAL_LIST,
            f"{TABLE},application/json",
            f"{PARTIAL},{TABLE}",
            "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        ):
            scenario.get(f"{foos}/o0", f"get {accept[17:45]}", accept=accept)
            scenario.get(foos, f"list {accept[17:45]}", accept=accept)
        scenario.post(
            foos,
            scenario.object("t", spec={"a": "x"}),
            "made as a table",
            headers={"Accept": TABLE},
        )
        scenario.post(
            foos,
            scenario.object("t", spec={"a": "x"}),
            "refused as a table",
            headers={"Accept": TABLE},
        )
        scenario.merge(
            f"{foos}/t", {"spec": {"a": "y"}}, "patched as partial", headers={"Accept": PARTIAL}
        )
        scenario.delete(f"{foos}/t", None, "deleted as a table", headers={"Accept": TABLE})
        scenario.get(f"{foos}/none", "none as a table", accept=TABLE)
        yield scenario


def _watches() -> Iterator[Scenario]:
    for name, builtin in (("watching", False), ("watching-maps", True)):
        scenario = Scenario(name)
        body: Object
        if builtin:
            path, body = scenario.path("configmaps", group=""), {"data": {"a": "1"}}
        else:
            scenario.make_crd(scenario.crd(with_spec(a={"type": "string"})))
            path, body = (
                scenario.path("foos"),
                {"apiVersion": f"{scenario.group}/v1", "kind": "Foo", "spec": {"a": "1"}},
            )
        scenario.get(path, "start", only_code=True)
        since = f"{path}?resourceVersion={{{{start.metadata.resourceVersion}}}}"
        for each in ("x", "y"):
            scenario.post(path, {**body, "metadata": {"name": each, "labels": {"l": each}}}, each)
        scenario.merge(f"{path}/x", {"metadata": {"labels": {"l": "y"}}})
        scenario.merge(f"{path}/y", {"metadata": {"labels": {"l": "x"}, "annotations": {"a": "b"}}})
        scenario.merge(f"{path}/x", {"metadata": {"labels": {"l": "y"}}}, "no change")
        scenario.delete(f"{path}/x", None, "x deleted")
        scenario.watch(since, 5, "all")
        scenario.watch(f"{since}&labelSelector=l=x", 3, "l=x")
        scenario.watch(f"{since}&labelSelector=l=y", 3, "l=y")
        scenario.watch(f"{since}&labelSelector=l!=x", 3, "l!=x")
        scenario.watch(f"{since}&fieldSelector=metadata.name=x", 3, "name x")
        scenario.watch(f"{since}&fieldSelector=metadata.name!=x", 2, "name not x")
        scenario.watch(
            f"{path}?resourceVersion={{{{y.metadata.resourceVersion}}}}", 3, "from the second"
        )
        scenario.watch(since, 5, "partial", accept=PARTIAL)
        scenario.watch(since, 5, "table", accept=TABLE)
        scenario.watch(f"{path}?resourceVersion=0&fieldSelector=metadata.name=y", 1, "from zero")
        scenario.watch(f"{path}?fieldSelector=metadata.name=y", 1, "from now")
        scenario.watch(f"{path}/y?resourceVersion=0", 1, "of an object")
        for option in ("resourceVersion=x", "resourceVersion=-1", "labelSelector=a%20b", "fieldSelector=x=y", "timeoutSeconds=x", "sendInitialEvents=true",
                       "sendInitialEvents=true&resourceVersionMatch=Exact", "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion=x", "limit=x", "continue=x"):  # fmt: skip
            scenario.get(
                f"{path}?watch=1&timeoutSeconds=1&{option}"
                if "timeout" not in option
                else f"{path}?watch=1&{option}",
                option,
            )
        yield scenario


def scenarios() -> Iterator[Scenario]:
    yield from _selectors()
    yield from _pages()
    yield from _tables()
    yield from _watches()

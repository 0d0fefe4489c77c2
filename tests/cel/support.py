"""Small helpers: run an expression, build a schema, read the corpus."""

from __future__ import annotations

from functools import cache
from time import thread_time
from typing import Any

from instar.kube.api.crd import is_crd
from instar.kube.api.encoding.manifests import only_document
from instar.kube.cel.engine import analyse, prepare
from instar.kube.cel.values import CelError
from instar.kube.schema.cel_rules.evaluate import CelProgram, compile_rules
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural
from tests.support.corpus import CORPUS, corpus
from tests.support.shared import demand_shared


def evaluate(source: str, limit: int = 1_000_000) -> Any:
    """The value; an error is raised."""
    value, _ = prepare(analyse(source, {}), ()).run((), limit, thread_time() + 10)
    if isinstance(value, CelError):
        raise value
    return value


def cost_of(source: str) -> int:
    return prepare(analyse(source, {}), ()).run((), 10**12, thread_time() + 10)[1]


def spec(properties: dict[str, Any], **more: Any) -> Structural:
    """A root schema with one object, ``spec``."""
    inner = {"type": "object", "properties": properties, **more}
    return structural({"type": "object", "properties": {"spec": inner}})


def program(schema: Structural) -> CelProgram:
    compiled = compile_rules(schema)
    assert compiled is not None
    return compiled


def errors(schema: Structural, new: Any, old: Any = None) -> list[str]:
    """Errors of ``spec`` values, as text."""
    before = None if old is None else {"spec": old}
    return [str(error) for error in program(schema).evaluate({"spec": new}, before).errors]


def warnings(schema: Structural, new: Any, old: Any = None) -> list[str]:
    before = None if old is None else {"spec": old}
    return program(schema).evaluate({"spec": new}, before).warnings


@cache
def corpus_crds() -> list[tuple[str, dict[str, Any]]]:
    """Every CRD of the corpus with its file; ``demand_shared`` decides where there is none."""
    return [(str(path.relative_to(CORPUS)), crd) for path, crd in corpus() if is_crd(crd)]


@cache
def gateway_schema(plural: str, version: str = "v1", release: str = "v1.4.0") -> Structural:
    file = CORPUS / "gateway-api" / release / f"gateway.networking.k8s.io_{plural}.yaml"
    demand_shared(file)
    crd = only_document(file.read_text(), str(file))
    for item in crd["spec"]["versions"]:
        if item["name"] == version:
            return structural(item["schema"]["openAPIV3Schema"])
    raise AssertionError(f"{plural} has no {version}")

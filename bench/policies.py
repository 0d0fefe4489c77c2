"""Measures the cost of admission policies: creates on 32 connections without a policy, with a bound
policy that does not match the resource, with one that matches (one validation), with a larger one
added (two validations, a variable, a message, a loop), and with a mutating one.

Prints requests per second over HTTP, and CPU time per request in process (best of several rounds),
which varies less on a busy machine.

``python -m bench.policies [--seconds 5]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.fixtures import BASE, CRDS, GROUP, PLURAL, crd, thing
from bench.inprocess import Caller
from bench.measure import Figures, Load
from bench.process import Measured, scratch, serving
from instar.server.lifecycle.lifetime import running
from instar.server.settings import Settings

_ROUNDS, _CREATES = 8, 150
_API = "admissionregistration.k8s.io/v1"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.policies", description=__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    figures: Figures = {}
    for name, policies in _SCENARIOS.items():
        # A server each: creates cost more the more there is.
        with scratch() as folder, serving(f"sqlite:{folder}/bench.db", folder) as server:
            server.call("POST", CRDS, crd())
            for what, policy, make in policies:
                _bind(server, what, policy, make())
            load = Load(server, options.seconds)
            figures |= load.measure(f"create, {name}", BASE, 32, "POST", thing())
        figures[f"in process, {name} µs CPU"] = asyncio.run(_in_process(policies))
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:{width}}  {value:10.1f}")


async def _in_process(policies: _Policies) -> float:
    async with running(Settings(port=0, storage="memory:")) as server:
        caller, new = Caller(server), json.dumps(thing()).encode()
        await caller.call("POST", CRDS, json.dumps(crd()).encode())
        for what, policy, make in policies:
            for path, obj in _objects(what, policy, make()):
                await caller.call("POST", path, json.dumps(obj).encode())
        best = float("inf")
        for _ in range(_ROUNDS):
            began = time.process_time()
            for _ in range(_CREATES):
                await caller.call("POST", BASE, new)
            best = min(best, (time.process_time() - began) / _CREATES * 1e6)
        return best


def _rules(group: str) -> dict[str, Any]:
    rule = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [PLURAL],
    }
    return {"resourceRules": [rule]}


def _small() -> dict[str, Any]:
    validation = {"expression": "object.spec.replicas <= 1000", "message": "too many replicas"}
    return {"matchConstraints": _rules(GROUP), "validations": [validation]}


def _validating(group: str) -> dict[str, Any]:
    return {
        "matchConstraints": _rules(group),
        "variables": [{"name": "replicas", "expression": "object.spec.?replicas.orValue(1)"}],
        "validations": [
            {
                "expression": "variables.replicas <= 1000",
                "messageExpression": "'too many replicas: ' + string(variables.replicas)",
            },
            {"expression": "object.spec.env.all(each, each.name != '')"},
        ],
    }


def _mutating() -> dict[str, Any]:
    expression = "Object{metadata: Object.metadata{labels: {'policy': 'here'}}}"
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    return {
        "matchConstraints": _rules(GROUP),
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
    }


def _bind(server: Measured, what: str, name: str, spec: dict[str, Any]) -> None:
    for path, obj in _objects(what, name, spec):
        made = json.loads(server.call("POST", path, obj))
        assert made["kind"] == obj["kind"], made


def _objects(what: str, name: str, spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return a policy and its binding with the paths to POST them to."""
    binding: dict[str, Any] = {"policyName": name}
    if what == "Validating":
        binding["validationActions"] = ["Deny"]
    for kind, body in (("Policy", spec), ("PolicyBinding", binding)):
        full = f"{what}Admission{kind}"
        plural = full.lower().removesuffix("y") + ("ies" if kind == "Policy" else "s")
        head = {"apiVersion": _API, "kind": full, "metadata": {"name": name}}
        yield f"/apis/{_API}/{plural}", {**head, "spec": body}


_Policies = list[tuple[str, str, Callable[[], dict[str, Any]]]]
_SMALL: _Policies = [("Validating", "small", _small)]
_SCENARIOS: dict[str, _Policies] = {
    "no policy": [],
    "a policy elsewhere": [("Validating", "elsewhere", lambda: _validating("others.example.com"))],
    "a validating policy": _SMALL,
    "two, one larger": [*_SMALL, ("Validating", "larger", lambda: _validating(GROUP))],
    "a mutating policy": [("Mutating", "here", _mutating)],
}


if __name__ == "__main__":
    main()

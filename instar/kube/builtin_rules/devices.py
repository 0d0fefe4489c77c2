"""Validates ResourceClaims, DeviceClasses and ResourceSlices (dynamic resource allocation).

Called by ``server/registry/kinds/devices.py``. CEL selectors are checked with a device of dynamic
type, so type errors inside it are not found.
"""

from __future__ import annotations

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    index,
    invalid,
    key,
    not_supported,
    required,
    too_long,
    too_many,
)
from instar.base.json_values import Object, same_json
from instar.kube.api.string_rules import (
    dns1123_label,
    dns1123_subdomain,
    label_value,
    qualified_name,
)
from instar.kube.builtin_rules.basics import (
    IMMUTABLE,
    choice_errors,
    dns_label_errors,
    immutable_errors,
    label_name_errors,
    texts_at,
)
from instar.kube.builtin_rules.go_internal_text import internal
from instar.kube.cel.engine import BadExpression, analyse
from instar.kube.cel.types import BOOL, DYN

_MOST_SELECTORS = 32
_MODES = ("All", "ExactCount")
_GROUP = "resource.k8s.io/v1"
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_LONGEST_DRIVER, _LONGEST_POOL, _MOST_POOLS = 63, 253, 1000
_VALUES = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_GO_VALUES = (
    "IntValue", "BoolValue", "StringValue", "VersionValue",
    "IntValues", "BoolValues", "StringValues", "VersionValues",
)  # fmt: skip


def claim_errors(spec: Object, path: str) -> list[FieldError]:
    devices, path = spec.get("devices") or {}, child(path, "devices")
    found: list[FieldError] = []
    names: set[str] = set()
    for position, request in enumerate(devices.get("requests") or ()):
        found += _request_errors(request, index(child(path, "requests"), position), names)
    for position, constraint in enumerate(devices.get("constraints") or ()):
        where = index(child(path, "constraints"), position)
        for at, name in enumerate(constraint.get("requests") or ()):
            if name not in names:
                found.append(invalid(index(child(where, "requests"), at), name, _UNKNOWN_REQUEST))
        kinds = [name for name in ("matchAttribute", "distinctAttribute") if constraint.get(name)]
        if len(kinds) != 1:
            text = (
                'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
                "fields are set"
            )
            found.append(required(where, text))
    return found


def _request_errors(request: Object, path: str, names: set[str]) -> list[FieldError]:
    name, exactly = request.get("name", ""), request.get("exactly")
    first = request.get("firstAvailable")
    found = _name_errors(name, child(path, "name"))
    if name in names:
        found.append(duplicate(path, name))
    names.add(name)
    if (exactly is None) == (not first):
        text = "exactly one of `exactly` or `firstAvailable` is required"
        found.append(required(path, text))
    if exactly is not None:
        found += _device_request_errors(exactly, child(path, "exactly"))
    for position, wish in enumerate(first or ()):
        where = index(child(path, "firstAvailable"), position)
        found += _name_errors(wish.get("name", ""), child(where, "name"))
        names.add(f"{name}/{wish.get('name', '')}")
        found += _device_request_errors(wish, where)
    return found


def _name_errors(name: str, path: str) -> list[FieldError]:
    return texts_at(path, name, dns1123_label(name))


def _device_request_errors(wish: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    name, mode = wish.get("deviceClassName", ""), wish.get("allocationMode", "")
    if not name:
        found.append(required(child(path, "deviceClassName")))
    else:
        found += texts_at(child(path, "deviceClassName"), name, dns1123_subdomain(name))
    found += _selector_errors(wish.get("selectors") or [], child(path, "selectors"))
    count = wish.get("count", 0)
    if mode not in _MODES:
        found.append(not_supported(child(path, "allocationMode"), mode, _MODES))
    elif mode == "ExactCount" and count <= 0:
        found.append(invalid(child(path, "count"), count, "must be greater than zero"))
    elif mode == "All" and count:
        text = "must not be specified when allocationMode is 'All'"
        found.append(invalid(child(path, "count"), count, text))
    return found


def _selector_errors(selectors: list[Object], path: str) -> list[FieldError]:
    if len(selectors) > _MOST_SELECTORS:
        return [too_many(path, len(selectors), _MOST_SELECTORS)]
    found: list[FieldError] = []
    for position, selector in enumerate(selectors):
        where = child(index(path, position), "cel")
        cel = selector.get("cel")
        if cel is None:
            found.append(required(where))
            continue
        text, where = cel.get("expression", ""), child(where, "expression")
        found += _expression_errors(text, where)
    return found


def _expression_errors(text: str, path: str) -> list[FieldError]:
    try:
        type = analyse(text, {"device": DYN}).type
    except BadExpression as error:
        return [invalid(path, text, f"compilation failed: {error}")]
    if type in (BOOL, DYN):
        return []
    return [invalid(path, text, f"must evaluate to bool or the unknown type, not {type}")]


def class_errors(spec: Object) -> list[FieldError]:
    found = _selector_errors(spec.get("selectors") or [], "spec.selectors")
    for position, config in enumerate(spec.get("config") or ()):
        where, opaque = child(index("spec.config", position), "opaque"), config.get("opaque")
        if opaque is None:
            found.append(required(where))
            continue
        driver = opaque.get("driver", "")
        found += texts_at(child(where, "driver"), driver, dns1123_subdomain(driver))
    name = spec.get("extendedResourceName")
    if name is not None and (qualified_name(name) or "/" not in name):
        text = "must be a valid extended resource name"
        found.append(invalid("spec.extendedResourceName", name, text))
    return found


def slice_errors(spec: Object) -> list[FieldError]:
    driver, pool = spec.get("driver", ""), spec.get("pool") or {}
    found: list[FieldError] = []
    if not driver:
        found.append(required("spec.driver"))
    else:
        found += texts_at("spec.driver", driver, dns1123_subdomain(driver.lower()))
    if not pool.get("name"):
        found.append(required("spec.pool.name"))
    if pool.get("resourceSliceCount", 0) <= 0:
        count = pool.get("resourceSliceCount", 0)
        found.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    found += _node_choice_errors(spec)
    names: set[str] = set()
    for position, device in enumerate(spec.get("devices") or ()):
        path, name = index("spec.devices", position), device.get("name", "")
        found += _name_errors(name, child(path, "name"))
        if name in names:
            found.append(duplicate(path, name))
        names.add(name)
        for attribute, value in (device.get("attributes") or {}).items():
            found += _attribute_errors(value, key(child(path, "attributes"), attribute))
    return found


def _node_choice_errors(spec: Object) -> list[FieldError]:
    given = [f"`{name}`" for name in _PLACES if spec.get(name)]
    listed = ", ".join(f"`{name}`" for name in _PLACES)
    if not given:
        return [required("spec", f"exactly one of {listed} is required")]
    if len(given) == 1:
        return []
    text = f"exactly one of {listed} is required, but multiple fields are set"
    return [invalid("spec", f"{{{', '.join(given)}}}", text)]


def _attribute_errors(value: Object, path: str) -> list[FieldError]:
    given = [name for name in _VALUES if value.get(name) is not None]
    if len(given) == 1:
        return []
    shown = {go: value.get(name) for go, name in zip(_GO_VALUES, _VALUES, strict=True)}
    return [invalid(path, shown if given else "", "exactly one value must be specified")]


def slice_change_errors(new: Object, old: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("nodeName", "driver"):
        found += immutable_errors(new.get(name), old.get(name), f"spec.{name}")
    after, before = (spec.get("pool") or {} for spec in (new, old))
    return found + immutable_errors(after.get("name"), before.get("name"), "spec.pool.name")


def frozen_spec_errors(new: Object, old: Object, type: str) -> list[FieldError]:
    if same_json(new["spec"], old["spec"]):
        return []
    return [invalid("spec", internal(f"{_GROUP}#{type}", new["spec"]), IMMUTABLE)]


def frozen_template_errors(new: Object, old: Object) -> list[FieldError]:
    if same_json(new["spec"], old["spec"]):
        return []
    shown = {"Spec": internal(f"{_GROUP}#ResourceClaimSpec", new["spec"].get("spec") or {})}
    return [invalid("spec", shown, IMMUTABLE)]


# Kinds that are served on request only ------------------------------------------------------------


def taint_rule_errors(spec: Object, old: Object | None = None) -> list[FieldError]:
    """Check a DeviceTaintRule; an effect that an update leaves as it is may be unknown."""
    found: list[FieldError] = []
    selector, taint = spec.get("deviceSelector") or {}, spec.get("taint") or {}
    if "driver" in selector:
        found += _driver_errors(selector["driver"], "spec.deviceSelector.driver")
    if "pool" in selector:
        found += _pool_errors(selector["pool"], "spec.deviceSelector.pool")
    if "device" in selector:
        found += dns_label_errors(selector["device"], "spec.deviceSelector.device")
    found += label_name_errors(taint.get("key", ""), "spec.taint.key")
    value, effect = taint.get("value", ""), taint.get("effect", "")
    if value:
        found += texts_at("spec.taint.value", value, label_value(value))
    if old is None or (old.get("taint") or {}).get("effect", "") != effect:
        where = "spec.taint.effect"
        found += choice_errors(effect, where, _EFFECTS) if effect else [required(where)]
    return found


def pool_request_errors(spec: Object) -> list[FieldError]:
    """Check a ResourcePoolStatusRequest."""
    driver, limit = spec.get("driver", ""), spec.get("limit", 1)
    found = _driver_errors(driver, "spec.driver") if driver else [required("spec.driver")]
    if "poolName" in spec:
        found += _pool_errors(spec["poolName"], "spec.poolName")
    if limit > _MOST_POOLS:
        text = f"must be less than or equal to {_MOST_POOLS}"
        found.append(invalid("spec.limit", limit, text))
    elif limit < 1:
        found.append(invalid("spec.limit", limit, "must be greater than or equal to 1"))
    return found


def _driver_errors(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    found = [too_long(path, _LONGEST_DRIVER)] if len(name) > _LONGEST_DRIVER else []
    return found + texts_at(path, name, dns1123_subdomain(name.lower()))


def _pool_errors(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    found = [too_long(path, _LONGEST_POOL)] if len(name) > _LONGEST_POOL else []
    for part in name.split("/"):
        found += texts_at(path, part, dns1123_subdomain(part))
    return found

"""Validates Ingresses, IngressClasses, NetworkPolicies, Endpoints and EndpointSlices.

Called by ``server/registry/kinds/networking.py``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import ip_network

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import (
    dns1123_label,
    dns1123_subdomain,
    path_segment_name,
    qualified_name,
    regex_text,
)
from instar.kube.builtin_rules.addresses import (
    address_errors,
    canonical_address_errors,
    family_of,
    network_errors,
    special_errors,
)
from instar.kube.builtin_rules.basics import (
    choice_errors,
    port_errors,
    port_or_name_errors,
    texts_at,
)
from instar.kube.builtin_rules.selectors import selector_errors

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_NEVER_IN_PATH = ("//", "/./", "/../", "%2f", "%2F")
_NEVER_AT_END = ("/..", "/.")
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WILDCARD = re.compile(rf"\*\.{_SUBDOMAIN}", re.ASCII)
_WILDCARD_TEXT = regex_text(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
    "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric "
    "character",
    rf"\*\.{_SUBDOMAIN}",
    "*.example.com",
)
_LONGEST_CONTROLLER = 250
_MOST_ENDPOINTS, _MOST_PORTS, _MOST_ADDRESSES = 1000, 20000, 100


# Ingresses ----------------------------------------------------------------------------------------


def ingress_errors(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    rules, default = spec.get("rules") or [], spec.get("defaultBackend")
    found: list[FieldError] = []
    if not rules and default is None:
        text = "either `defaultBackend` or `rules` must be specified"
        found.append(replace(invalid("spec", None, text), place="spec.rules"))
    if default is not None:
        found += _backend_errors(default, "spec.defaultBackend")
    for position, rule in enumerate(rules):
        found += _rule_errors(rule, index("spec.rules", position))
    for position, item in enumerate(spec.get("tls") or ()):
        for at, host in enumerate(item.get("hosts") or ()):
            found += _host_errors(host, index(child(index("spec.tls", position), "hosts"), at))
    name = spec.get("ingressClassName")
    if name is not None:
        found += texts_at("spec.ingressClassName", name, dns1123_subdomain(name))
    return found


def _rule_errors(rule: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    host = rule.get("host", "")
    if host:
        if family_of(host):
            text = "must be a DNS name, not an IP address"
            found.append(invalid(child(path, "host"), host, text))
        found += _host_errors(host, child(path, "host")) if not family_of(host) else []
    http = rule.get("http")
    if http is None:
        return found
    where = child(path, "http.paths")
    if not http.get("paths"):
        found.append(required(where))
    for position, item in enumerate(http.get("paths") or ()):
        found += _path_errors(item, index(where, position))
    return found


def _host_errors(host: str, path: str) -> list[FieldError]:
    if "*" in host:
        return [] if _WILDCARD.fullmatch(host) else [invalid(path, host, _WILDCARD_TEXT)]
    return texts_at(path, host, dns1123_subdomain(host))


def _path_errors(item: Object, path: str) -> list[FieldError]:
    kind, text = item.get("pathType"), item.get("path", "")
    found: list[FieldError] = []
    if kind is None:
        return [required(child(path, "pathType"), "pathType must be specified")]
    if kind not in _PATH_TYPES:
        found.append(not_supported(child(path, "pathType"), kind, _PATH_TYPES))
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            found.append(invalid(child(path, "path"), text, "must be an absolute path"))
    else:
        found += _exact_path_errors(text, child(path, "path"))
    return found + _backend_errors(item.get("backend") or {}, child(path, "backend"))


def _exact_path_errors(text: str, path: str) -> list[FieldError]:
    if not text.startswith("/"):
        return [invalid(path, text, "must be an absolute path")]
    found = [
        invalid(path, text, f"must not contain '{part}'") for part in _NEVER_IN_PATH if part in text
    ]
    return found + [
        invalid(path, text, f"cannot end with '{part}'")
        for part in _NEVER_AT_END
        if text.endswith(part)
    ]


def _backend_errors(backend: Object, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if service is None and resource is None:
        return [invalid(path, "", "resource or service backend is required")]
    if service is None:
        return _resource_errors(resource or {}, child(path, "resource"))
    found: list[FieldError] = []
    name, port = service.get("name", ""), service.get("port") or {}
    where = child(path, "service")
    if not name:
        found.append(required(child(where, "name")))
    else:
        found += texts_at(child(where, "name"), name, dns1123_label(name))
    if port.get("name") and port.get("number"):
        found.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        found += port_or_name_errors(port["name"], child(where, "port.name"))
    elif port.get("number"):
        found += port_errors(port["number"], child(where, "port.number"))
    else:
        found.append(required(path, "port name or number is required"))
    return found


def _resource_errors(reference: Object, path: str) -> list[FieldError]:
    return [required(child(path, name)) for name in ("kind", "name") if not reference.get(name)]


def ingress_class_errors(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    found: list[FieldError] = []
    if len(controller.encode()) > _LONGEST_CONTROLLER:
        found.append(too_long("spec.controller", _LONGEST_CONTROLLER))
    if not controller:
        found.append(required("spec.controller"))
    else:
        found += domain_path_errors(controller, "spec.controller")
    if parameters is None:
        return found
    group = parameters.get("apiGroup")
    if group is not None:
        found += texts_at("spec.parameters.apiGroup", group, dns1123_subdomain(group))
    for name in ("kind", "name"):
        where, given = f"spec.parameters.{name}", parameters.get(name)
        found += texts_at(where, given, path_segment_name(given)) if given else [required(where)]
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        found.append(required("spec.parameters.scope"))
        return found
    found += choice_errors(scope, "spec.parameters.scope", ("Cluster", "Namespace"))
    if scope == "Namespace" and not namespace:
        text = "`parameters.scope` is set to 'Namespace'"
        found.append(required("spec.parameters.namespace", text))
    if scope == "Cluster" and namespace is not None:
        text = "`parameters.scope` is set to 'Cluster'"
        found.append(forbidden("spec.parameters.namespace", text))
    return found


def domain_path_errors(text: str, path: str) -> list[FieldError]:
    domain, slash, rest = text.partition("/")
    if not slash or not domain or not rest:
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return texts_at(path, domain, dns1123_subdomain(domain))


# Network policies ---------------------------------------------------------------------------------


def network_policy_errors(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    found = selector_errors(spec.get("podSelector") or {}, "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for position, rule in enumerate(spec.get(direction) or ()):
            path = index(f"spec.{direction}", position)
            for at, port in enumerate(rule.get("ports") or ()):
                found += _policy_port_errors(port, index(child(path, "ports"), at))
            for at, peer in enumerate(rule.get(peers) or ()):
                found += _peer_errors(peer, index(child(path, peers), at))
    types = spec.get("policyTypes") or []
    if len(types) > 2:
        found.append(
            invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        )
        return found
    for position, type in enumerate(types):
        where = index("spec.policyTypes", position)
        found += choice_errors(type, where, ("Ingress", "Egress"))
    return found


def _policy_port_errors(port: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None:
        found += choice_errors(protocol, child(path, "protocol"), ("TCP", "UDP", "SCTP"))
    if number is None:
        if end is not None:
            text = "may not be specified when `port` is not specified"
            found.append(invalid(child(path, "endPort"), end, text))
        return found
    found += port_or_name_errors(number, child(path, "port"))
    if end is None:
        return found
    if isinstance(number, str):
        text = "may not be specified when `port` is non-numeric"
        found.append(invalid(child(path, "endPort"), end, text))
    elif end < number:
        text = "must be greater than or equal to `port`"
        found.append(invalid(child(path, "endPort"), number, text))
    if not isinstance(number, str) and not 0 < end < 65536:
        text = "must be between 1 and 65535, inclusive"
        found.append(invalid(child(path, "endPort"), end, text))
    return found


def _peer_errors(peer: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    peers = 0
    for name in ("podSelector", "namespaceSelector"):
        if peer.get(name) is not None:
            peers += 1
            found += selector_errors(peer[name], child(path, name))
    block = peer.get("ipBlock")
    if block is not None:
        peers += 1
        found += _block_errors(block, child(path, "ipBlock"))
    if not peers:
        found.append(required(path, "must specify a peer"))
    elif peers > 1 and block is not None:
        found.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return found


def _block_errors(block: Object, path: str) -> list[FieldError]:
    text = block.get("cidr", "")
    if not text:
        return [required(child(path, "cidr"))]
    found = network_errors(text, child(path, "cidr"))
    if found:
        return found
    outer = ip_network(text, strict=False)
    for position, part in enumerate(block.get("except") or ()):
        where = index(child(path, "except"), position)
        wrong = network_errors(part, where)
        found += wrong
        if wrong:
            continue
        inner = ip_network(part, strict=False)
        within = inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]
        if not within or inner == outer:
            found.append(invalid(where, part, "must be a strict subset of `cidr`"))
    return found


# Endpoints ----------------------------------------------------------------------------------------


def endpoints_errors(obj: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for position, subset in enumerate(obj.get("subsets") or ()):
        path = index("subsets", position)
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            found.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for name in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(name) or ()):
                where = child(index(child(path, name), at), "ip")
                text = address.get("ip", "")
                found += [*address_errors(text, where), *special_errors(text, where)]
        ports = subset.get("ports") or []
        for at, port in enumerate(ports):
            where = index(child(path, "ports"), at)
            found += _endpoint_port_errors(port, where, needs_name=len(ports) > 1)
    return found


def _endpoint_port_errors(port: Object, path: str, *, needs_name: bool) -> list[FieldError]:
    found: list[FieldError] = []
    name, protocol = port.get("name", ""), port.get("protocol", "")
    if needs_name and not name:
        found.append(required(child(path, "name")))
    elif name:
        found += texts_at(child(path, "name"), name, dns1123_label(name))
    found += port_errors(port.get("port", 0), child(path, "port"))
    if not protocol:
        found.append(required(child(path, "protocol")))
    else:
        found += choice_errors(protocol, child(path, "protocol"), _PROTOCOLS)
    return found


def slice_errors(obj: Object) -> list[FieldError]:
    type = obj.get("addressType", "")
    if not type:
        return [required("addressType")]
    if type not in ("FQDN", "IPv4", "IPv6"):
        return [not_supported("addressType", type, ("FQDN", "IPv4", "IPv6"))]
    found: list[FieldError] = []
    endpoints = obj.get("endpoints") or []
    if len(endpoints) > _MOST_ENDPOINTS:
        found.append(too_many("endpoints", len(endpoints), _MOST_ENDPOINTS))
    for position, endpoint in enumerate(endpoints):
        found += _slice_endpoint_errors(endpoint, index("endpoints", position), type)
    names: set[str] = set()
    for position, port in enumerate(obj.get("ports") or ()):
        found += _slice_port_errors(port, index("ports", position), names)
    return found


def _slice_endpoint_errors(endpoint: Object, path: str, type: str) -> list[FieldError]:
    where, addresses = child(path, "addresses"), endpoint.get("addresses") or []
    if not addresses:
        return [required(where, "must contain at least 1 address")]
    if len(addresses) > _MOST_ADDRESSES:
        return [too_many(where, len(addresses), _MOST_ADDRESSES)]
    found: list[FieldError] = []
    for position, address in enumerate(addresses):
        at = index(where, position)
        if type == "FQDN":
            found += texts_at(at, address, dns1123_subdomain(address))
            continue
        judge = canonical_address_errors if type == "IPv6" else address_errors
        wrong = judge(address, at)
        if not wrong and family_of(address) != type:
            wrong = [invalid(where, address, f"must be an {type} address")]
        found += wrong or special_errors(address, at)
    hostname = endpoint.get("hostname")
    if hostname is not None:
        found += texts_at(child(path, "hostname"), hostname, dns1123_label(hostname))
    return found


def _slice_port_errors(port: Object, path: str, names: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    name, protocol = port.get("name") or "", port.get("protocol")
    if name:
        found += texts_at(child(path, "name"), name, dns1123_label(name))
    if name in names:
        found.append(duplicate(child(path, "name"), name))
    names.add(name)
    if protocol is None:
        found.append(required(child(path, "protocol")))
    else:
        found += choice_errors(protocol, child(path, "protocol"), _PROTOCOLS)
    application = port.get("appProtocol")
    if application is not None:
        found += texts_at(child(path, "appProtocol"), application, qualified_name(application))
    return found

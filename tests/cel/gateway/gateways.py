"""Gateways, classes, policies and the other routes."""

from __future__ import annotations

from tests.cel.gateway.case import Case, refused, valid

_HOSTNAME = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_PROTOCOLS = "['HTTP', 'TCP', 'UDP']"
_GW = "gatewayClassName: c, "


def _listeners(name: str, listeners: str, text: str, at: str = "spec.listeners") -> Case:
    return refused(name, "gateways", f"{{{_GW}listeners: {listeners}}}", at, text)


def _gateway(name: str, more: str, at: str, text: str) -> Case:
    spec = f"{{{_GW}listeners: [{{name: a, port: 80, protocol: HTTP}}], {more}}}"
    return refused(name, "gateways", spec, at, text)


def _policy(name: str, validation: str, at: str, text: str) -> Case:
    spec = (
        "{targetRefs: [{group: '', kind: Service, name: s}], validation: {hostname: a.b, "
        f"{validation}}}}}"
    )
    return refused(name, "backendtlspolicies", spec, at, text)


_WELL_KNOWN = "wellKnownCACertificates: System"
_REFS = "caCertificateRefs: [{group: '', kind: ConfigMap, name: c}]"
_ALT = "spec.validation.subjectAltNames[0]"

CASES = [
    valid("three listeners", "gateways", """
        gatewayClassName: c
        listeners:
        - {name: http, port: 80, protocol: HTTP, hostname: a.example.com}
        - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: c}]}}
        - {name: tls, port: 443, protocol: TLS, hostname: x.y, tls: {mode: Passthrough}}
        addresses: [{type: IPAddress, value: 10.0.0.1}, {type: Hostname, value: '*.a.b'}]
        infrastructure: {labels: {example.com/Name: x}, annotations: {a: b}}"""),
    valid("options instead of certificates", "gateways", """
        {gatewayClassName: c, listeners: [{name: a, port: 443, protocol: HTTPS,
         tls: {options: {x: y}, certificateRefs: []}}]}"""),
    valid("one port, two host names", "gateways", """
        {gatewayClassName: c, listeners: [{name: a, port: 80, protocol: HTTP, hostname: a.b},
         {name: b, port: 80, protocol: HTTP, hostname: b.b},
         {name: c, port: 80, protocol: HTTP}]}"""),
    _listeners("TLS settings on HTTP",
        "[{name: a, port: 80, protocol: HTTP, tls: {certificateRefs: [{name: c}]}}]",
        f"tls must not be specified for protocols {_PROTOCOLS}"),
    _listeners("HTTPS passed through", "[{name: a, port: 443, protocol: HTTPS, "
        "tls: {mode: Passthrough}}]", "tls mode must be Terminate for protocol HTTPS"),
    _listeners("TLS without settings", "[{name: a, port: 443, protocol: TLS}]",
        "tls mode must be set for protocol TLS"),
    _listeners("a host name on TCP", "[{name: a, port: 53, protocol: TCP, hostname: a.b}]",
        "hostname must not be specified for protocols ['TCP', 'UDP']"),
    _listeners("one port twice", "[{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, "
        "protocol: HTTP}]",
        "Combination of port, protocol and hostname must be unique for each listener"),
    _listeners("nothing to terminate with", "[{name: a, port: 443, protocol: HTTPS, "
        "tls: {certificateRefs: [], options: {}}}]",
        "certificateRefs or options must be specified when mode is Terminate",
        "spec.listeners[0].tls"),
    # The rule does not ask has() first, so what is not there is an error, not a no.
    Case("neither certificates nor options", "gateways",
        {"gatewayClassName": "c", "listeners": [{"name": "a", "port": 443, "protocol": "HTTPS",
         "tls": {}}]},
        'spec.listeners[0].tls: Invalid value: "object": no such key: certificateRefs evaluating '
        "rule: certificateRefs or options must be specified when mode is Terminate"),
    _gateway("one address twice", "addresses: [{type: IPAddress, value: 1.2.3.4}, "
        "{type: IPAddress, value: 1.2.3.4}]", "spec.addresses", "IPAddress values must be unique"),
    _gateway("one host twice", "addresses: [{type: Hostname, value: a.b}, "
        "{type: Hostname, value: a.b}]", "spec.addresses", "Hostname values must be unique"),
    _gateway("a host with an underscore", "addresses: [{type: Hostname, value: a_b}]",
        "spec.addresses[0]",
        f"Hostname value must be empty or contain only valid characters (matching {_HOSTNAME})"),
    _gateway("an annotation without a name", "infrastructure: {annotations: {'a.b/': x}}",
        "spec.infrastructure.annotations", "Annotation keys must be in the form of an optional DNS "
        "subdomain prefix followed by a required name segment of up to 63 characters."),
    _gateway("a label starting with a dash", "infrastructure: {labels: {'-a': x}}",
        "spec.infrastructure.labels", "Label keys must be in the form of an optional DNS subdomain "
        "prefix followed by a required name segment of up to 63 characters."),
    _gateway("a label with a very long prefix",
        "infrastructure: {labels: {'" + ".".join(["a" * 50] * 6) + "/n': x}}",
        "spec.infrastructure.labels", "If specified, the label key's prefix must be a DNS "
        "subdomain not longer than 253 characters in total."),
    Case("a new controller name", "gatewayclasses", {"controllerName": "a.io/b"},
        'spec.controllerName: Invalid value: "a.io/b": Value is immutable',
        old={"controllerName": "a.io/a"}),
    Case("the same controller name", "gatewayclasses", {"controllerName": "a.io/a",
        "description": "new"}, old={"controllerName": "a.io/a"}),
    valid("a policy with system certificates", "backendtlspolicies",
        "{targetRefs: [{group: '', kind: Service, name: s}], validation: {hostname: a.b, "
        "wellKnownCACertificates: System, subjectAltNames: [{type: Hostname, hostname: a.b}, "
        "{type: URI, uri: 'spiffe://a/b'}]}}"),
    _policy("both kinds of certificates", f"{_WELL_KNOWN}, {_REFS}", "spec.validation",
        "must not contain both CACertificateRefs and WellKnownCACertificates"),
    _policy("no certificates", "caCertificateRefs: []", "spec.validation",
        "must specify either CACertificateRefs or WellKnownCACertificates"),
    _policy("a host name without host name",
        f"{_WELL_KNOWN}, subjectAltNames: [{{type: Hostname}}]", _ALT,
        "SubjectAltName element must contain Hostname, if Type is set to Hostname"),
    _policy("a URI with a host name",
        f"{_WELL_KNOWN}, subjectAltNames: [{{type: URI, uri: 'a://b', hostname: a.b}}]", _ALT,
        "SubjectAltName element must not contain Hostname, if Type is not set to Hostname"),
    _policy("a URI without URI", f"{_WELL_KNOWN}, subjectAltNames: [{{type: URI}}]", _ALT,
        "SubjectAltName element must contain URI, if Type is set to URI"),
    _policy("a host name with a URI",
        f"{_WELL_KNOWN}, subjectAltNames: [{{type: Hostname, hostname: a.b, uri: 'a://b'}}]", _ALT,
        "SubjectAltName element must not contain URI, if Type is not set to URI"),
    refused("a target with and without section", "backendtlspolicies",
        "{targetRefs: [{group: '', kind: Service, name: s}, {group: '', kind: Service, name: s, "
        "sectionName: a}], validation: {hostname: a.b, wellKnownCACertificates: System}}",
        "spec.targetRefs", "sectionName must be specified when targetRefs includes 2 or more "
        "references to the same target"),
    valid("a gRPC route", "grpcroutes", """
        rules: [{matches: [{method: {service: com.example.User, method: Login}}],
          backendRefs: [{name: s, port: 80}]}]"""),
    refused("a method match without either", "grpcroutes", "rules: [{matches: [{method: {}}]}]",
        "spec.rules[0].matches[0].method",
        "One or both of 'service' or 'method' must be specified"),
    refused("a service with a dash", "grpcroutes",
        "rules: [{matches: [{method: {service: com.my-app}}]}]", "spec.rules[0].matches[0].method",
        r"service must only contain valid characters (matching "
        r"^(?i)\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*$)"),
    refused("a method with a dot", "grpcroutes", "rules: [{matches: [{method: {method: a.b}}]}]",
        "spec.rules[0].matches[0].method",
        "method must only contain valid characters (matching ^[A-Za-z_][A-Za-z_0-9]*$)"),
    valid("a TLS route", "tlsroutes",
        "{hostnames: [a.example.com, '*.b.com'], rules: [{backendRefs: [{name: s, port: 1}]}]}"),
    refused("a TLS route to an address", "tlsroutes",
        "{hostnames: [10.0.0.1], rules: [{backendRefs: [{name: s, port: 1}]}]}",
        "spec.hostnames", "Hostnames cannot contain an IP"),
    refused("a UDP route without port", "udproutes", "rules: [{backendRefs: [{name: s}]}]",
        "spec.rules[0].backendRefs[0]", "Must have port for Service reference"),
    refused("a TCP route without port", "tcproutes", "rules: [{backendRefs: [{name: s}]}]",
        "spec.rules[0].backendRefs[0]", "Must have port for Service reference"),
    Case("a host name in the status", "gateways", {"gatewayClassName": "c",
        "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}]},
        "status.addresses[0]: Invalid value: Hostname value must only contain valid characters "
        f"(matching {_HOSTNAME})", status={"addresses": [{"type": "Hostname", "value": "a_b"}]}),
]  # fmt: skip

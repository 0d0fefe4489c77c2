"""HTTPRoutes: one broken rule each, from what the rule is meant to prevent."""

from __future__ import annotations

from functools import partial

from tests.cel.gateway import case

_valid = partial(case.valid, plural="httproutes")

_OLD_TYPES = "when type one of ['Exact', 'PathPrefix']"
_CHARS = (
    "must only contain valid characters (matching "
    "^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$) for types ['Exact', 'PathPrefix']"
)


def _path(name: str, value: str, text: str, kind: str = "PathPrefix") -> case.Case:
    spec = f"rules: [{{matches: [{{path: {{type: {kind}, value: '{value}'}}}}]}}]"
    return case.refused(name, "httproutes", spec, "spec.rules[0].matches[0].path", text)


def _filter(name: str, filters: str, text: str, at: str = "spec.rules[0].filters[0]") -> case.Case:
    return case.refused(name, "httproutes", f"rules: [{{filters: {filters}}}]", at, text)


def _wrong_kind(field: str, content: str, kind: str, right: str) -> case.Case:
    filters = f"[{{type: {right}, {_CONTENT[right]}, {field}: {content}}}]"
    text = f"filter.{field} must be nil if the filter.type is not {kind}"
    return _filter(f"{field} in a {right} filter", filters, text)


def _missing(field: str, kind: str) -> case.Case:
    text = f"filter.{field} must be specified for {kind} filter.type"
    return _filter(f"{kind} without {field}", f"[{{type: {kind}}}]", text)


_HEADERS = "{set: [{name: a, value: b}]}"
_CONTENT = {
    "RequestHeaderModifier": f"requestHeaderModifier: {_HEADERS}",
    "ResponseHeaderModifier": f"responseHeaderModifier: {_HEADERS}",
}
_BACKEND = "{name: s, port: 80}"


def _repeated(kind: str, content: str) -> case.Case:
    one = f"{{type: {kind}, {content}}}"
    text = f"{kind} filter cannot be repeated"
    return _filter(f"two {kind} filters", f"[{one}, {one}]", text, "spec.rules[0].filters")


def _replace(name: str, path: str, text: str, kind: str = "requestRedirect") -> case.Case:
    outer = {"requestRedirect": "RequestRedirect", "urlRewrite": "URLRewrite"}[kind]
    filters = f"[{{type: {outer}, {kind}: {{path: {path}}}}}]"
    return _filter(name, filters, text, f"spec.rules[0].filters[0].{kind}.path")


CASES = [
    _valid("a plain route", spec="""
        parentRefs: [{name: gw}]
        hostnames: [example.com]
        rules:
        - matches: [{path: {type: PathPrefix, value: /api}}, {path: {type: Exact, value: /x%20y}}]
          backendRefs: [{name: s, port: 80}, {name: t, port: 80, weight: 2}]
          timeouts: {request: 10s, backendRequest: 2s}"""),
    _valid("nothing but defaults", spec="rules: [{}]"),
    _valid("two sections of one parent", spec="""
        parentRefs: [{name: gw, sectionName: a}, {name: gw, sectionName: b}]"""),
    _valid("one parent name in two namespaces", spec="""
        parentRefs: [{name: gw, namespace: a}, {name: gw, namespace: b}]"""),
    _valid("a regular expression may look like anything", spec="""
        rules: [{matches: [{path: {type: RegularExpression, value: '//[.]{2}#'}}]}]"""),
    _valid("a redirect without backends", spec="""
        rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]"""),
    _valid("a prefix rewritten under one prefix match", spec="""
        rules:
        - matches: [{path: {type: PathPrefix, value: /a}}]
          filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch,
            replacePrefixMatch: /b}}}]"""),
    _valid("every filter once", spec="""
        rules:
        - filters:
          - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}
          - {type: ResponseHeaderModifier, responseHeaderModifier: {remove: [x]}}
          - {type: RequestMirror, requestMirror: {backendRef: {name: m, port: 80}, percent: 10}}
          - {type: ExtensionRef, extensionRef: {group: g.io, kind: K, name: n}}
          - {type: CORS, cors: {allowOrigins: ['*'], allowMethods: [GET, POST]}}"""),
    _valid("an unlimited request may have a backend timeout", spec="""
        rules: [{timeouts: {request: 0s, backendRequest: 10s}}]"""),
    _valid("a custom backend needs no port", spec="""
        rules: [{backendRefs: [{group: g.io, kind: Bucket, name: b}]}]"""),
    _valid("128 matches", spec="rules: [" + ", ".join(
        ["{matches: [" + ", ".join(["{path: {type: Exact, value: /a}}"] * 64) + "]}"] * 2) + "]"),
    case.refused("too many matches", "httproutes", "rules: [" + ", ".join(
        ["{matches: [" + ", ".join(["{path: {type: Exact, value: /a}}"] * 43) + "]}"] * 3) + "]",
        "spec.rules", "While 16 rules and 64 matches per rule are allowed, the total number of "
        "matches across all rules in a route must be less than 128"),
    case.refused("a parent with and without section", "httproutes",
        "parentRefs: [{name: gw}, {name: gw, sectionName: a}]", "spec.parentRefs",
        "sectionName must be specified when parentRefs includes 2 or more references to the same "
        "parent"),
    case.refused("the same section twice", "httproutes",
        "parentRefs: [{name: gw, sectionName: a}, {name: gw, sectionName: a}]", "spec.parentRefs",
        "sectionName must be unique when parentRefs includes 2 or more references to the same "
        "parent"),
    case.refused("a redirect with a backend", "httproutes", """
        rules: [{backendRefs: [{name: s, port: 80}],
          filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]""",
        "spec.rules[0]", "RequestRedirect filter must not be used together with backendRefs"),
    case.refused("a prefix redirected under an exact match", "httproutes", """
        rules: [{matches: [{path: {type: Exact, value: /a}}], filters: [{type: RequestRedirect,
          requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}}]}]""",
        "spec.rules[0]", "When using RequestRedirect filter with path.replacePrefixMatch, exactly "
        "one PathPrefix match must be specified"),
    case.refused("a prefix rewritten under two matches", "httproutes", """
        rules: [{matches: [{path: {type: PathPrefix, value: /a}}, {path: {type: PathPrefix,
          value: /c}}], filters: [{type: URLRewrite, urlRewrite: {path: {
          type: ReplacePrefixMatch, replacePrefixMatch: /b}}}]}]""",
        "spec.rules[0]", "When using URLRewrite filter with path.replacePrefixMatch, exactly one "
        "PathPrefix match must be specified"),
    case.refused("a backend's prefix rewritten under an exact match", "httproutes", """
        rules: [{matches: [{path: {type: Exact, value: /a}}], backendRefs: [{name: s, port: 80,
          filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch,
          replacePrefixMatch: /b}}}]}]}]""",
        "spec.rules[0]", "Within backendRefs, When using URLRewrite filter with "
        "path.replacePrefixMatch, exactly one PathPrefix match must be specified"),
    case.refused("a service without port", "httproutes", "rules: [{backendRefs: [{name: s}]}]",
        "spec.rules[0].backendRefs[0]", "Must have port for Service reference"),
    case.refused("a mirror service without port", "httproutes", """
        rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: s}}}]}]""",
        "spec.rules[0].filters[0].requestMirror.backendRef",
        "Must have port for Service reference"),
    case.refused("a backend slower than its request", "httproutes",
        "rules: [{timeouts: {request: 1s, backendRequest: 1m}}]", "spec.rules[0].timeouts",
        "backendRequest timeout cannot be longer than request timeout"),
    _filter("percent and fraction", f"[{{type: RequestMirror, requestMirror: {{backendRef: "
        f"{_BACKEND}, percent: 1, fraction: {{numerator: 1}}}}}}]",
        "Only one of percent or fraction may be specified in HTTPRequestMirrorFilter",
        "spec.rules[0].filters[0].requestMirror"),
    _filter("more than everything mirrored", f"[{{type: RequestMirror, requestMirror: "
        f"{{backendRef: {_BACKEND}, fraction: {{numerator: 101}}}}}}]",
        "numerator must be less than or equal to denominator",
        "spec.rules[0].filters[0].requestMirror.fraction"),
    _filter("redirect and rewrite", "[{type: RequestRedirect, requestRedirect: {scheme: https}}, "
        "{type: URLRewrite, urlRewrite: {hostname: a.b}}]",
        "May specify either httpRouteFilterRequestRedirect or httpRouteFilterRequestRewrite, but "
        "not both", "spec.rules[0].filters"),
    _repeated("RequestHeaderModifier", _CONTENT["RequestHeaderModifier"]),
    _repeated("ResponseHeaderModifier", _CONTENT["ResponseHeaderModifier"]),
    _repeated("RequestRedirect", "requestRedirect: {scheme: https}"),
    _repeated("URLRewrite", "urlRewrite: {hostname: a.b}"),
    _repeated("CORS", "cors: {maxAge: 1}"),
    _missing("requestHeaderModifier", "RequestHeaderModifier"),
    _missing("responseHeaderModifier", "ResponseHeaderModifier"),
    _missing("requestMirror", "RequestMirror"),
    _missing("requestRedirect", "RequestRedirect"),
    _missing("urlRewrite", "URLRewrite"),
    _missing("extensionRef", "ExtensionRef"),
    _missing("cors", "CORS"),
    _wrong_kind("requestHeaderModifier", _HEADERS, "RequestHeaderModifier",
                "ResponseHeaderModifier"),
    _wrong_kind("responseHeaderModifier", _HEADERS, "ResponseHeaderModifier",
                "RequestHeaderModifier"),
    _wrong_kind("requestMirror", f"{{backendRef: {_BACKEND}}}", "RequestMirror",
                "RequestHeaderModifier"),
    _wrong_kind("requestRedirect", "{scheme: https}", "RequestRedirect", "RequestHeaderModifier"),
    _wrong_kind("urlRewrite", "{hostname: a.b}", "URLRewrite", "RequestHeaderModifier"),
    _wrong_kind("extensionRef", "{group: g.io, kind: K, name: n}", "ExtensionRef",
                "RequestHeaderModifier"),
    _wrong_kind("cors", "{maxAge: 1}", "CORS", "RequestHeaderModifier"),
    _filter("all origins and one more", "[{type: CORS, cors: {allowOrigins: ['*', 'http://a']}}]",
        "AllowOrigins cannot contain '*' alongside other origins",
        "spec.rules[0].filters[0].cors.allowOrigins"),
    _filter("all methods and one more", "[{type: CORS, cors: {allowMethods: ['*', GET]}}]",
        "AllowMethods cannot contain '*' alongside other methods",
        "spec.rules[0].filters[0].cors.allowMethods"),
    _filter("all headers and one more", "[{type: CORS, cors: {allowHeaders: ['*', a]}}]",
        "AllowHeaders cannot contain '*' alongside other methods",
        "spec.rules[0].filters[0].cors.allowHeaders"),
    _replace("full path without a path", "{type: ReplaceFullPath}",
        "replaceFullPath must be specified when type is set to 'ReplaceFullPath'"),
    _replace("prefix without a prefix", "{type: ReplacePrefixMatch}",
        "replacePrefixMatch must be specified when type is set to 'ReplacePrefixMatch'"),
    _replace("full path and a prefix", "{type: ReplaceFullPath, replaceFullPath: /a, "
        "replacePrefixMatch: /b}",
        "type must be 'ReplacePrefixMatch' when replacePrefixMatch is set"),
    _replace("prefix and a full path", "{type: ReplacePrefixMatch, replacePrefixMatch: /b, "
        "replaceFullPath: /a}", "type must be 'ReplaceFullPath' when replaceFullPath is set",
        "urlRewrite"),
    _path("a relative path", "api", "value must be an absolute path and start with '/' "
          + _OLD_TYPES),
    _path("an empty segment", "/a//b", f"must not contain '//' {_OLD_TYPES}"),
    _path("a dot segment", "/a/./b", f"must not contain '/./' {_OLD_TYPES}", "Exact"),
    _path("a double dot segment", "/a/../b", f"must not contain '/../' {_OLD_TYPES}"),
    _path("an escaped slash", "/a%2fb", f"must not contain '%2f' {_OLD_TYPES}", "Exact"),
    _path("an escaped slash, upper case", "/a%2Fb", f"must not contain '%2F' {_OLD_TYPES}"),
    _path("a dot segment at the end", "/a/.", f"must not end with '/.' {_OLD_TYPES}"),
    _path("a double dot segment at the end", "/a/..", f"must not end with '/..' {_OLD_TYPES}"),
    _path("a space", "/a b", _CHARS),
]  # fmt: skip

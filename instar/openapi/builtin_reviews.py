"""Questions a client asks about itself: who am I, what may I do."""

from __future__ import annotations

from instar.openapi.builtin_fields import ATOMIC_LIST, kind_of_object
from instar.openapi.shapes import array, boolean, mapping, obj, text, texts
from instar.plain import Object


def _selector(description: str) -> Object:
    requirement = obj(
        "One condition.",
        {
            "key": text("The label or field."),
            "operator": text("In, NotIn, Exists or DoesNotExist."),
            "values": texts("Values to compare with.", **ATOMIC_LIST),
        },
        "key",
        "operator",
    )
    return obj(
        description,
        {
            "rawSelector": text("The selector as text."),
            "requirements": array(requirement, "The selector in parts.", **ATOMIC_LIST),
        },
    )


_RESOURCE = obj(
    "A request for a resource.",
    {
        "fieldSelector": _selector("Field selector of the request."),
        "group": text("Group of the resource; * is all."),
        "labelSelector": _selector("Label selector of the request."),
        "name": text("Name of the object; empty is all."),
        "namespace": text("Namespace of the request; empty is all or none."),
        "resource": text("Plural of the resource; * is all."),
        "subresource": text("The subresource; empty is none."),
        "verb": text("get, list, watch, create, update, patch, delete, …; * is all."),
        "version": text("Version of the resource; * is all."),
    },
)

SELF_SUBJECT_ACCESS_REVIEW = kind_of_object(
    "Asks whether the caller may do something.",
    {
        "spec": obj(
            "The question: one of the two.",
            {
                "nonResourceAttributes": obj(
                    "A request for a path that is no resource.",
                    {"path": text("The path."), "verb": text("The HTTP verb.")},
                ),
                "resourceAttributes": _RESOURCE,
            },
        ),
        "status": obj(
            "The answer.",
            {
                "allowed": boolean("Whether it is allowed."),
                "denied": boolean("Whether it is ruled out for good."),
                "evaluationError": text("What went wrong while finding out."),
                "reason": text("Why."),
            },
            "allowed",
        ),
    },
    "spec",
)

SELF_SUBJECT_REVIEW = kind_of_object(
    "Asks who the caller is.",
    {
        "status": obj(
            "The answer.",
            {
                "userInfo": obj(
                    "The caller.",
                    {
                        "extra": mapping(texts(**ATOMIC_LIST), "What else is known."),
                        "groups": texts("Groups of the caller.", **ATOMIC_LIST),
                        "uid": text("Unique id of the caller."),
                        "username": text("Name of the caller."),
                    },
                )
            },
        )
    },
)


def _rule(description: str, *names: str) -> Object:
    return obj(description, {name: texts(**ATOMIC_LIST) for name in names}, "verbs")


SELF_SUBJECT_RULES_REVIEW = kind_of_object(
    "Asks for everything the caller may do in a namespace.",
    {
        "spec": obj("The question.", {"namespace": text("The namespace.")}),
        "status": obj(
            "The answer.",
            {
                "evaluationError": text("What went wrong while finding out."),
                "incomplete": boolean("Whether there may be more rules."),
                "nonResourceRules": array(
                    _rule("A rule about paths.", "nonResourceURLs", "verbs"), **ATOMIC_LIST
                ),
                "resourceRules": array(
                    _rule(
                        "A rule about resources.",
                        "apiGroups",
                        "resourceNames",
                        "resources",
                        "verbs",
                    ),
                    **ATOMIC_LIST,
                ),
            },
            "incomplete",
            "nonResourceRules",
            "resourceRules",
        ),
    },
    "spec",
)

"""Converters with known faults, as a release might bring them. Loaded by name, as users do."""

from __future__ import annotations

from instar.base.json_values import Object
from instar.sdk import ConversionError, Converter
from tests.rehearsal.worlds import GROUP

honest = Converter("Widget", group=GROUP, versions=("v1beta1", "v1"))
forgetful = Converter("Widget", group=GROUP, versions=("v1beta1", "v1"))
choosy = Converter("Widget", group=GROUP, versions=("v1beta1", "v1"))
restless = Converter("Widget", group=GROUP, versions=("v1beta1", "v1"))


@honest.convert("v1beta1", "v1")
def renamed(obj: Object) -> Object:
    if "colour" in obj["spec"]:
        obj["spec"]["color"] = obj["spec"].pop("colour")
    return obj


@honest.convert("v1", "v1beta1")
def renamed_back(obj: Object) -> Object:
    if "color" in obj["spec"]:
        obj["spec"]["colour"] = obj["spec"].pop("color")
    return obj


@forgetful.convert("v1beta1", "v1")
def drops_the_colour(obj: Object) -> Object:
    obj["spec"].pop("colour", None)
    return obj


@forgetful.convert("v1", "v1beta1")
def knows_no_colour(obj: Object) -> Object:
    return obj


@choosy.convert("v1beta1", "v1")
def refuses_odd_sizes(obj: Object) -> Object:
    if obj["spec"].get("size", 0) % 2:
        raise ConversionError("odd sizes cannot be converted")
    return obj


@choosy.convert("v1", "v1beta1")
def takes_all(obj: Object) -> Object:
    return obj


@restless.convert("v1beta1", "v1")
def counts_up(obj: Object) -> Object:
    obj["spec"]["size"] = obj["spec"].get("size", 0) + 1
    return obj


@restless.convert("v1", "v1beta1")
def leaves_it(obj: Object) -> Object:
    return obj

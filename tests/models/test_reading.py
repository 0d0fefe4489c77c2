"""Classes as people write them become schemas, or are refused with their place."""

from __future__ import annotations

import dataclasses
import enum
import uuid
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, NewType, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from instar.base.json_values import Object
from instar.kube.models.crd_models import Defaults, build_crd
from instar.kube.models.errors import ModelError
from instar.kube.models.reading.roots import root_of

Name = NewType("Name", str)


class Mode(enum.Enum):
    FIFO = "fifo"
    LIFO = "lifo"


@dataclasses.dataclass
class Leaf:
    """A leaf."""

    name: Name
    """What it is called."""
    weight: int = 3


class Everything(BaseModel):
    model_config = ConfigDict(extra="allow")

    apiVersion: Literal["example.com/v1"]  # noqa: N815
    kind: Literal["Thing"]
    mode: Mode = Mode.FIFO
    when: datetime | None = None
    ids: set[uuid.UUID] = Field(default_factory=set, max_length=3)
    pair: tuple[str, ...]
    count: PositiveInt
    leaf: Leaf
    leaves: dict[str, Leaf] | None = None
    nothing: str | None
    renamed: int = Field(default=0, alias="re-named", description="Has an alias.")
    anything: Any = None


def _properties(cls: Any) -> Object:
    crd = build_crd([("x", *root_of(cls))], Defaults(group="example.com"))
    schema: Object = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def test_types_of_all_kinds_become_a_schema() -> None:
    schema = _properties(Everything)
    found = schema["properties"]

    assert schema["x-kubernetes-preserve-unknown-fields"] is True
    assert schema["required"] == ["pair", "count", "leaf", "nothing"]
    assert found["mode"] == {"type": "string", "enum": ["fifo", "lifo"], "default": "fifo"}
    assert found["when"] == {"type": "string", "format": "date-time"}
    assert found["ids"] == {
        "type": "array",
        "items": {"type": "string", "format": "uuid"},
        "x-kubernetes-list-type": "set",
        "maxItems": 3,
        "default": [],
    }
    assert found["pair"] == {"type": "array", "items": {"type": "string"}}
    assert found["count"] == {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    assert found["leaf"] == {
        "description": "A leaf.",
        "type": "object",
        "properties": {
            "name": {"description": "What it is called.", "type": "string"},
            "weight": {"type": "integer", "default": 3},
        },
        "required": ["name"],
    }
    assert found["leaves"]["additionalProperties"] == found["leaf"]
    assert found["nothing"] == {"type": "string", "nullable": True}
    assert found["re-named"] == {"description": "Has an alias.", "type": "integer", "default": 0}
    assert found["anything"] == {"x-kubernetes-preserve-unknown-fields": True}


class StructRoot(msgspec.Struct, rename="camel"):
    api_version: Literal["example.com/v1beta1"]
    kind: Literal["Thing"]
    max_size: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET
    status: dict[str, Any] | None = None


def test_a_crd_is_put_together_from_a_model_per_version() -> None:
    models = [(cls.__name__, *root_of(cls)) for cls in (Everything, StructRoot)]

    crd = build_crd(models, Defaults(scope="Cluster"))

    assert crd["metadata"] == {"name": "things.example.com"}
    assert crd["spec"]["scope"] == "Cluster"
    assert crd["spec"]["names"] == {"kind": "Thing", "plural": "things"}
    v1, beta = crd["spec"]["versions"]
    assert (v1["name"], v1["storage"], "subresources" in v1) == ("v1", True, False)
    assert (beta["name"], beta["storage"]) == ("v1beta1", False)
    assert beta["subresources"] == {"status": {}}
    size = beta["schema"]["openAPIV3Schema"]["properties"]["maxSize"]
    assert size == {"type": "integer", "minimum": 1}


class Recursive(BaseModel):
    apiVersion: Literal["example.com/v1"]  # noqa: N815
    child: Recursive | None = None


class Union(BaseModel):
    value: int | list[str]


class Unknown(TypedDict):
    value: complex


class Mixed(BaseModel):
    value: Literal["a", 1]


class Homeless(BaseModel):
    value: str


class Odd(BaseModel):
    __crd__: ClassVar[str] = "x"


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (Recursive, "Recursive → Recursive: a class within itself"),
        (Union, "Union.value: a structural schema cannot say int | list"),
        (Unknown, "Unknown.value: a schema cannot say complex"),
        (Mixed, "Mixed.value: values of one kind are needed"),
        (Homeless, "x has no version"),
        (Odd, "Odd: __crd__ is not a dict"),
        (int, "int is neither a pydantic model"),
        (3, "int is neither a pydantic model"),
    ],
)
def test_annotations_without_a_schema_form_are_refused_with_their_place(
    cls: Any, said: str
) -> None:
    with pytest.raises(ModelError, match=f"^{said.replace('|', '[|]')}"):
        _properties(cls)


def test_models_that_disagree_about_their_crd_are_refused() -> None:
    models = [("a", *root_of(Everything)), ("b", *root_of(Everything))]
    other = [models[0], ("b", models[1][1], {"scope": "Cluster"})]

    with pytest.raises(ModelError, match="version v1 has two models"):
        build_crd(models, Defaults())
    with pytest.raises(ModelError, match="b: another scope than the models before it"):
        build_crd(other, Defaults())
    with pytest.raises(ModelError, match="no model is of version v9"):
        build_crd(models[:1], Defaults(storage="v9"))

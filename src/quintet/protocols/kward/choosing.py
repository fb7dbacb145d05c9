"""models/*, reasoning/set and openrouter/catalog: which models there are, which one is used, how hard it thinks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client
from quintet.protocols.kward.errors import Failed
from quintet.protocols.kward.keeping import Keeping, Known
from quintet.protocols.kward.models import model_of
from quintet.rpc.call import Call
from quintet.rpc.rows import Family, NoParams

CHOOSING = Family("models", form="either")


class ModelList(Struct, frozen=True):
    models: list[wire.Model]


class SetParams(wire.Wire, frozen=True):
    model: Any = None
    provider: str | None = None


class EffortParams(wire.Wire, frozen=True):
    effort: Any = None
    provider: str | None = None


@CHOOSING.method("models/list", result=ModelList, summary="The models that can be used now; one of them is current.")
async def list_models(call: Call[Client], params: NoParams) -> ModelList:
    keeping = call.state.house.keeping
    return ModelList(_entries(keeping, await keeping.models.references()))


@CHOOSING.method(
    "openrouter/catalog",
    result=ModelList,
    summary="Everything OpenRouter lists, whether the key may use it or not; nothing when it cannot be asked.",
)
async def catalog(call: Call[Client], params: NoParams) -> ModelList:
    keeping = call.state.house.keeping
    return ModelList(_entries(keeping, await keeping.models.catalog()))


@CHOOSING.method("models/current", result=wire.Model, summary="The model that the next turn uses.")
async def current(call: Call[Client], params: NoParams) -> wire.Model:
    return call.state.house.keeping.models.current()


@CHOOSING.method(
    "models/set", params=SetParams, result=wire.Model, summary="Use this model from the next turn on, and keep that."
)
async def set_model(call: Call[Client], params: SetParams) -> wire.Model:
    keeping = call.state.house.keeping
    model = params.model.strip() if isinstance(params.model, str) else ""
    if not model:
        raise Failed("Model must be a non-empty string")
    await keeping.models.set_model((params.provider or "").strip(), model)
    return keeping.models.current()


@CHOOSING.method(
    "reasoning/set", params=EffortParams, result=wire.Model, summary="How hard the model thinks, from the next turn on."
)
async def set_effort(call: Call[Client], params: EffortParams) -> wire.Model:
    keeping = call.state.house.keeping
    effort = params.effort.strip() if isinstance(params.effort, str) else ""
    if not effort:
        raise Failed("Reasoning effort must be a non-empty string")
    await keeping.models.set_effort(effort, (params.provider or "").strip())
    return keeping.models.current()


def _entries(keeping: Keeping, found: Iterable[Known]) -> list[wire.Model]:
    now, effort = keeping.models.reference(), keeping.models.effort()
    return [
        model_of(reference, info, current=reference == now, effort=effort if reference == now else "", name=name)
        for reference, info, name in found
    ]

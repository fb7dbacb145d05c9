"""What there is to choose from: agents, providers with their models, and how the server is set up."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from quintet.domain.model import ModelInfo
from quintet.domain.shapes import mask_shapes
from quintet.engine.agents import BUILT_IN
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.approvals import InNamespace, remembered
from quintet.protocols.knp.house import House, ProviderSeen
from quintet.protocols.knp.wording import rule_object
from quintet.rpc.http.call import HttpCall
from quintet.rpc.http.routes import HOLDER, Routes

CATALOG = Routes("catalog", who=HOLDER, since="0.1")
_NAMES = {"openai": "OpenAI", "openrouter": "OpenRouter", "lmstudio": "LM Studio", "vllm": "vLLM"}


@CATALOG.get("/agents", summary="who can work in a thread", params=InNamespace, result=knp.Agents)
async def agents(call: HttpCall[House], params: InNamespace, body: None) -> knp.Agents:
    house = call.state
    namespace = await house.namespace(call, params.namespace)
    root = namespace.root or (await house.namespaces.default()).root
    found = (await house.agents.all(root)).agents
    first = sorted(found, key=lambda agent: (agent.name not in BUILT_IN, agent.name))
    return knp.Agents(
        [
            knp.AgentEntry(
                agent.name,
                _titled(agent.name),
                agent.description,
                knp.model_name(agent.model) if agent.model else UNSET,
            )
            for agent in first
        ]
    )


@CATALOG.get("/providers", summary="where models come from, and which can be used", result=knp.Providers)
async def providers(call: HttpCall[House], params: Any, body: None) -> knp.Providers:
    house = call.state
    await house.namespace(call)
    return knp.Providers([_provider(seen) for seen in house.providers()], knp.model_name(house.default_model()))


def _provider(seen: ProviderSeen) -> knp.ProviderEntry:
    return knp.ProviderEntry(seen.id, _titled(seen.id), seen.connected, [_model(info) for info in seen.models])


def _model(info: ModelInfo) -> knp.ModelEntry:
    name = info.reference.partition("/")[2]
    return knp.ModelEntry(name, name, knp.Capabilities(info.reasoning, info.vision, tools=True))


def _titled(name: str) -> str:
    return _NAMES.get(name) or name.replace("-", " ").replace("_", " ").title()


class ServerConfig(msgspec.Struct, frozen=True):
    """Never a secret, and nothing that is only the server's business."""

    model: knp.ModelName
    permissions: dict[str, Any]
    approvalRules: list[knp.ApprovalRule]


@CATALOG.get("/config", summary="models, permissions and remembered decisions", params=InNamespace, result=ServerConfig)
async def config(call: HttpCall[House], params: InNamespace, body: None) -> ServerConfig:
    house = call.state
    namespace = await house.namespace(call, params.namespace)
    rules = [rule_object(grant) for grant in await remembered(house, namespace)]
    shown = [msgspec.structs.replace(rule, pattern=mask_shapes(house.feed.mask(rule.pattern))) for rule in rules]
    return ServerConfig(knp.model_name(house.default_model()), house.settings(), shown)

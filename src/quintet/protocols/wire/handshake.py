"""initialize: who speaks, in which version, with which tools and hooks of its own. May be said again while idle."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from quintet.domain.errors import Invalid
from quintet.domain.hook import TIMEOUT_MOST_S, HookEvent, HookSubscription
from quintet.domain.hook_matcher import Matcher
from quintet.domain.tool import ToolSpec
from quintet.protocols.wire import greeting as wire
from quintet.protocols.wire.client import Client
from quintet.protocols.wire.house import House
from quintet.protocols.wire.models import NAME, VERSION
from quintet.protocols.wire.schemas import wrong_with
from quintet.protocols.wire.slash import infos
from quintet.rpc.call import Call, Reply
from quintet.rpc.connection import Connection
from quintet.rpc.rows import Family

HANDSHAKE = Family("handshake")
CONFLICTS = "conflicts with builtin tool"
BLANKS = "a tool's name may not be empty or hold blanks"


@HANDSHAKE.method(
    "initialize",
    params=wire.InitializeParams,
    result=wire.InitializeResult,
    summary="Say who speaks, which tools and hooks the client has, and learn what the server has (1.1).",
)
async def initialize(call: Call[Client], params: wire.InitializeParams) -> Reply[wire.InitializeResult]:
    client = call.state
    client.refuse_while_running()
    client.gate.declared(params.protocol_version)
    client.capabilities = params.capabilities or wire.ClientCapabilities()
    client.hooks = _hooks(params.hooks or [], client.house)
    result = wire.InitializeResult(
        VERSION,
        wire.ServerInfo(NAME, client.house.version),
        infos(client.house.commands),
        wire.ServerCapabilities(),
        wire.HooksInfo([event.value for event in HookEvent], _configured(client)),
        _take_tools(client, params.external_tools) if params.external_tools else UNSET,
    )
    if not params.external_tools:
        client.external_tools = ()
    return Reply(result, then=lambda: _ask_again(call.connection))


async def _ask_again(connection: Connection[Client]) -> None:
    if connection.state.house.begun:
        from quintet.protocols.wire.pending import ask_again

        await ask_again(connection)


def _take_tools(client: Client, given: list[wire.ExternalTool]) -> wire.ExternalToolsResult:
    """Of two with one name the last counts. What cannot be taken is told, and the rest is."""
    builtin = client.house.tools()
    reserved = client.house.names.reserved(builtin)
    accepted: dict[str, ToolSpec] = {}
    rejected: dict[str, str] = {}
    for tool in given:
        accepted.pop(tool.name, None)
        rejected.pop(tool.name, None)
        if reason := _reason_against(tool, reserved):
            rejected[tool.name] = reason
        else:
            accepted[tool.name] = ToolSpec(tool.name, tool.description, tool.parameters, external=True)
    client.external_tools = tuple(accepted.values())
    return wire.ExternalToolsResult(list(accepted), [wire.RejectedTool(name, why) for name, why in rejected.items()])


def _reason_against(tool: wire.ExternalTool, reserved: frozenset[str]) -> str:
    if tool.name in reserved:
        return CONFLICTS
    if not tool.name or any(sign.isspace() for sign in tool.name):
        return BLANKS
    return wrong_with(tool.parameters)


def _hooks(given: list[wire.WireHook], house: House) -> tuple[HookSubscription, ...]:
    """Those that can be heard; a line of the log tells of the others."""
    taken: list[HookSubscription] = []
    for hook in given:
        try:
            taken.append(
                HookSubscription(
                    hook.id, HookEvent(hook.event), Matcher(hook.matcher), min(hook.timeout, TIMEOUT_MOST_S)
                )
            )
        except ValueError:
            house.log(f"The client's hook {hook.id!r} is not heard: there is no event {hook.event!r}.")
        except Invalid as error:
            house.log(f"The client's hook {hook.id!r} is not heard: {error.line()}")
    return tuple(taken)


def _configured(client: Client) -> dict[str, int]:
    counts: dict[str, Any] = dict(client.house.configured_hooks)
    for hook in client.hooks:
        counts[hook.event.value] = counts.get(hook.event.value, 0) + 1
    return counts

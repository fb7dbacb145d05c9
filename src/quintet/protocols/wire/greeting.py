"""The shapes of `initialize`, spelled as published: who the client is, what it brings, what it is told of us. Pure."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType


class ClientInfo(Struct, frozen=True):
    name: str
    version: str | None = None


class ExternalTool(Struct, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]


class ClientCapabilities(Struct, frozen=True):
    supports_question: bool = False
    supports_plan_mode: bool = False


class WireHook(Struct, frozen=True):
    id: str
    event: str
    matcher: str = ""
    timeout: Annotated[float, Meta(gt=0)] = 30


class InitializeParams(Struct, frozen=True):
    protocol_version: str
    client: ClientInfo | None = None
    external_tools: list[ExternalTool] | None = None
    capabilities: ClientCapabilities | None = None
    hooks: list[WireHook] | None = None


class ServerInfo(Struct, frozen=True):
    name: str
    version: str


class SlashCommandInfo(Struct, frozen=True):
    name: str
    description: str
    aliases: list[str]


class RejectedTool(Struct, frozen=True):
    name: str
    reason: str


class ExternalToolsResult(Struct, frozen=True):
    accepted: list[str]
    rejected: list[RejectedTool]


class ServerCapabilities(Struct, frozen=True):
    supports_question: bool = True


class HooksInfo(Struct, frozen=True):
    supported_events: list[str]
    configured: dict[str, int]  # how many hooks each event has


class InitializeResult(Struct, frozen=True):
    protocol_version: str
    server: ServerInfo
    slash_commands: list[SlashCommandInfo]
    capabilities: ServerCapabilities
    hooks: HooksInfo
    external_tools: ExternalToolsResult | UnsetType = UNSET

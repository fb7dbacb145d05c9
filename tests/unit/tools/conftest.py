"""A workspace on disk and a way to call a tool as the engine does."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.tool import CallScope, ToolOutcome
from quintet.tools.builtin import builtin_tools
from tests.fakes.tool_context import FakeToolContext

Use = Callable[..., Awaitable[ToolOutcome]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, Any]:
    home = tmp_path / "workspace" / "quintet-home"
    environment = {**os.environ, "MY_API_KEY": "sk-canary-1234", "SSH_AUTH_SOCK": "/run/agent"}
    return {tool.spec.name: tool for tool in builtin_tools(home=str(home), environment=environment)}


@pytest.fixture
def context(workspace: Path) -> FakeToolContext:
    return FakeToolContext(str(workspace))


@pytest.fixture
def scope(context: FakeToolContext) -> CallScope:
    return CallScope(context.cwd, context.thread)


@pytest.fixture
def use(tools: dict[str, Any], context: FakeToolContext, scope: CallScope) -> Use:
    async def call(name: str, **arguments: Any) -> ToolOutcome:
        prepared = await tools[name].prepare(arguments, scope)
        return await tools[name].run(prepared, context)

    return call

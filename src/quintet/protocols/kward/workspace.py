"""workspace/*: which directories a client may work in: any that exists here."""

from __future__ import annotations

import os

from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client
from quintet.protocols.kward.errors import Failed
from quintet.protocols.kward.house import House
from quintet.rpc.call import Call
from quintet.rpc.rows import Family

WORKSPACE = Family("workspace", form="either")


@WORKSPACE.method(
    "workspace/validate",
    params=wire.WorkspaceParams,
    result=wire.WorkspaceRoot,
    summary="Where a directory really is; the one this process was started in if none is named.",
)
async def validate(call: Call[Client], params: wire.WorkspaceParams) -> wire.WorkspaceRoot:
    return wire.WorkspaceRoot(await root_of(call.state.house, params.workspace_root))


@WORKSPACE.method(
    "workspace/info",
    params=wire.WorkspaceParams,
    result=wire.WorkspaceInfo,
    summary="The same, with its name and whether it can be written to.",
)
async def info(call: Call[Client], params: wire.WorkspaceParams) -> wire.WorkspaceInfo:
    house = call.state.house
    root = await root_of(house, params.workspace_root)
    return wire.WorkspaceInfo(root, os.path.basename(root), await house.disk.writable(root))


async def root_of(house: House, given: str | None) -> str:
    """The directory that is meant, resolved; it must exist."""
    path = _expanded(house.cwd, given) if given else house.cwd
    found = await house.disk.directory(path)
    if found is None:
        raise Failed(f"Workspace root is not an existing directory: {path}")
    return found


def _expanded(cwd: str, given: str) -> str:
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(given)))

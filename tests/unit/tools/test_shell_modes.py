"""What a command may touch in each mode, what its approval says of it, and what happens where no sandbox works."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.app import App, open_app
from quintet.domain.errors import Invalid
from quintet.domain.event import InteractionRequested
from quintet.domain.interaction import Approval
from quintet.domain.item import ResultStatus, TextPart, ToolResult
from quintet.domain.principal import local
from quintet.domain.thread import ThreadSettings
from quintet.domain.tool import CallScope, Confine, ToolOutcome
from quintet.domain.turn import Mode
from quintet.engine.interactions import OnAsk
from quintet.tools.shell import ShellTool
from quintet.tools.shell_profile import ShellSettings, network
from quintet.workspace.environment import find_program
from quintet.workspace.sandbox import probe
from quintet.workspace.sandbox.profile import Network
from quintet.workspace.sandbox.wall import Sandbox
from tests.fakes.tool_context import FakeToolContext
from tests.faults.processes import write_home

needs_wall = pytest.mark.skipif(find_program("bwrap", os.environ) is None, reason="bubblewrap is not installed")
WRITE = "echo x > made || true"
ME = local("modes")


async def run(
    workspace: Path,
    command: str,
    mode: Mode,
    confine: Confine = Confine.AUTO,
    *,
    asks: bool = False,
    **settings: object,
) -> ToolOutcome:
    tool = ShellTool(settings=ShellSettings(**settings))  # type: ignore[arg-type]
    arguments = {"command": command, "network": asks}
    prepared = await tool.prepare(arguments, CallScope(str(workspace), "thr_test", mode, confine))
    context = FakeToolContext(str(workspace))
    context.mode, context.confine = mode, confine
    return await tool.run(prepared, context)


@needs_wall
@pytest.mark.req("mechanisms:M11.modes", "security:S26")
@pytest.mark.parametrize(
    ("mode", "confine", "writes"),
    [
        (Mode.READ_ONLY, Confine.AUTO, False),
        (Mode.ASK, Confine.AUTO, True),
        (Mode.ALLOW, Confine.AUTO, True),
        (Mode.ASK, Confine.READ_ONLY, False),
        (Mode.ALLOW, Confine.READ_ONLY, False),
    ],
)
async def test_a_command_writes_the_workspace_where_its_mode_lets_it_and_nothing_else_ever(
    workspace: Path, tmp_path: Path, mode: Mode, confine: Confine, writes: bool
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    await run(workspace, f"{WRITE}; echo x > {outside}/made", mode, confine)
    assert (workspace / "made").exists() is writes
    assert list(outside.iterdir()) == []


@needs_wall
@pytest.mark.req("security:S26")
async def test_a_mode_tightened_after_the_preparation_counts(workspace: Path) -> None:
    tool = ShellTool()
    prepared = await tool.prepare({"command": WRITE}, CallScope(str(workspace), mode=Mode.ALLOW))
    context = FakeToolContext(str(workspace))
    context.mode = Mode.READ_ONLY
    await tool.run(prepared, context)
    assert not (workspace / "made").exists()


@needs_wall
@pytest.mark.req("security:S26")
async def test_a_sandbox_that_cannot_be_built_is_not_taken_for_the_commands_own_failure(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(os.environ)
    tool = ShellTool(sandbox=sandbox)
    prepared = await tool.prepare({"command": WRITE}, CallScope(str(workspace)))
    monkeypatch.setattr(sandbox, "_launch", lambda: ("/nowhere/launcher",))
    context = FakeToolContext(str(workspace))
    done = await tool.run(prepared, context)
    assert done.message.startswith("nothing was run: the sandbox could not be built for it: bwrap: ")
    assert "/nowhere/launcher" in done.message
    assert (done.status, context.output) == (ResultStatus.ERROR, [])
    assert not (workspace / "made").exists()


@needs_wall
@pytest.mark.req("security:S26")
async def test_a_sandbox_that_fails_once_while_it_is_built_is_built_again(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(os.environ)
    tool = ShellTool(sandbox=sandbox)
    prepared = await tool.prepare({"command": "echo x >> made; echo once"}, CallScope(str(workspace)))
    launch, walls = sandbox._launch, []

    def first_fails() -> tuple[str, ...]:
        walls.append(1)
        return ("/nowhere/launcher",) if len(walls) == 1 else launch()

    monkeypatch.setattr(sandbox, "_launch", first_fails)
    done = await tool.run(prepared, FakeToolContext(str(workspace)))
    assert (done.text, len(walls)) == ("once\n", 2)
    assert (workspace / "made").read_text() == "x\n"


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@needs_wall
@pytest.mark.req("mechanisms:M11.modes", "security:S31")
@pytest.mark.parametrize(
    ("mode", "asks", "reached"),
    [
        (Mode.READ_ONLY, False, False),
        (Mode.READ_ONLY, True, False),
        (Mode.ASK, False, False),
        (Mode.ASK, True, True),
        (Mode.ALLOW, False, True),
    ],
)
async def test_the_network_is_there_only_where_the_mode_or_an_approved_request_gives_it(
    workspace: Path, listener: int, mode: Mode, asks: bool, reached: bool
) -> None:
    done = await run(workspace, f"exec 3<>/dev/tcp/127.0.0.1/{listener}", mode, asks=asks)
    assert (done.status is ResultStatus.OK) is reached, done.text


HOSTS = ("example.org",)


@pytest.mark.req("mechanisms:M11.open_server", "security:S31")
@pytest.mark.parametrize("open_server", [False, True])
@pytest.mark.parametrize("setting", [None, "off", "on", HOSTS])
def test_the_setting_is_the_most_a_command_gets(setting: Network | None, open_server: bool) -> None:
    settings = ShellSettings(setting, open_server)
    most = setting if setting is not None else "off" if open_server else "on"
    assert network(Mode.READ_ONLY, settings, asked=True) == "off"
    assert network(Mode.ASK, settings, asked=False) == "off"
    assert network(Mode.ASK, settings, asked=True) == most
    assert network(Mode.ALLOW, settings, asked=False) == most


@needs_wall
@pytest.mark.req("mechanisms:M11.open_server")
@pytest.mark.parametrize(("open_server", "told"), [(False, "with network"), (True, "no network")])
async def test_commands_cannot_reach_a_server_that_asks_for_no_credentials(
    tmp_path: Path, workspace: Path, open_server: bool, told: str
) -> None:
    async with open_app(str(tmp_path / "home"), "serve") as app:
        app.hands.open_server = open_server
        (shell,) = (tool for tool in app.tools if tool.spec.name == "shell")
        prepared = await shell.prepare({"command": "true"}, CallScope(str(workspace), mode=Mode.ALLOW))
    assert prepared.notes[0] == f"sandboxed: writes the working directory, {told}"


@needs_wall
@pytest.mark.parametrize(
    ("mode", "confine", "asks", "setting", "note", "wants"),
    [
        (Mode.ASK, Confine.AUTO, False, None, "sandboxed: writes the working directory, no network", False),
        (Mode.ASK, Confine.AUTO, True, None, "sandboxed: writes the working directory, with network", True),
        (Mode.ASK, Confine.READ_ONLY, True, HOSTS, "sandboxed: writes no files, with network, only example.org", True),
        (Mode.READ_ONLY, Confine.AUTO, False, None, "sandboxed: writes no files, no network", False),
        (Mode.ALLOW, Confine.AUTO, False, None, "sandboxed: writes the working directory, with network", False),
    ],
)
async def test_the_approval_says_what_the_sandbox_allows(
    workspace: Path, mode: Mode, confine: Confine, asks: bool, setting: Network | None, note: str, wants: bool
) -> None:
    tool = ShellTool(settings=ShellSettings(setting))
    scope = CallScope(str(workspace), mode=mode, confine=confine)
    shown = await tool.prepare({"command": "make", "network": asks}, scope)
    assert (shown.notes, shown.network, shown.confined) == ((note,), wants, True)


@needs_wall
@pytest.mark.parametrize(("mode", "setting"), [(Mode.READ_ONLY, None), (Mode.ASK, "off")])
async def test_a_request_for_network_that_gets_none_is_told(
    workspace: Path, mode: Mode, setting: Network | None
) -> None:
    tool = ShellTool(settings=ShellSettings(setting))
    shown = await tool.prepare({"command": "make", "network": True}, CallScope(str(workspace), mode=mode))
    assert "no network, though it asks for it" in shown.notes[0]
    assert not shown.network


@pytest.mark.req("mechanisms:M11.no_wall")
async def test_an_approval_without_sandbox_says_why_and_how_to_mend_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "SYSTEM_PLACES", "")
    tool = ShellTool(sandbox=Sandbox({"PATH": "/nowhere"}))
    shown = await tool.prepare({"command": "make"}, CallScope(str(workspace)))
    assert shown.notes[0].startswith("NOT SANDBOXED: it can do whatever you can. bubblewrap is not installed. ")
    assert "bubblewrap" in shown.notes[0].partition("installed.")[2]
    assert not shown.confined


async def test_a_turn_started_without_sandbox_says_so_in_every_approval(workspace: Path) -> None:
    shown = await ShellTool().prepare({"command": "make"}, CallScope(str(workspace), confine=Confine.OFF))
    assert shown.notes == (
        "NOT SANDBOXED: it can do whatever you can. The sandbox was switched off for this turn. "
        "Start it without `--sandbox off`.",
    )
    assert not shown.confined


async def asked_and_result(
    app: App, workspace: Path, mode: Mode, confine: Confine = Confine.AUTO
) -> tuple[Approval | None, ToolResult]:
    """What was asked of a person who is not there, and what became of the call."""
    thread = (await app.threads.create(ThreadSettings(str(workspace)))).id
    starter = app.starter(ME, mode=mode, on_ask=OnAsk.DENY, confine=confine)
    started = await app.turns.start(thread, (TextPart("go"),), starter)
    await app.turns.wait(started.turn.id, 20)
    events = [e for e in await app.journal.events(0, root=thread) if isinstance(e.payload, InteractionRequested)]
    requests = [e.payload.interaction.request for e in events if isinstance(e.payload, InteractionRequested)]
    results = [i.body for i in await app.threads.items(thread) if isinstance(i.body, ToolResult)]
    assert len(results) == 1
    first = requests[0] if requests else None
    assert first is None or isinstance(first, Approval)
    return first, results[0]


@pytest.mark.req("mechanisms:M11.no_wall", "security:S26")
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("required", ["unset", "false", "true"])
async def test_where_no_sandbox_works_a_command_is_asked_about_or_refused(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, required: str
) -> None:
    monkeypatch.setattr(probe, "SYSTEM_PLACES", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    config = "" if required == "unset" else f"[sandbox]\nrequired = {required}\n"
    script = 'scope: turn\ntool_call: shell {"command": "echo x > made"}\n---\ntext: end\n'
    async with open_app(str(write_home(tmp_path / "home", script, config)), "modes") as app:
        approval, result = await asked_and_result(app, workspace, mode)
    if required == "true":
        assert (approval, result.status) == (None, ResultStatus.DENIED)
        assert not (workspace / "made").exists()
    elif mode is Mode.ALLOW and required == "false":
        assert (approval, result.status) == (None, ResultStatus.OK)
        assert (workspace / "made").exists()
    else:
        assert approval is not None
        assert approval.notes[0].startswith("NOT SANDBOXED: ")
        assert approval.offers == ()
        assert result.status is ResultStatus.DENIED
        assert not (workspace / "made").exists()


OFF_FOR_THE_TURN = "The sandbox was switched off for this turn. Start it without `--sandbox off`."
OFF_BY_CONFIG = 'The sandbox is switched off in config.toml. Remove `mode = "off"` from [sandbox].'


@pytest.mark.req("mechanisms:M11.no_wall")
@pytest.mark.parametrize("required", ["", "required = true\n"])
@pytest.mark.parametrize(
    ("confine", "setting", "why"),
    [(Confine.OFF, "", OFF_FOR_THE_TURN), (Confine.AUTO, 'mode = "off"\n', OFF_BY_CONFIG)],
)
async def test_a_sandbox_that_somebody_switched_off_is_not_said_to_fail(
    tmp_path: Path, workspace: Path, confine: Confine, setting: str, why: str, required: str
) -> None:
    script = 'scope: turn\ntool_call: shell {"command": "echo x > made"}\n---\ntext: end\n'
    config = f"[sandbox]\n{setting}{required}"
    async with open_app(str(write_home(tmp_path / "home", script, config)), "modes") as app:
        _, result = await asked_and_result(app, workspace, Mode.ALLOW, confine)
    assert result.status is ResultStatus.DENIED
    assert why in result.text
    assert "works here" not in result.text
    assert ("[sandbox] required = true, and this would run without a sandbox" in result.text) is bool(required)


@needs_wall
async def test_a_command_in_the_root_directory_is_refused_before_anybody_is_asked() -> None:
    with pytest.raises(Invalid, match="cannot be confined to /:"):
        await ShellTool().prepare({"command": "make"}, CallScope("/"))


@needs_wall
async def test_a_writable_directory_that_is_not_there_is_told_with_the_call(workspace: Path, tmp_path: Path) -> None:
    tool = ShellTool(sandbox=Sandbox(os.environ, writable=[str(tmp_path / "cache")]))
    shown = await tool.prepare({"command": "make"}, CallScope(str(workspace)))
    assert shown.notes[1:] == (f"[sandbox] writable: {tmp_path}/cache is not there",)
    context = FakeToolContext(str(workspace))
    failing = await tool.prepare({"command": f"echo x > {tmp_path}/cache/f"}, CallScope(str(workspace)))
    done = await tool.run(failing, context)
    assert done.text.endswith(f"[exit code 1; [sandbox] writable: {tmp_path}/cache is not there]")
    assert not (tmp_path / "cache").exists()


@needs_wall
@pytest.mark.req("security:S28")
async def test_a_command_that_fails_at_a_protected_name_is_told_so(workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    protected = ".git/config is protected: no command may write it, only the person may; see docs/howto/sandbox.md]"
    done = await run(workspace, "git config a.b c", Mode.ALLOW)
    assert done.text.endswith(f"[exit code 4; {protected}")
    done = await run(workspace, "git config a.b c", Mode.ALLOW, Confine.READ_ONLY)
    assert "protected" not in done.text  # there nothing can be written
    done = await run(workspace, "git clean -fdx", Mode.ALLOW)
    assert ".claude, .codex, .cursor, 18 more are protected: no command may write them" in done.text
    done = await run(workspace, "echo .git/config: Permission denied", Mode.ALLOW)
    assert "protected" not in done.text


@needs_wall
@pytest.mark.req("security:S28")
async def test_a_protected_name_that_was_moved_aside_is_told(workspace: Path) -> None:
    done = await run(workspace, "echo '{}' > opencode.json", Mode.ALLOW)
    name = f"{workspace}/opencode.json"
    assert done.text == (
        "(no output)\n"
        f"[no command may change {name}, which is as it had been; "
        f"what came there while it ran is {name}.from-command now]"
    )
    assert done.status is ResultStatus.OK
    assert (workspace / "opencode.json.from-command").read_text() == "{}\n"


@needs_wall
async def test_where_path_names_no_directory_that_is_what_is_said(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    done = await run(workspace, "make", Mode.ALLOW)
    assert "PATH is '/nonexistent', and no such directory is there" in done.text
    assert "bubblewrap" not in done.text

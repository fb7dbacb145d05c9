"""Hooks in words: what a person reads of an open request to a client, and of what hooks held back."""

from __future__ import annotations

from quintet.cli.approvals import describe
from quintet.cli.notes import hook_lines
from quintet.domain.event import HookResolved
from quintet.domain.hook import HookAction, HookEvent
from quintet.domain.interaction import HookRequest, Interaction


def test_an_open_request_to_a_clients_hook_names_hook_moment_and_target_with_nothing_a_terminal_obeys() -> None:
    request = HookRequest("sub\x1b[2J", HookEvent.BEFORE_TOOL, "shell")
    words = describe(Interaction("int_1", "thr_1", "thr_1", "trn_1", "c1", request, 0))
    assert "waits for the client's hook sub" in words
    assert "(PreToolUse shell)" in words
    assert "\x1b" not in words


def test_hooks_that_let_a_thing_pass_are_no_news_and_blocks_and_problems_are() -> None:
    quiet = HookResolved(HookEvent.BEFORE_TOOL, HookAction.ALLOW, "shell")
    assert hook_lines(quiet) == []
    told = HookResolved(
        HookEvent.BEFORE_TOOL,
        HookAction.BLOCK,
        "shell",
        "not\x1b[2J now",
        "config.toml hooks[0]",
        3,
        ("b: exit code 1",),
    )
    problem, block = hook_lines(told)
    assert problem == "hook PreToolUse shell: b: exit code 1"
    assert block.startswith("hook PreToolUse shell: blocked by config.toml hooks[0]: not")
    assert "\x1b" not in block

"""Policy over fetching: rules that name addresses, as the tool really prepares them."""

from __future__ import annotations

import pytest

from quintet.domain.tool import CallScope
from quintet.domain.turn import Mode
from quintet.engine.policy import Policy
from quintet.engine.rules import Judgement, parse_rules
from quintet.tools.web_fetch import WebFetchTool
from quintet.workspace.commands import ShellCommandParser


async def judged(url: str, mode: Mode, rules: dict[str, str]) -> Judgement:
    tool = WebFetchTool()
    prepared = await tool.prepare({"url": url}, CallScope("/"))
    policy = Policy(parse_rules(rules), ShellCommandParser())
    at = {"protocol": "cli", "root": "thr_r", "project": "prj_p"}
    return policy.judge(tool.spec, prepared, mode, (), now_ms=0, **at).judgement


@pytest.mark.req("security:S35")
@pytest.mark.parametrize(
    ("url", "judgement"),
    [
        ("https://docs.python.org/3/", Judgement.ALLOW),
        ("https://docs.python.org:443/3/", Judgement.ALLOW),
        ("https://docs.python.org:8443/3/", Judgement.ASK),
        ("https://evil.org/docs.python.org/", Judgement.ASK),
        ("https://docs.python.org.evil.org/", Judgement.ASK),
    ],
)
async def test_an_allow_rule_covers_its_host_and_no_look_alike(url, judgement):
    assert await judged(url, Mode.ASK, {"web_fetch: *.python.org": "allow"}) is judgement


@pytest.mark.parametrize("url", ["https://bad.org/x", "http://bad.org/", "https://bad.org:8443/"])
async def test_a_deny_rule_covers_every_way_to_its_host(url):
    for mode in Mode:
        assert await judged(url, mode, {"web_fetch: bad.org": "deny"}) is Judgement.DENY


async def test_nothing_is_fetched_in_mode_read_only_and_fetching_is_asked_in_mode_ask():
    assert await judged("https://example.org/", Mode.READ_ONLY, {}) is Judgement.DENY
    assert await judged("https://example.org/", Mode.ASK, {}) is Judgement.ASK
    assert await judged("https://example.org/", Mode.ALLOW, {}) is Judgement.ALLOW

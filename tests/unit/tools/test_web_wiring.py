"""From config.toml to a search: the real composition, a real server."""

from __future__ import annotations

import pytest

from quintet.app import open_app
from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope
from tests.fakes.tool_context import FakeToolContext
from tests.fakes.web import reply, serving

KEY = "canary-key-0123456789"


async def searched(home, settings: str):
    """(the outcome, what the log would show of the key)"""
    (home / "config.toml").write_text(f"[web_search]\n{settings}\n")
    async with open_app(str(home), "cli") as app:
        tool = next(tool for tool in app.tools if tool.spec.name == "web_search")
        prepared = await tool.prepare({"query": "q"}, CallScope(str(home)))
        return await tool.run(prepared, FakeToolContext(str(home))), app.feed.mask(f"the key is {KEY}")


@pytest.mark.req("security:S34")
@pytest.mark.parametrize("place", ["api_key_env = 'PLAIN_NAME'", "credential = 'brave'"])
async def test_the_key_is_found_where_the_person_put_it_and_masked_everywhere_else(tmp_path, monkeypatch, place):
    home = tmp_path / "home"
    (home / "credentials").mkdir(parents=True, mode=0o700)
    if "credential" in place:
        (home / "credentials" / "brave").write_text(KEY)
        (home / "credentials" / "brave").chmod(0o600)
    else:
        monkeypatch.setenv("PLAIN_NAME", KEY)
    async with serving(reply(200, '{"web": {"results": []}}'), "127.0.0.1") as server:
        done, masked = await searched(home, f"provider = 'brave'\nurl = 'http://127.0.0.1:{server.port}/'\n{place}")
    assert (done.status, done.message) == (ResultStatus.OK, "0 results")
    assert server.seen[0].headers["x-subscription-token"] == KEY
    assert KEY not in masked


async def test_without_the_table_there_is_no_search_and_fetching_is_there_all_the_same(tmp_path):
    async with open_app(str(tmp_path), "cli") as app:
        names = {tool.spec.name for tool in app.tools}
    assert "web_fetch" in names
    assert "web_search" not in names

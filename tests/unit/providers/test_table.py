from __future__ import annotations

import subprocess
import sys

import pytest

from quintet.domain.errors import Invalid, NotConfigured
from quintet.domain.item import user_text
from quintet.providers.http import HttpProvider
from quintet.providers.offline import OfflineProvider
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings
from quintet.providers.table import ModelTable
from tests.fakes.model_server import ModelServer
from tests.fakes.requests import all_chunks, request_of, text_in
from tests.fakes.waiting import until


def scripted(path: str) -> ProviderSettings:
    return ProviderSettings(ProviderKind.SCRIPTED, script=path)


def test_without_any_settings_the_offline_model_answers():
    reference, provider = ModelTable().resolve("")
    assert reference == "offline/offline"
    assert isinstance(provider, OfflineProvider)


def test_explicit_goes_before_environment_before_config(tmp_path):
    (tmp_path / "s").write_text("text: hi")
    providers = {name: scripted(str(tmp_path / "s")) for name in ("a", "b", "c")}
    table = ModelTable(providers, default_model="c/x", environment={"QUINTET_MODEL": "b/y"})
    assert table.resolve("a/z")[0] == "a/z"
    assert table.resolve("")[0] == "b/y"
    assert ModelTable(providers, default_model="c/x", environment={}).resolve("")[0] == "c/x"


def test_a_full_reference_resolves_to_itself_and_to_the_same_provider():
    table = ModelTable()
    reference, provider = table.resolve("offline")
    assert table.resolve(reference) == (reference, provider)


def test_a_model_name_may_hold_slashes(tmp_path):
    (tmp_path / "s").write_text("text: hi")
    assert ModelTable({"a": scripted("s")}, directory=str(tmp_path)).resolve("a/b/c")[0] == "a/b/c"


async def test_a_scripted_provider_plays_the_file_it_names(tmp_path):
    (tmp_path / "demo.script").write_text("text: from the file")
    _, provider = ModelTable({"demo": scripted("demo.script")}, directory=str(tmp_path)).resolve("demo")
    assert text_in(await all_chunks(provider, request_of([user_text("go")]))) == "from the file"


@pytest.mark.parametrize("kind", ["openai-chat", "openai-responses", "anthropic"])
def test_a_provider_at_its_usual_address_needs_a_key(kind: str):
    table = ModelTable({"far": ProviderSettings(ProviderKind(kind))}, {"far/m": ModelSettings()})
    with pytest.raises(NotConfigured, match=r"'far/m' cannot be used: \[providers.far\] has no key.*offline") as error:
        table.resolve("far/m")
    assert error.value.data == {"model": "far/m", "usable": ["offline/offline"]}


def test_a_server_of_ones_own_needs_no_key():
    settings = ProviderSettings(ProviderKind.OPENAI_CHAT, base_url="http://127.0.0.1:9/v1")
    table = ModelTable({"near": settings}, {"near/m": ModelSettings()})
    assert isinstance(table.resolve("near/m")[1], HttpProvider)
    assert table.references() == ("near/m", "offline/offline")


def test_a_variable_that_is_named_and_not_set_is_told():
    settings = ProviderSettings(ProviderKind.ANTHROPIC, api_key_env="MY_KEY")
    with pytest.raises(NotConfigured, match="the variable MY_KEY is not set"):
        ModelTable({"far": settings}).resolve("far/m")


@pytest.mark.parametrize("url", ["ftp://x", "x.example/v1", "file:///etc/passwd"])
def test_an_address_that_is_not_http_is_told(url: str):
    settings = ProviderSettings(ProviderKind.OPENAI_CHAT, base_url=url, api_key="k")
    with pytest.raises(NotConfigured, match="begins with http"):
        ModelTable({"far": settings}).resolve("far/m")


@pytest.mark.parametrize("key", ["kéy", "two\nlines", "nul\0"])
def test_a_key_that_cannot_be_sent_is_told_without_being_shown(key: str):
    with pytest.raises(NotConfigured, match="characters that no key has") as error:
        ModelTable({"far": ProviderSettings(ProviderKind.ANTHROPIC, api_key=key)}).resolve("far/m")
    assert key not in error.value.line()


@pytest.mark.parametrize(
    ("environment", "provider", "path", "header"),
    [
        ({"OPENAI_API_KEY": "k1"}, "openai", "https://api.openai.com/v1/responses", "Bearer k1"),
        ({"OPENAI_BASE_URL": "http://near/v1"}, "openai", "http://near/v1/chat/completions", ""),
        (
            {"OPENAI_BASE_URL": "http://near/v1/", "OPENAI_API_KEY": " k2 "},
            "openai",
            "http://near/v1/chat/completions",
            "Bearer k2",
        ),
        ({"ANTHROPIC_API_KEY": "k3"}, "anthropic", "https://api.anthropic.com/v1/messages", "k3"),
        ({"OPENROUTER_API_KEY": "k4"}, "openrouter", "https://openrouter.ai/api/v1/chat/completions", "Bearer k4"),
    ],
)
def test_the_usual_variables_make_a_provider_without_any_file(environment, provider, path, header):
    _, made = ModelTable(environment=environment).resolve(f"{provider}/some-model")
    assert isinstance(made, HttpProvider)
    headers = made.headers()
    assert made.url == path
    assert (headers.get("authorization") or headers.get("x-api-key", "")) == header
    with pytest.raises(NotConfigured, match=f"{provider} needs a key: .*`quintet auth set {provider}`"):
        ModelTable(environment={}).resolve(f"{provider}/some-model")


def test_the_file_goes_before_the_usual_variables():
    mine = ProviderSettings(ProviderKind.OPENAI_CHAT, base_url="http://mine/v1", api_key="own")
    _, made = ModelTable({"openai": mine}, environment={"OPENAI_API_KEY": "k1"}).resolve("openai/m")
    assert isinstance(made, HttpProvider)
    assert (made.url, made.headers()["authorization"]) == ("http://mine/v1/chat/completions", "Bearer own")


class Stored(dict[str, str]):
    """Keys as the credentials keep them."""

    def names(self):
        return list(self)

    def get(self, name, default=None):
        return self[name]


@pytest.mark.req("models:K5")
@pytest.mark.parametrize(
    ("environment", "written", "stored", "key"),
    [
        ({"MY_KEY": "named"}, "written", {"far": "stored"}, "named"),
        ({}, "written", {"far": "stored"}, "written"),
        ({"MY_KEY": " "}, "", {"far": "stored", "other": "x"}, "stored"),
    ],
)
def test_a_key_is_that_of_the_variable_else_of_the_file_else_the_stored_one(environment, written, stored, key):
    far = ProviderSettings(ProviderKind.ANTHROPIC, api_key_env="MY_KEY", api_key=written)
    table = ModelTable({"far": far}, environment=environment, stored=Stored(stored))
    _, made = table.resolve("far/m")
    assert isinstance(made, HttpProvider)
    assert made.headers()["x-api-key"] == key
    assert table.key_sources("far")[0] == {"named": "environment", "written": "config", "stored": "stored"}[key]


@pytest.mark.req("models:K5")
def test_a_stored_key_makes_a_well_known_provider_without_any_file():
    table = ModelTable(stored=Stored(deepseek="k"))
    assert isinstance(table.resolve("deepseek/deepseek-flash")[1], HttpProvider)
    with pytest.raises(
        NotConfigured, match="anthropic needs a key: set ANTHROPIC_API_KEY or run `quintet auth set anthropic`"
    ):
        table.resolve("anthropic/claude-opus-5")
    assert "quintet auth set anthropic" in table.lacks("anthropic")


def test_a_stored_key_that_cannot_be_opened_is_said_when_it_is_needed_and_not_before():
    class Locked(Stored):
        def get(self, name, default=None):
            raise Invalid(f"The credential {name!r} is encrypted.")

    table = ModelTable(stored=Locked(openai=""))
    assert table.lacks("openai") == ""
    with pytest.raises(NotConfigured, match="'openai' is encrypted"):
        table.resolve("openai/gpt-5")


async def test_closing_the_table_closes_every_connection():
    async with ModelServer() as server:
        settings = ProviderSettings(ProviderKind.OPENAI_CHAT, base_url=server.url)
        table = ModelTable({"a": settings, "b": settings})
        for name in ("a", "b", "offline"):
            await all_chunks(table.resolve(f"{name}/m")[1], request_of([user_text("go")]))
        assert server.open_connections == 2
        await table.close()
        await until(lambda: server.open_connections == 0)


def test_nothing_heavy_is_imported_before_a_request_is_sent():
    script = (
        "import sys; from quintet.providers.table import ModelTable\n"
        "table = ModelTable(environment={'ANTHROPIC_API_KEY': 'k', 'OPENAI_API_KEY': 'k'})\n"
        "table.resolve('anthropic/m'); table.resolve('openai/m')\n"
        "print(*sorted({'httpx2', 'httpcore2', 'anyio', 'h11', 'ssl', 'truststore'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=20)
    assert set(done.stdout.split()) <= {"ssl"}  # asyncio brings that one along


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("nowhere/m", "no provider named 'nowhere'"),
        ("far", "named provider/model"),
        ("far/", "named provider/model"),
        ("empty/x", "names no script"),
        ("gone/x", "cannot be read: No such file"),
        ("bad/x", "bad.script, line 1"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_reason(tmp_path, reference: str, words: str):
    (tmp_path / "bad.script").write_text("nonsense")
    providers = {
        "far": ProviderSettings(ProviderKind.ANTHROPIC),
        "empty": scripted(""),
        "gone": scripted("gone.script"),
        "bad": scripted("bad.script"),
    }
    with pytest.raises(NotConfigured, match=words) as error:
        ModelTable(providers, directory=str(tmp_path)).resolve(reference)
    assert "offline/offline" in error.value.message
    assert "\n" not in error.value.line()


def test_printed_settings_do_not_hold_the_key():
    assert "hunter2hunter2" not in repr(ProviderSettings(ProviderKind.ANTHROPIC, api_key="hunter2hunter2"))

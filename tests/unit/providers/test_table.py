from __future__ import annotations

import pytest

from quintet.domain.errors import NotConfigured
from quintet.domain.item import user_text
from quintet.providers.offline import OfflineProvider
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings
from quintet.providers.table import ModelTable
from tests.fakes.requests import all_chunks, request_of, text_in


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
def test_a_kind_that_is_not_built_says_so_and_names_what_would_work(kind: str):
    table = ModelTable({"far": ProviderSettings(ProviderKind(kind))}, {"far/m": ModelSettings()})
    with pytest.raises(NotConfigured, match=f"'far/m' cannot be used: .*{kind} yet.*offline/offline") as error:
        table.resolve("far/m")
    assert error.value.data == {"model": "far/m", "usable": ["offline/offline"]}


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

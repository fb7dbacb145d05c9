from __future__ import annotations

import os
import stat

import pytest

from quintet import config
from quintet.config import Config, home_directory, load_config, make_home, parse_config
from quintet.domain.errors import Invalid, QuintetError, StorageReadOnly
from quintet.domain.turn import Mode
from quintet.workspace.web.search_endpoint import endpoint
from quintet.workspace.web.search_settings import SearchSettings

EVERYTHING = """
version = 1
default_model = "fake/fake-model"
x-note = { anything = 1 }

[providers.fake]
kind = "openai-chat"
base_url = "http://127.0.0.1:9999/v1"
api_key_env = "FAKE_API_KEY"
headers = { a = "b" }
timeout_s = 600
idle_timeout_s = 60
max_retries = 3
x-mine = true

[providers.demo]
kind = "scripted"
script = "demo.script"

[models."fake/fake-model"]
context_window = 100000
max_output = 8192
vision = false
reasoning = false
input_price = 1
output_price = 2.5
fallback = ["demo/x"]

[policy]
mode = "ask"
[policy.rules]
"shell: git status *" = "allow"

[projects]
roots = ["/src"]

[sandbox]
mode = "auto"
required = true
network = ["example.org"]
writable = ["~/.cache/pip", "/var/cache/own"]

[limits]
interaction_timeout_s = 60
turn_budget = 1.5
day_budget = 10
max_steps = 50
storage_quota = "5GB"

[mcp.files]
command = ["mcp-files", "."]
env = { A = "b" }
[mcp.web]
url = "https://example.org/mcp"

[[hooks]]
event = "PreToolUse"
matcher = "shell"
command = "notify"
timeout_s = 5

[agents.reviewer]
instructions = "Review."
model = "demo/x"
tools = ["read"]
mode = "read-only"

[retention]
delta_grace_s = 900
checkpoints_days = 7

[memory]
[embeddings]
[web_search]
provider = "brave"
url = "https://search.example.org/web"
api_key_env = "BRAVE_KEY"
[mirrors]
kimi = "all"
[log]
"""


def parsed(text: str) -> Config:
    return parse_config(text.encode(), "/h/config.toml")


def test_every_key_is_read():
    made = parsed(EVERYTHING)
    assert made.warnings == ()
    assert made.default_model == "fake/fake-model"
    assert made.providers["fake"].timeout_s == 600.0
    assert made.providers["demo"].script == "demo.script"
    assert made.models["fake/fake-model"].input_price == 1.0
    assert made.policy.mode is Mode.ASK
    assert made.policy.rules == {"shell: git status *": "allow"}
    assert made.sandbox.network == ("example.org",)
    assert made.sandbox.required is True
    assert made.sandbox.writable == ("~/.cache/pip", "/var/cache/own")
    assert made.limits.storage_quota == "5GB"
    assert made.mcp["files"].command == ("mcp-files", ".")
    assert made.hooks[0].matcher == "shell"
    assert made.agents["reviewer"].mode is Mode.READ_ONLY
    assert made.web_search == SearchSettings("brave", "https://search.example.org/web", "BRAVE_KEY")
    assert made.mirrors.kimi == "all"


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        (SearchSettings("searxng", "http://127.0.0.1:8888"), "http://127.0.0.1:8888/search"),
        (SearchSettings("searxng", "https://s.org/x/?language=de"), "https://s.org/x/search?language=de"),
        (SearchSettings("searxng", "http://search.lan/search", "KEY"), "http://search.lan/search"),
        (SearchSettings("brave", "", "KEY"), "https://api.search.brave.com/res/v1/web/search"),
        (SearchSettings("tavily", "", credential="t"), "https://api.tavily.com/search"),
        (SearchSettings("exa", "http://[::1]:9/search", "KEY"), "http://[::1]:9/search"),
    ],
)
def test_a_search_goes_where_the_person_said(settings, where):
    assert endpoint(settings).text == where


def test_no_file_is_the_defaults(tmp_path):
    assert load_config(str(tmp_path)) == Config()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("defualt_model = 'x'", "unknown key `defualt_model`. Did you mean `default_model`?"),
        ("[limits]\nmax_step = 3", "unknown key `limits.max_step`. Did you mean `max_steps`?"),
        ("[providers.a]\nkind = 'offline'\nqqq = 1", "unknown key `providers.a.qqq`. Known here: kind, base_url"),
        ("[models.'a/b']\nvison = true", 'unknown key `models."a/b".vison`. Did you mean `vision`?'),
        ("warnings = []", "unknown key `warnings`"),
        ("default_model = 3", "`default_model`: expected `str`, got `int`"),
        ("[limits]\nmax_steps = 'many'", "`limits.max_steps`: expected `int`, got `str`"),
        ("[limits]\nmax_steps = 0", "`limits.max_steps`: expected `int` >= 1"),
        ("[providers.a]\nkind = 'openai'", "`providers.a.kind`: invalid enum value 'openai'. Use one of openai-chat,"),
        ("[providers.a]\nbase_url = 'x'", "providers.a needs `kind`. Add `kind = …`"),
        ("[providers]\na = 1", "`providers.a` must be a table. Write it as [providers.a]"),
        ("limits = 1", "`limits` must be a table"),
        ("embeddings = 1", "`embeddings`: expected `table`, got `int`"),
        ("[policy]\nmode = 'yolo'", "Use one of read-only, ask, allow."),
        ("[policy.rules]\n'shell' = 'maybe'", "Use one of allow, ask, deny."),
        ("[sandbox]\nmode = 'on'", "Use one of auto, off."),
        ("[sandbox]\nwritable = ['cache']", "`sandbox.writable` (in one of its entries): expected `str` (absolute, or"),
        ("[sandbox]\nwritable = ['/']", "(absolute, or from ~/)"),
        ("[sandbox]\nnetwork = ['a b']", "sandbox.network: 'a b' is not a host. "),
        ("[sandbox]\nnetwork = ['*']", "sandbox.network: '*' is not a host. "),
        ("[sandbox]\nnetwork = ['*.org']", "sandbox.network: '*.org' would allow too much or nothing."),
        ("[sandbox]\nnetwork = ['https://a.org/']", "sandbox.network: 'https://a.org/' is not a host."),
        ("[sandbox]\nnetwork = ['a.org:0']", "sandbox.network: 'a.org:0' is not a host."),
        ("[sandbox]\nnetwork = ['127.1']", "sandbox.network: '127.1' is not a host. The host looks like an IPv4"),
        ("[web_search]", "web_search needs `provider`"),
        ("[web_search]\nprovider = 'google'", "Use one of searxng, brave, tavily, exa."),
        ("[web_search]\nprovider = 'searxng'", "web_search.url is missing. Name your SearXNG"),
        ("[web_search]\nprovider = 'brave'", "web_search.provider brave needs a key. Name the variable"),
        ("[web_search]\nprovider = 'exa'\napi_key_env = 'A'\ncredential = 'b'", "both `api_key_env` and `credential`"),
        ("[web_search]\nprovider = 'searxng'\nurl = 'ftp://a.org'", "web_search.url: ftp: URLs are not fetched"),
        ("[web_search]\nprovider = 'searxng'\nurl = 'https://u:p@a.org'", "web_search.url: A URL cannot carry"),
        (
            "[web_search]\nprovider = 'exa'\napi_key_env = 'A'\nurl = 'http://api.exa.ai/search'",
            "web_search.url would send the key unencrypted. Use https.",
        ),
        ("hooks = 1", "`hooks`: expected `list`, got `int`"),
        ("[[hooks]]\nevent = 'Stop'", "hooks[0] needs `command`"),
        ("[[hooks]]\nevent = 'x'", "`hooks[0].event`: invalid enum value 'x'. Use one of PreToolUse, PostToolUse"),
        ("[[hooks]]\nevent = 'Stop'\ncommand = ''", "`hooks[0].command`: expected `str` of length >= 1"),
        ("[[hooks]]\nevent = 'Stop'\ncommand = 'x'\ntimeout_s = 601", "`hooks[0].timeout_s`: expected `float` <= 600"),
        ("[[hooks]]\nevent = 'Stop'\ncommand = 'x'\nmatcher = '('", "`hooks[0].matcher`: the matcher '(' is not a"),
        (
            "[[hooks]]\nevent = 'Stop'\ncommand = 'x'\nmatcher = '(a+)+'",
            "`hooks[0].matcher`: the matcher '(a+)+' could",
        ),
        ("version = 'new'", "`version`: expected `int`, got `str`"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_key_and_fix(text, words):
    with pytest.raises(Invalid) as error:
        parsed(text)
    line = error.value.line()
    assert line.startswith("/h/config.toml: ")
    assert words in line
    assert "\n" not in line


@pytest.mark.parametrize(("data", "words"), [(b"a = ", "not TOML: Invalid value"), (b"\xff", "not UTF-8 text")])
def test_a_file_that_cannot_be_parsed_is_one_line(data, words):
    with pytest.raises(Invalid) as error:
        parse_config(data, "/h/config.toml")
    assert error.value.line().startswith("/h/config.toml cannot be read: it is " + words)
    assert "\n" not in error.value.line()


def test_a_file_that_cannot_be_opened_is_one_line(tmp_path):
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(Invalid, match="Is a directory"):
        load_config(str(tmp_path))


def test_in_a_file_of_a_newer_version_unknown_keys_only_warn():
    made = parsed("version = 99\nnew_thing = 1\ndefault_model = 'a/b'\n[limits]\nnewer = 2\n")
    assert made.default_model == "a/b"
    assert [w.split("`")[1] for w in made.warnings] == ["new_thing", "limits.newer"]


def test_a_newer_file_is_no_excuse_for_a_wrong_type():
    with pytest.raises(Invalid):
        parsed("version = 99\ndefault_model = 1")


def test_a_key_in_plain_text_is_warned_about_and_not_shown():
    made = parsed("[providers.a]\nkind = 'anthropic'\napi_key = 'sk-very-secret'")
    (warning,) = made.warnings
    assert "providers.a.api_key" in warning
    assert "sk-very-secret" not in warning + repr(made)


@pytest.mark.parametrize(
    ("flag", "environment", "platform", "expected"),
    [
        ("/flag", {"QUINTET_HOME": "/env", "HOME": "/u"}, "linux", "/flag"),
        (None, {"QUINTET_HOME": "/env", "HOME": "/u"}, "linux", "/env"),
        (None, {"HOME": "/u"}, "linux", "/u/.local/share/quintet"),
        (None, {"HOME": "/u", "XDG_DATA_HOME": "/data"}, "linux", "/data/quintet"),
        (None, {"HOME": "/u", "XDG_DATA_HOME": "relative"}, "linux", "/u/.local/share/quintet"),
        (None, {"HOME": "/u", "XDG_DATA_HOME": "/data"}, "darwin", "/u/Library/Application Support/quintet"),
    ],
)
def test_the_home_directory_is_found(flag, environment, platform, expected):
    assert home_directory(flag, environment, platform) == expected


def test_a_relative_home_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert home_directory("here", {}) == str(tmp_path / "here")


def test_the_home_is_made_for_its_owner_only(tmp_path):
    made = tmp_path / "a" / "home"
    before = os.umask(0)
    try:
        make_home(str(made))
        make_home(str(made))
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(Invalid, match="is not a directory"):
        make_home(str(tmp_path / "file"))
    with pytest.raises(StorageReadOnly, match="cannot be made") as error:
        make_home("/proc/nowhere/home")
    assert "\n" not in error.value.line()


@pytest.mark.parametrize("names", [[".git", "README.md", "src"], [".bashrc"], ["agents", "notes.txt"]], ids=str)
def test_a_directory_that_is_there_for_something_else_is_no_home(tmp_path, names):
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(Invalid, match="no home of Quintet's: it holds ") as error:
        make_home(str(tmp_path))
    assert names[-1] in error.value.message
    assert f"{tmp_path}/quintet" in error.value.line()
    assert "\n" not in error.value.line()
    assert sorted(os.listdir(tmp_path)) == sorted(names)


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["config.toml"],
        ["config.toml", "model.script"],
        ["quintet.db", "notes.txt", ".git"],
        ["quintet.db-wal", "quintet.db.repairing", "kept"],
        ["quintet.log", "notes.txt"],
        ["AGENTS.md", "agents", "skills", "credentials", "profiles"],
        ["run", "reserve", ".making-abc", "lost+found"],
    ],
    ids=str,
)
def test_a_home_is_known_by_what_is_in_it(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    make_home(str(tmp_path))


def test_a_configuration_of_another_program_makes_no_home_and_is_named(tmp_path):
    (tmp_path / "content").mkdir()
    (tmp_path / "config.toml").write_text('baseURL = "https://example.org"\n')
    with pytest.raises(Invalid, match="baseURL") as error:
        make_home(str(tmp_path))
    assert f"{tmp_path}/config.toml" in error.value.line()


def test_tomllib_is_not_loaded_before_there_is_a_file():
    import subprocess
    import sys

    code = "import sys, quintet.config, quintet.tools.builtin, quintet.providers.table as t; t.ModelTable().resolve('')"
    heavy = "{'tomllib', 'difflib', 'shutil', 'tempfile', 'httpx2', 'starlette', 'shlex'}"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print({heavy} & set(sys.modules))"], capture_output=True, text=True
    )
    assert done.stdout == "set()\n", done.stderr


def test_every_error_of_the_loader_is_one_of_ours():
    for junk in (
        "[[providers]]",
        "[models]\na = []",
        "providers = 'x'",
        "[agents.a]\ntools = 'x'",
        "[mcp.a]\ncommand = 1",
    ):
        with pytest.raises(QuintetError):
            parsed(junk)
    assert config.VERSION == 1

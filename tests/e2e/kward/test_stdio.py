"""The real executable on real pipes: a dialogue in the order of its published client, each way to end, several
processes on one home, and one that is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.kward_client import KWARD, KwardClient, kinds, payloads
from tests.faults.processes import QUINTET, environment, quintet, write_home

SAYS = 'scope: turn\nthink: "hm"\ntext: "one "\ntext: "two"\n'
HOLDS = 'scope: turn\ntext: "begin "\nuntil: never\n'
QUESTION = {
    "question": "Which?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
# Methods that no group of the capabilities names; clients know them from the document.
UNNAMED = {"initialize", "shutdown", "workspace/validate", "workspace/info"}
UNNAMED |= {"turns/cancel", "turns/status", "turns/events"}
WORKS = f"""scope: thread
text: "I write."
tool_call: write_file {{"path": "a.txt", "content": "hello\\n"}}
---
tool_call: run_shell_command {{"command": "cat a.txt; exit 3"}}
---
text: "Written."
---
tool_call: ask_user_question {json.dumps({"questions": [QUESTION]})}
---
text: "Blue then."
---
text: "Thinking."
until: go
---
text: "As you say."
---
text: "Long."
until: never
"""


def client(tmp_path: Path, script: str = SAYS, **env: str) -> KwardClient:
    home = tmp_path / "home"
    return KwardClient(home if home.exists() else write_home(home, script), tmp_path / "work", **env)


def listed(tmp_path: Path) -> list[Any]:
    """A short-lived process for the list, as the client starts one after each turn."""
    with client(tmp_path) as other:
        other.ok("initialize")
        rows: list[Any] = other.ok("sessions/list", workspaceRoot=str(tmp_path / "work"))["sessions"]
        code, said = other.leave()
    assert (code, said) == (0, "")
    return rows


def looked(kward: KwardClient, session: str) -> tuple[Any, Any]:
    """What is asked for after each turn."""
    ids = [kward.begin("models/list")]
    ids += [kward.begin(f"runtime/{name}", sessionId=session) for name in ("state", "stats")]
    ids.append(kward.begin("resources/startup", sessionId=session))
    replies = [kward.reply(id) for id in ids]
    assert all("result" in reply for reply in replies[1:])
    return replies[1]["result"], replies[2]["result"]


@pytest.mark.req("kward:14", "kward:13", "kward:79", "kward:104", "kward:83", "kward:31")
def test_a_dialogue_in_the_order_of_the_published_client(tmp_path: Path) -> None:
    work = tmp_path / "work"
    with client(tmp_path, WORKS) as kward:
        kward.ok("initialize")
        ids = [kward.begin("sessions/create", workspaceRoot=str(work))]
        ids += [kward.begin(name) for name in ("models/list", "auth/providers")]
        session = kward.reply(ids[0])["result"]
        for id in ids[1:]:
            kward.reply(id)
        state, _ = looked(kward, session["id"])
        assert state["sessionFile"] == session["path"]
        assert listed(tmp_path) == []
        # A turn with tools.
        events = kward.turn(session["id"], "write it")
        wrote, ran = payloads(events, "toolResult")
        assert (wrote["toolName"], wrote["result"]["changedFiles"]) == ("write", ["a.txt"])
        assert (ran["toolName"], ran["result"]["isError"]) == ("bash", False)
        assert "hello" in ran["content"]
        assert (work / "a.txt").read_text() == "hello\n"
        _, stats = looked(kward, session["id"])
        assert (stats["toolCalls"], stats["userMessages"]) == (2, 1)
        (row,) = listed(tmp_path)
        assert (row["path"], row["firstMessage"]) == (session["path"], "write it")
        # A question.
        turn = kward.ok("turns/start", sessionId=session["id"], input="ask me")
        asked = kward.until(lambda m: m.get("method") == "ui/question")["params"]
        assert asked["questions"] == [QUESTION]
        given = {"sessionId": session["id"], "questionRequestId": asked["questionRequestId"]}
        kward.ok("ui/answerQuestion", **given, answers=[{"question": "Which?", "answer": "Blue"}])
        (result,) = payloads(kward.finished(turn["id"]), "toolResult")
        assert result["content"] == "Which?: Blue"
        # A steer while it is busy.
        turn = kward.ok("turns/start", sessionId=session["id"], input="think")
        kward.hears("assistantDelta", turn["id"])
        steered = kward.ok("turns/start", sessionId=session["id"], input="rather so", streamingBehavior="steer")
        assert steered["id"] == turn["id"]
        (tmp_path / "home" / "go").touch()
        assert payloads(kward.finished(turn["id"]), "answer") == [{"content": "As you say."}]
        # Stop.
        turn = kward.ok("turns/start", sessionId=session["id"], input="long")
        kward.hears("assistantDelta", turn["id"])
        kward.ok("turns/cancel", turnId=turn["id"])
        assert payloads(kward.finished(turn["id"]), "turnFinished")[0]["status"] == "canceled"
        before = kward.ok("sessions/transcript", sessionId=session["id"])["messages"]
        assert kward.leave() == (0, "")
    # Reopened, with its transcript.
    with client(tmp_path) as kward:
        kward.ok("initialize")
        again = kward.ok("sessions/resume", path=session["path"], workspaceRoot=str(work))
        assert again["persistentId"] == session["persistentId"]
        assert kward.ok("sessions/transcript", sessionId=again["id"])["messages"] == before
        assert kward.ok("shutdown") == {"ok": True}
        assert kward.rest() == []
        assert kward.ended(5) == (0, "")


def methods_in(told: object) -> set[str]:
    """Every method that the capabilities name, at any depth."""
    if not isinstance(told, dict):
        return set()
    found = {name for key, value in told.items() if key == "methods" for name in value}
    found |= {value for key, value in told.items() if key in ("method", "runMethod")}
    return found.union(*map(methods_in, told.values()))


@pytest.mark.req("kward:18", "kward:19")
def test_every_method_that_is_named_is_served(tmp_path: Path) -> None:
    with client(tmp_path, HTTPS_PROXY="http://127.0.0.1:9") as kward:
        named = methods_in(kward.ok("initialize")["capabilities"])
        served = quintet("methods", "kward", home=tmp_path / "home").out.splitlines()
        assert named == {line.split()[0] for line in served} - UNNAMED
        for name in sorted(named):
            assert kward.call(name).get("error", {}).get("code") != -32601, name
        assert kward.leave() == (0, "")


@pytest.mark.req("kward:12", "kward:14", "kward:55")
@pytest.mark.parametrize("way", ["end", "signal", "both"])
def test_each_way_to_end_is_clean_and_quick_also_while_a_turn_runs(tmp_path: Path, way: str) -> None:
    with client(tmp_path, HOLDS) as kward:
        busy = kward.ok("sessions/create", name="busy")
        unused = kward.ok("sessions/create")
        turn = kward.ok("turns/start", sessionId=busy["id"], input="go")
        kward.hears("assistantDelta", turn["id"])
        began = time.monotonic()
        if way in ("end", "both"):
            kward.hang_up()
        if way in ("signal", "both"):
            kward.signal(signal.SIGTERM)
        kward.rest()
        assert kward.ended(10) == (0, "")
        assert time.monotonic() - began < 8  # two seconds where nobody else needs the processor; see the bench
    assert Path(busy["path"]).exists()
    assert not Path(unused["path"]).exists()
    roles = [json.loads(line).get("message", {}).get("role") for line in Path(busy["path"]).read_text().splitlines()]
    assert roles[-2:] == ["user", "assistant"]


def test_a_process_killed_in_the_middle_of_a_turn_is_gone_on_with(tmp_path: Path) -> None:
    with client(tmp_path, HOLDS) as kward:
        session = kward.ok("sessions/create")
        turn = kward.ok("turns/start", sessionId=session["id"], input="first")
        kward.hears("assistantDelta", turn["id"])
        kward.signal(signal.SIGKILL)
        assert kward.popen.wait(10) == -9
    (tmp_path / "home" / "model.script").write_text(SAYS)
    with client(tmp_path) as kward:
        again = kward.ok("sessions/resume", path=session["path"])
        told = kward.ok("sessions/transcript", sessionId=again["id"])["messages"]
        assert [m["role"] for m in told] == ["user", "assistant"]
        assert told[1]["content"] == [{"type": "text", "text": "begin "}]
        assert told[1]["errorMessage"]
        assert payloads(kward.turn(again["id"], "second"), "answer") == [{"content": "one two"}]
        assert kward.leave() == (0, "")
    records = [json.loads(line) for line in Path(session["path"]).read_text().splitlines()]
    said = [r["message"]["content"] for r in records if r["type"] == "message"]
    assert said == ["first", "begin ", "second", "one two"]


def test_several_processes_on_one_home_do_not_stand_in_each_others_way(tmp_path: Path) -> None:
    with client(tmp_path) as one, client(tmp_path) as two, client(tmp_path) as three:
        clients = (one, two, three)
        sessions = [kward.ok("sessions/create") for kward in clients]
        turns = [k.ok("turns/start", sessionId=s["id"], input="go") for k, s in zip(clients, sessions, strict=True)]
        for kward, turn in zip(clients, turns, strict=True):
            assert kinds(kward.finished(turn["id"]))[-1] == "turnFinished"
        rows = one.ok("sessions/list")["sessions"]
        assert {row["path"] for row in rows} == {session["path"] for session in sessions}
        # One goes on with the session of another.
        twin = two.ok("sessions/resume", path=sessions[0]["path"])
        two.turn(twin["id"], "from two")
        one.turn(sessions[0]["id"], "from one")
        told = three.ok("sessions/resume", path=sessions[0]["path"])
        messages = three.ok("sessions/transcript", sessionId=told["id"])["messages"]
        assert [m["content"][0]["text"] for m in messages if m["role"] == "user"] == ["go", "from two", "from one"]
        for kward in clients:
            assert kward.leave() == (0, "")
    records = [json.loads(line) for line in Path(sessions[0]["path"]).read_text().splitlines()]
    assert len([r for r in records if r["type"] == "message"]) == 6


@pytest.mark.req("mechanisms:M6.owner")
def test_a_turn_of_the_command_line_is_in_the_file_too(tmp_path: Path) -> None:
    with client(tmp_path) as kward:
        session = kward.ok("sessions/create")
        kward.turn(session["id"], "first")
        (thread,) = quintet("threads", "list", "--json", home=tmp_path / "home").lines
        done = quintet("run", "--thread", thread["id"], "second", home=tmp_path / "home", cwd=tmp_path / "work")
        assert done.code == 0, done
    records = [json.loads(line) for line in Path(session["path"]).read_text().splitlines()]
    assert [r["message"]["content"] for r in records if r["type"] == "message"][2:] == ["second", "one two"]


def test_a_plugin_runs_confined_and_the_process_goes_on(tmp_path: Path) -> None:
    plugins = tmp_path / ".kward" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "own.py").write_text(
        "import os\nCOMMANDS = {'look': 'Looks around', 'fail': 'Fails'}\n"
        "def run(command, arguments, context):\n"
        "    if command == 'fail':\n        os._exit(7)\n"
        "    print('printed')\n"
        "    home = os.environ.get('QUINTET_HOME', 'no home')\n"
        "    seen = os.path.exists(arguments)\n"
        "    return f'{home} {seen} {os.path.basename(os.getcwd())}'\n"
    )
    with client(tmp_path) as kward:
        session = kward.ok("sessions/create")["id"]
        journal = str(tmp_path / "home" / "quintet.db")
        told = kward.ok("commands/run", sessionId=session, name="look", arguments=journal)
        assert told == {"command": "look", "output": ["printed"], "result": "no home False work"}
        assert "failed" in kward.call("commands/run", sessionId=session, name="fail")["error"]["message"]
        events = kward.turn(session, "/fail")
        assert payloads(events, "turnFinished")[0]["status"] == "failed"
        assert payloads(kward.turn(session, "hello"), "answer") == [{"content": "one two"}]
        assert kward.leave() == (0, "")


@pytest.mark.req("kward:14")
def test_a_home_that_cannot_be_used_is_one_line_on_stderr_and_nothing_on_stdout(tmp_path: Path) -> None:
    write_home(tmp_path / "home", config="nonsense = true\n")
    with client(tmp_path) as kward:
        assert kward.rest() == []
        code, said = kward.ended(10)
    assert code == 2
    assert len(said.splitlines()) == 1
    assert "config.toml" in said


def test_the_program_and_the_command_are_the_same(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", SAYS)
    with KwardClient(home, tmp_path / "work", QUINTET, "kward") as kward:
        assert kward.ok("initialize")["serverName"] == "kward"
        assert kward.leave() == (0, "")
    for words in ([], ["serve"], ["--help"]):
        done = subprocess.run([KWARD, *words], capture_output=True, timeout=30, env=environment(), check=False)
        assert (done.returncode, done.stdout) == (2, b"")
    done = subprocess.run([KWARD, "--version"], capture_output=True, timeout=30, env=environment(), check=True)
    assert done.stdout.startswith(b"quintet-kward ")
    told = quintet("methods", "kward", home=tmp_path / "home")
    assert [line.split()[0] for line in told.out.splitlines()][:3] == ["initialize", "shutdown", "workspace/validate"]


def test_nothing_heavy_is_loaded_before_a_turn_needs_it(tmp_path: Path) -> None:
    """The first replies of a process are waited for by a person."""
    heavy = [
        "tree_sitter",
        "pathspec",
        "h11",
        "httpx2",
        "cryptography",
        "ctypes",
        "starlette",
        "uvicorn",
        "yaml",
        "mcp",
    ]
    probe = (
        "import sys\nfrom quintet.cli.kward_program import main\n"
        "code = main(['rpc'])\n"
        f"sys.stderr.write(' '.join(name for name in {heavy!r} if name in sys.modules))\n"
    )
    home = write_home(tmp_path / "home", SAYS)
    with KwardClient(home, tmp_path / "work", sys.executable, "-c", probe) as kward:
        kward.ok("initialize")
        session = kward.ok("sessions/create")
        looked(kward, session["id"])
        kward.ok("sessions/list")
        kward.hang_up()
        assert kward.ended(10) == (0, "")

"""Subagents as a person meets them: real processes, models behind HTTP in others, a second terminal beside them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.processes import Process, no_traceback, quintet, quintet_running, wait_until

ROOT = Path(__file__).parents[2]
ENV = {"FAR_KEY": "sk-quite-a-secret-0123456789"}
END = '---\ntext: "the end"\n'


def task(agent: str = "worker", **more: str) -> str:
    given = {"description": f"work of {agent}", "prompt": "do it", "agent": agent, **more}
    return f"tool_call: task {json.dumps(given)}\n"


def write(path: str, content: str) -> str:
    return f"tool_call: write {json.dumps({'path': path, 'content': content})}\n"


@contextmanager
def family(tmp_path: Path, **scripts: str) -> Iterator[Path]:
    """A home with one agent per script, each with a model server of its own; `boss` is who the person speaks with."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    lines = ["version = 1", 'default_model = "boss/m"', "[sandbox]", "required = false"]
    with ExitStack() as stack:
        for name, script in scripts.items():
            file = tmp_path / f"{name}.script"
            file.write_text(script)
            command = [sys.executable, "-m", "tests.fakes.model_server", "--script", str(file)]
            pipe = subprocess.PIPE
            server = stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe))
            stack.callback(server.terminate)
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            lines += [f"[providers.{name}]", 'kind = "openai-chat"', f'base_url = "{url}"', 'api_key_env = "FAR_KEY"']
            if name != "boss":
                lines += [f"[agents.{name}]", f'description = "does {name}"', f'model = "{name}/m"']
        (home / "config.toml").write_text("\n".join([*lines, ""]))
        yield home


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def threads(home: Path) -> list[dict[str, Any]]:
    """Each behind its parent."""
    found = quintet("threads", "list", "--children", "--json", home=home).lines
    return sorted(found, key=lambda t: (t.get("depth", 0), t["id"]))


def finished(lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(line["thread"], line["payload"]["state"]) for line in lines if line["kind"] == "turn.finished"]


def seen(process: Process) -> list[dict[str, Any]]:
    return [json.loads(line) for _, line in process.lines]


def results(home: Path, thread: str) -> list[dict[str, Any]]:
    (shown,) = quintet("threads", "show", thread, "--json", home=home).lines
    return [i["body"] for i in shown["items"] if i["body"]["type"] == "tool_result"]


@pytest.mark.req("models:T1", "models:T2", "models:T12", "mechanisms:M2.children")
def test_two_side_by_side_are_shown_under_their_names_and_stdout_is_the_answer(tmp_path: Path, work: Path) -> None:
    both = {"a": 'text: "from a"\n', "b": write("b.txt", "b") + '---\ntext: "from b"\n'}
    with family(tmp_path, boss=task("a") + task("b") + END, **both) as home:
        done = quintet("run", "--mode", "allow", "go", home=home, cwd=work, **ENV)
        assert (done.code, done.out) == (0, "the end\n"), done
        assert "  [a] from a\n" in done.err
        assert "  [b] > write b.txt" in done.err
        assert "  [b] from b\n" in done.err
        listed = quintet("threads", "list", "--json", home=home).lines
        root, *below = threads(home)
        assert [t["id"] for t in listed] == [root["id"]]
        # Begun in the same moment: either may be the first.
        assert {(t["parent"], t["settings"]["agent"]) for t in below} == {(root["id"], "a"), (root["id"], "b")}
        assert len(below) == 2
        shown = quintet("threads", "show", root["id"], home=home).out
        for child in below:
            assert f"subagent {child['settings']['agent']} {child['id']}" in shown
        again = quintet("run", "--json", "--mode", "allow", "go", home=home, cwd=work, **ENV)
        parent = again.lines[-1]["thread"]
        assert finished(again.lines)[-1] == (parent, "done")
        assert len({thread for thread, _ in finished(again.lines)}) == 3


@pytest.mark.req("models:T4")
def test_three_deep_and_no_deeper(tmp_path: Path, work: Path) -> None:
    scripts = {"a": task("b") + END, "b": task("c") + END, "c": task("c") + END}
    with family(tmp_path, boss=task("a") + END, **scripts) as home:
        done = quintet("run", "--mode", "allow", "go", home=home, cwd=work, **ENV)
        assert done.code == 0, done
        assert "      [c] the end\n" in done.err
        found = threads(home)
        assert [t.get("depth", 0) for t in found] == [0, 1, 2, 3]
        (refused,) = results(home, found[-1]["id"])
        assert refused["status"] == "error"
        assert "Tool `task` not found" in refused["text"]


@pytest.mark.req("models:T3")
def test_the_ninth_is_told_to_wait(tmp_path: Path, work: Path) -> None:
    worker = f'until: {tmp_path / "go"}\ntext: "ok"\n'
    with family(tmp_path, boss=task() * 9 + END, worker=worker) as home:
        words = ("run", "--json", "--mode", "allow", "go")
        with quintet_running(*words, home=home, cwd=work, **ENV) as turn:
            turn.event("tool.finished")
            (tmp_path / "go").touch()
            assert turn.wait() == 0, turn.words()
        root, *below = threads(home)
        assert len(below) == 8
        statuses = sorted(r["status"] for r in results(home, root["id"]))
        assert statuses == ["error"] + ["ok"] * 8


@pytest.mark.req("mechanisms:M2.cancel_children")
def test_a_cancel_from_another_terminal_ends_the_children_first(tmp_path: Path, work: Path) -> None:
    scripts = {"a": task("b") + END, "b": 'tool_call: shell {"command": "sleep 60"}\n'}
    with family(tmp_path, boss=task("a") + END, **scripts) as home:
        words = ("run", "--json", "--mode", "allow", "go")
        with quintet_running(*words, home=home, cwd=work, **ENV) as turn:
            turn.until(lambda line: '"name":"shell"' in line and json.loads(line)["kind"] == "tool.started")
            root, a, b = (t["id"] for t in threads(home))
            done = quintet("threads", "cancel", root, home=home)
            assert done.code == 0, done
            assert turn.wait() != 0
        assert finished(seen(turn)) == [(b, "cancelled"), (a, "cancelled"), (root, "cancelled")]


@pytest.mark.req("models:T5")
def test_a_cancel_of_the_child_alone_lets_the_parent_go_on(tmp_path: Path, work: Path) -> None:
    with family(tmp_path, boss=task() + END, worker='tool_call: shell {"command": "sleep 60"}\n') as home:
        words = ("run", "--json", "--mode", "allow", "go")
        with quintet_running(*words, home=home, cwd=work, **ENV) as turn:
            turn.until(lambda line: '"name":"shell"' in line and json.loads(line)["kind"] == "tool.started")
            root, child = (t["id"] for t in threads(home))
            assert quintet("threads", "cancel", child, "--reason", "not this", home=home).code == 0
            assert turn.wait() == 0, turn.words()
        assert finished(seen(turn)) == [(child, "cancelled"), (root, "done")]
        (result,) = results(home, root)
        assert result["status"] == "cancelled"
        assert "not this" in result["text"]


@pytest.mark.req("models:T6")
def test_a_childs_request_names_it_and_is_answered_from_another_terminal(tmp_path: Path, work: Path) -> None:
    with family(tmp_path, boss=task() + END, worker=write("a.txt", "x") + END) as home:
        words = ("run", "--json", "--on-ask", "wait:20", "go")
        with quintet_running(*words, home=home, cwd=work, **ENV) as turn:
            _, asked = turn.event("interaction.requested")
            root, child = (t["id"] for t in threads(home))
            assert asked["thread"] == child
            shown = quintet("approvals", "list", home=home).out
            assert f"thread {child}  (subagent worker of {root})" in shown
            assert not (work / "a.txt").exists()
            assert quintet("approvals", "allow", asked["payload"]["interaction"]["id"], home=home).code == 0
            assert turn.wait() == 0, turn.words()
        assert (work / "a.txt").read_text() == "x"


@pytest.mark.req("models:T8", "models:T9")
def test_after_kill_9_the_parent_resumes_its_child_and_nothing_is_done_twice(tmp_path: Path, work: Path) -> None:
    once = 'tool_call: shell {"command": "echo once >> log"}\n'
    worker = f'{once}---\nuntil: {tmp_path / "go"}\ntext: "it is done"\n'
    with family(tmp_path, boss=task() + END, worker=worker) as home:
        words = ("run", "--json", "--mode", "allow", "go")
        with quintet_running(*words, home=home, cwd=work, **ENV) as turn:
            turn.until(lambda line: '"name":"shell"' in line and json.loads(line)["kind"] == "tool.finished")
            turn.kill()
        assert (work / "log").read_text() == "once\n"
        root, child = (t["id"] for t in threads(home))
        (cut,) = results(home, root)
        assert cut["status"] == "cancelled"
        assert child in cut["text"]
        order = quintet("events", "--thread", root, "--json", home=home).lines
        assert finished(order) == [(child, "interrupted"), (root, "interrupted")]
        (tmp_path / "go").touch()
    with family(tmp_path, boss="scope: turn\n" + task("", resume=child) + END, worker=worker) as home:
        done = quintet("run", "--thread", root, "--mode", "allow", "go on", home=home, cwd=work, **ENV)
        no_traceback(done)
        assert (done.code, done.out) == (0, "the end\n"), done
        assert "[worker] it is done" in done.err
        assert (work / "log").read_text() == "once\n"
        assert len(threads(home)) == 2


@pytest.mark.req("models:T10", "mechanisms:M2.children")
def test_undo_brings_back_a_childs_changes_and_delete_takes_it_along(tmp_path: Path, work: Path) -> None:
    (work / "old").write_text("v0\n")
    change = 'tool_call: shell {"command": "echo v1 > old; echo n > new"}\n'
    with family(tmp_path, boss=task() + END, worker=change + END) as home:
        assert quintet("run", "--mode", "allow", "go", home=home, cwd=work, **ENV).code == 0
        assert (work / "old").read_text() == "v1\n"
        root, child = (t["id"] for t in threads(home))
        assert "+v1" in quintet("threads", "diff", root, home=home).out
        done = quintet("undo", root, home=home, cwd=work)
        assert done.code == 0, done
        assert (work / "old").read_text() == "v0\n"
        assert not (work / "new").exists()
        assert quintet("threads", "delete", root, home=home).code == 0
        assert threads(home) == []
        assert quintet("threads", "show", child, home=home).code == 1


@pytest.mark.req("mechanisms:M2.children")
def test_deleting_a_running_root_ends_the_whole_tree(tmp_path: Path, work: Path) -> None:
    with family(tmp_path, boss=task() + END, worker='tool_call: shell {"command": "sleep 60"}\n') as home:
        with quintet_running("run", "--json", "--mode", "allow", "go", home=home, cwd=work, **ENV) as turn:
            turn.until(lambda line: '"name":"shell"' in line and json.loads(line)["kind"] == "tool.started")
            root, _ = (t["id"] for t in threads(home))
            assert quintet("threads", "delete", root, home=home).code == 0
            wait_until(lambda: turn.popen.poll() is not None, 15)
        assert threads(home) == []

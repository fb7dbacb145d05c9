from __future__ import annotations

import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintet.workspace.commands import ShellCommandParser

parse = ShellCommandParser().parse


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("git status", ("git", "status")),
        ("  git\tstatus  -s ", ("git", "status", "-s")),
        ("git commit -m 'fix: (a|b) $x'", ("git", "commit", "-m", "fix: (a|b) $x")),
        ('grep "a b; c" src/x.py', ("grep", "a b; c", "src/x.py")),
        ("pytest -q --maxfail=2 tests/a.py::test_b", ("pytest", "-q", "--maxfail=2", "tests/a.py::test_b")),
        ("echo '' \"\"", ("echo", "", "")),
        ("ec'h'o a\"b\"c", ("echo", "abc")),
        ("./run.sh a@b 50%", ("./run.sh", "a@b", "50%")),
    ],
)
def test_one_plain_command_is_understood(command, argv):
    parsed = parse(command)
    assert (parsed.understood, parsed.commands, parsed.destructive) == (True, (argv,), False)


NOT_UNDERSTOOD = r"""
ls; id | ls && id | ls || id | ls & | ls \| id | ls > x | cat < x | echo $HOME | echo `id` | echo $(id) | (id) | { id; }
echo * | echo a? | echo [a] | ls ~ | !! | echo a # b | A=1 id | PATH=. ls | sh -c id | bash x | env ls | /usr/bin/env ls
sudo ls | xargs ls | busybox ls | eval id | exec id | source x | . x | command ls | builtin cd | time ls | nohup ls
timeout 5 ls | nice ls | find . -exec id | find . -delete | if true | for x | while | function f | cd x | export A
trap id EXIT | alias ls | test -v x | printf -v x y | echo "$x" | echo "`id`" | echo "a\b" | echo a\ b | echo 'open
echo "open | echo "!x" | ssh host id | setsid ls | watch ls | SUDO ls | git -c core.pager=id log | git --exec-path=x log
python -c x | python3 -cx | python -Ic x | perl -ne x | awk x | sed x | echo {a,b} | ls ä | =ls | %1 | -x | \ls
""".replace("\\|", "\x00")


@pytest.mark.parametrize(
    "command",
    [c.strip().replace("\x00", "|") for line in NOT_UNDERSTOOD.strip().splitlines() for c in line.split(" | ")],
)
def test_everything_a_shell_could_read_otherwise_is_not_understood(command):
    assert not parse(command).understood


@pytest.mark.parametrize(
    "command", ["", "  ", "a\nb", "a\rb", "a\0b", "echo 'a\nb'", "ls\u00a0-l", "x" * 20_000, "ls || id"]
)
def test_empty_broken_and_oversized_commands_are_not_understood(command):
    assert not parse(command).understood


@given(st.text(st.sampled_from("ab1 \t'\"$`\\;&|<>(){}[]*?~!#=%-./:,@+^\né"), min_size=1, max_size=12))
@settings(max_examples=300, deadline=None)
def test_what_is_understood_is_what_bash_reads(arguments):
    """The parser is asked about `printf '%s\\0' …`-like words; bash must see the very same ones and nothing else."""
    parsed = parse(f"showwords {arguments}")
    if not parsed.understood:
        return
    script = f'showwords() {{ printf \'%s\\n\' "$#" "$@"; }}\nshowwords {arguments}'
    seen = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=10)
    words = parsed.commands[0][1:]
    assert seen.stdout == "".join(f"{line}\n" for line in (str(len(words)), *words))


DESTRUCTIVE = """
rm -rf build | rm -fr x | rm -r -f x | rm --recursive x | rm -Rv x | /bin/rm -rf x | git push --force
git push -f origin x | git push --force-with-lease | git push origin +main | git push origin :main
git push --delete origin x | git reset --hard | git reset --hard HEAD~3 | git clean -fdx | git checkout -- .
git checkout . | git branch -D x | git stash drop | git stash clear | git -C x reset --hard
git filter-branch x | dd if=/dev/zero of=x | mkfs.ext4 /dev/sda | shutdown now | reboot | chmod -R 777 .
chown -R me . | truncate -s 0 x | killall node | pkill -f x | kubectl delete pod x | terraform destroy
docker system prune -a | npm publish | shred x | rsync -a --delete a b | git restore .
"""


@pytest.mark.parametrize("command", [c.strip() for line in DESTRUCTIVE.strip().splitlines() for c in line.split(" | ")])
def test_destructive_commands_are_known_plain_and_wrapped(command):
    assert parse(command).destructive
    for wrapped in (
        f"cd x && {command}",
        f"sudo {command}",
        f"sh -c '{command}'",
        f"x=$({command})",
        f"true; {command} &",
    ):
        assert parse(wrapped).destructive, wrapped


@pytest.mark.parametrize(
    "command",
    [
        "find . -delete",
        "find . -name x | xargs rm -r",
        "echo x > /dev/sda",
        ":(){ :|:& };:",
        "r\\m -rf x",
        "psql -c 'DROP TABLE users;'",
        "python -c 'import shutil; shutil.rmtree(\"x\")'",
        "rm \\\n -rf x",
    ],
)
def test_destructive_lines_nobody_can_parse_are_known_by_their_text(command):
    assert parse(command).destructive


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "ls -R",
        "git push",
        "git reset x",
        "git commit -m 'reset --hard'",
        "git checkout main",
        "git stash",
        "cat a | sort",
        "git branch -d x",
        "git clean -n",
        "echo hi && ls -la",
        "chmod +x a",
        "npm install",
        "git log --oneline | head",
        "grep -r 'form' . | wc -l",
        "docker ps",
        "git restore --staged x",
    ],
)
def test_ordinary_commands_are_not_called_destructive(command):
    assert not parse(command).destructive


def test_a_hostile_line_costs_no_time():
    started = time.monotonic()
    for line in ("rm " * 50_000, "'" * 100_000, "git push " * 20_000, "a" * 200_000, ": ( ) { " * 20_000):
        parse(line)
    assert time.monotonic() - started < 3

"""The shell parser: what it finds in a line, checked by a corpus and against bash itself."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from quintet.domain.ports import UNKNOWN_WORD
from quintet.domain.tool import Effect, Prepared, ToolSpec
from quintet.domain.turn import Mode
from quintet.engine.policy import Policy
from quintet.engine.rules import Judgement, parse_rules
from quintet.workspace.commands import COMMANDS_LIMIT, LENGTH_LIMIT, ShellCommandParser
from tests.unit.workspace.bash_oracle import fits, line, noise, ran
from tests.unit.workspace.command_corpus import RULES, Case, cases

parse = ShellCommandParser().parse
SHELL = ToolSpec("shell", "", {}, Effect.EXECUTE)
CORPUS = cases()
NEEDS_BASH = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def judged(text: str, mode: Mode = Mode.ASK, rules: dict[str, str] = RULES) -> Judgement:
    policy = Policy(parse_rules(rules), ShellCommandParser())
    call = Prepared("run it", {}, command=text)
    return policy.judge(SHELL, call, mode, (), protocol="cli", root="r", project="p", now_ms=0).judgement


@pytest.mark.req("security:S24")
def test_the_corpus_is_large_and_names_each_line_once() -> None:
    assert len(CORPUS) >= 500
    assert len({case.text for case in CORPUS}) == len(CORPUS)


@pytest.mark.req("security:S24")
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: repr(case.text)[:60])
def test_each_line_of_the_corpus_is_read_and_judged_as_written_there(case: Case) -> None:
    parsed = parse(case.text)
    assert parsed.understood is case.understood
    assert parsed.destructive is case.destructive
    if case.commands is not None:
        assert (parsed.commands, parsed.writes) == (case.commands, case.writes)
    assert judged(case.text) == case.verdict


@pytest.mark.req("security:S24")
def test_over_the_corpus_no_mode_is_looser_than_it_says() -> None:
    for case in CORPUS:
        strict, loose = judged(case.text, Mode.READ_ONLY), judged(case.text, Mode.ALLOW)
        assert strict is not Judgement.ALLOW, case.text
        assert (loose is Judgement.DENY) is (case.verdict == "deny"), case.text
        if case.destructive:
            assert strict is Judgement.DENY, case.text
        if not case.understood:
            assert loose is not Judgement.ALLOW, case.text  # a deny rule is in force, and it might be about this
        assert judged(case.text) is judged(case.text), case.text


@pytest.mark.req("security:S24")
@pytest.mark.parametrize("before", [1, 59, 150])
@pytest.mark.parametrize("joint", ["; ", " && ", " | ", "\n", " & "])
def test_the_last_command_of_a_long_chain_counts_like_the_first(before: int, joint: str) -> None:
    for last, verdict in (("ls", Judgement.ALLOW), ("make", Judgement.ASK), ("git push", Judgement.DENY)):
        assert judged(joint.join(["ls"] * before + [last])) is verdict


@pytest.mark.req("security:S24")
@pytest.mark.parametrize(
    "text",
    [
        "ls " + "x" * LENGTH_LIMIT,
        "; ".join(["ls"] * (COMMANDS_LIMIT + 1)),
        "sh -c '" + "; ".join(["ls"] * (COMMANDS_LIMIT + 1)) + "'",
        "ls " + "$(ls)" * (COMMANDS_LIMIT + 1),
        "ls " * 4_000,
    ],
)
@pytest.mark.parametrize("mode", list(Mode))
def test_what_is_over_the_limits_is_refused_in_every_mode_and_never_asked(text: str, mode: Mode) -> None:
    assert parse(text).too_long
    assert judged(text, mode) is Judgement.DENY
    assert judged(text, mode, rules={"shell": "allow"}) is Judgement.DENY


def test_an_over_long_word_and_texts_within_texts_within_texts_are_not_understood() -> None:
    assert not parse("ls " + "x" * 5_000).understood
    assert parse("eval eval eval eval ls").understood
    assert not parse("eval " * 9 + "ls").understood


@pytest.mark.parametrize("text", ["", "  ", "\n", "# only a comment", "x=1"])
def test_a_line_without_a_command_is_not_understood(text: str) -> None:
    assert not parse(text).understood
    assert judged(text) is Judgement.ASK


def test_an_unknown_word_equals_nothing_that_can_be_written() -> None:
    assert "\0" in UNKNOWN_WORD
    assert parse("ls $x").commands == (("ls", UNKNOWN_WORD),)
    assert judged("git $x", rules={"shell: git status": "allow"}) is Judgement.ASK


@NEEDS_BASH
@pytest.mark.req("security:S24")
@pytest.mark.parametrize("seed", range(4))
def test_bash_runs_nothing_that_was_not_found_in_a_line(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    tried = 0
    while tried < 100:
        text = (line if tried % 2 else noise)(source)
        parsed = parse(text)
        if not parsed.understood:
            continue
        tried += 1
        for argv in ran(text, tmp_path) or []:
            assert any(fits(argv, found) for found in parsed.commands), (text, argv, parsed.commands)


@NEEDS_BASH
@pytest.mark.req("security:S24")
def test_words_are_those_that_bash_gives_to_a_program() -> None:
    source = random.Random(20)
    pieces = """a B 1 'qr' "de" \\' '"' "'" $'t\\'u\\x41' é = # ! ^ :
    % \\$ "\\$" '$(' "\\`" \\; ';' \\| $ '' "\\\\" "\\q" '\\' { }"""
    pieces_and_blanks = [*pieces.split(), "' '", '" "', "\\ "]
    words = ["x" + "".join(source.choice(pieces_and_blanks) for _ in range(source.randint(1, 5))) for _ in range(400)]
    seen = subprocess.run(
        ["bash", "-c", "\n".join(f"printf '%s\\0' {word}" for word in words)],
        capture_output=True,
        timeout=30,
        check=True,
    )
    expected = seen.stdout.decode().split("\0")[:-1]
    read = {raw: parse(f"a {raw}") for raw in words}
    for raw, word in zip(words, expected, strict=True):
        if read[raw].understood:
            assert read[raw].commands[0][1:] in ((word,), (UNKNOWN_WORD,)), raw
    assert sum(parsed.understood and UNKNOWN_WORD not in parsed.commands[0] for parsed in read.values()) > 300


RUNS_ANOTHER = """
tar xf a --to-comm='git push' | sort a --compress-prog=git | git rebase --ex 'git push' main
git grep --open-files=git x | sed p x --expression='1e git push' | sed p x -f s | split --filter='git push' x
fd -x git push | socat - EXEC:'git push' | start-stop-daemon --exec git | prlimit --nofile=3 git push
setpriv --no-new-privs git push | proxychains git push | tini -- git push | numactl -N 0 git push | npx git push
uvx git push | xvfb-run git push | dbus-run-session git push | tmux new 'git push' | ip netns exec x git push
hyperfine 'git push' | git clone --config core.fsmonitor=x u | git config core.pager get
"""


@pytest.mark.req("security:S24")
@pytest.mark.parametrize("text", [c.strip() for line in RUNS_ANOTHER.strip().splitlines() for c in line.split(" | ")])
def test_a_program_that_runs_another_is_no_way_around_a_deny_rule(text: str) -> None:
    assert judged(text, Mode.ALLOW, {"shell: git push *": "deny"}) is not Judgement.ALLOW


DESTRUCTIVE = """
rm -rf build | rm -fr x | rm -r -f x | rm --recursive x | rm -Rv x | /bin/rm -rf x | git push --force
git push -f origin x | git push --force-with-lease | git push origin +main | git push origin :main
git push --delete origin x | git reset --hard | git reset --hard HEAD~3 | git clean -fdx | git checkout -- .
git checkout . | git branch -D x | git stash drop | git stash clear | git -C x reset --hard
git filter-branch x | dd if=/dev/zero of=x | mkfs.ext4 /dev/sda | shutdown now | reboot | chmod -R 777 .
chown -R me . | truncate -s 0 x | killall node | pkill -f x | kubectl delete pod x | terraform destroy
docker system prune -a | npm publish | shred x | rsync -a --delete a b | git restore .
redis-cli flushall | redis-cli -n 1 FLUSHDB | aws s3 rm s3://b --recursive | aws s3 rb s3://b --force
aws ec2 terminate-instances --instance-ids i | aws rds delete-db-instance --x y | gcloud compute instances delete x
az group delete -n x | rake db:drop | bundle exec rake db:reset | rails db:reset | prisma migrate reset
npx prisma migrate reset | docker compose down -v | docker-compose down --volumes | pulumi destroy | dropuser x
git checkout src/a.py | git checkout HEAD~1 a | git checkout Makefile README.md | rm * | rm a b | rm -f src/*.py
rm --recur x | git push --forc | git checkout -B main | psql -c "DROP USER x" | mysql -e "truncate users"
mongosh --eval "db.dropDatabase()" | python manage.py flush
"""


@pytest.mark.parametrize("command", [c.strip() for line in DESTRUCTIVE.strip().splitlines() for c in line.split(" | ")])
def test_destructive_commands_are_known_plain_and_wrapped(command: str) -> None:
    assert parse(command).destructive
    for wrapped in (
        f"cd x && {command}",
        f"sudo {command}",
        f"sh -c '{command}'",
        f"x=$({command})",
        f"true; {command} &",
        f"f() {{ {command}; }}",
        f"timeout 5 nice {command}",
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
def test_destructive_lines_in_disguise_are_known(command: str) -> None:
    assert parse(command).destructive


ORDINARY = """
rm x | ls -R | git push | git reset x | git commit -m 'reset --hard' | git checkout main | git stash | cat a
git branch -d x | git clean -n | echo hi && ls -la | chmod +x a | npm install | git log --oneline
grep -r 'form' . | docker ps | git restore --staged x | git checkout feature/x | git checkout -b new origin/main
git checkout v1.2 | rm -f a.txt | docker compose down | docker compose up -d | aws s3 ls | gcloud auth list
rake test | prisma generate | redis-cli get x | psql -c 'select 1' | python manage.py test | rails server -v
"""


@pytest.mark.parametrize("command", [c.strip() for line in ORDINARY.strip().splitlines() for c in line.split(" | ")])
def test_ordinary_commands_are_not_called_destructive(command: str) -> None:
    assert not parse(command).destructive


@pytest.mark.parametrize(
    "text", ["rm " * 3_300, "'" * 9_999, "(" * 9_999, "$(" * 4_999, "a;" * 4_999, "${x:-" * 1_900, ": ( ) { " * 1_200,
             "`" * 9_999, "[[ " * 3_000, "<<a " * 2_400, "{" * 9_999, "if " * 3_000, '"$(' * 3_000]
)  # fmt: skip
def test_a_hostile_line_is_answered_and_not_allowed(text: str) -> None:
    assert judged(text) is not Judgement.ALLOW

"""Policy: one verdict for one call, whatever protocol it came through."""

from __future__ import annotations

from typing import Any

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.grant import Grant, Scope, Subject
from quintet.domain.principal import local
from quintet.domain.tool import Effect, Prepared, ToolSpec
from quintet.domain.turn import Mode, strictest
from quintet.engine.policy import Policy, Verdict
from quintet.engine.rules import Judgement, parse_rules
from quintet.workspace.commands import ShellCommandParser

SHELL = ToolSpec("shell", "", {}, Effect.EXECUTE)
WRITE = ToolSpec("write", "", {}, Effect.WRITE)
READ = ToolSpec("read", "", {}, Effect.NONE)


def judge(
    call: Prepared, spec: ToolSpec = SHELL, mode: Mode = Mode.ASK, *, rules: dict[str, str] | None = None,
    grants: tuple[Grant, ...] = (), protocol: str = "cli", now_ms: int = 0, required: bool | None = None,
    project_rules: dict[str, str] | None = None, roots: tuple[str, ...] = (),
) -> Verdict:  # fmt: skip
    policy = Policy(parse_rules(rules or {}), ShellCommandParser(), sandbox_required=required)
    return policy.judge(
        spec, call, mode, grants, protocol=protocol, root="thr_r", project="prj_p", now_ms=now_ms,
        rules=parse_rules(project_rules or {}, "/w/.quintet/config.toml"), roots=roots,
    )  # fmt: skip


def run(command: str, **more: Any) -> Prepared:
    return Prepared(f"run {command}", {}, command=command, **more)


def grant(**changes: object) -> Grant:
    fields: dict[str, object] = {
        "id": "grt_1", "tool": "shell", "subject": Subject.COMMAND, "pattern": ("git", "status"),
        "scope": Scope.THREAD, "by": local("cli"), "made_ms": 0, "thread": "thr_r",
    }  # fmt: skip
    return Grant(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.req("mechanisms:M3.mode")
@pytest.mark.parametrize(
    ("mode", "spec", "expected"),
    [
        (Mode.READ_ONLY, READ, Judgement.ALLOW),
        (Mode.READ_ONLY, WRITE, Judgement.DENY),
        (Mode.READ_ONLY, SHELL, Judgement.ASK),
        (Mode.ASK, READ, Judgement.ALLOW),
        (Mode.ASK, WRITE, Judgement.ASK),
        (Mode.ASK, SHELL, Judgement.ASK),
        (Mode.ALLOW, WRITE, Judgement.ALLOW),
        (Mode.ALLOW, SHELL, Judgement.ALLOW),
    ],
)
def test_each_mode_judges_each_effect(mode: Mode, spec: ToolSpec, expected: Judgement) -> None:
    call = run("ls") if spec is SHELL else Prepared("x", {}, paths=("/p/a",))
    assert judge(call, spec, mode).judgement is expected


@pytest.mark.req("mechanisms:M3.mode")
def test_the_strictest_mode_counts() -> None:
    assert strictest(Mode.ALLOW, None, Mode.ASK) is Mode.ASK
    assert strictest(Mode.ASK, Mode.READ_ONLY) is Mode.READ_ONLY
    assert strictest() is Mode.ASK


def test_a_rule_allows_a_command_prefix_and_nothing_around_it() -> None:
    rules = {"shell: git status *": "allow"}
    assert judge(run("git status -s"), rules=rules).judgement is Judgement.ALLOW
    for other in (
        "git push",
        "git status; rm x",
        "git status $(rm x)",
        "git status > f",
        "xgit status",
        "A=1 git status",
    ):
        assert judge(run(other), rules=rules).judgement is Judgement.ASK, other


def test_a_rule_without_star_allows_exactly_these_words() -> None:
    rules = {"shell: make test": "allow"}
    assert judge(run("make test"), rules=rules).judgement is Judgement.ALLOW
    assert judge(run("make test X=1"), rules=rules).judgement is Judgement.ASK


def test_a_deny_rule_wins_over_mode_grant_and_allow_rule() -> None:
    rules = {"shell: git push *": "deny", "shell: git *": "allow"}
    for mode in Mode:
        call = judge(run("git push origin"), mode=mode, rules=rules, grants=(grant(pattern=("git",)),))
        assert call.judgement is Judgement.DENY
    assert judge(run("true && git push origin"), mode=Mode.ALLOW, rules=rules).judgement is Judgement.DENY


def test_the_destructive_class_is_always_asked_in_mode_ask_and_never_remembered() -> None:
    verdict = judge(run("rm -rf build"), rules={"shell: rm *": "allow"}, grants=(grant(pattern=("rm",)),))
    assert verdict.judgement is Judgement.ASK
    assert verdict.offers == ()
    assert judge(run("rm -rf build"), mode=Mode.READ_ONLY).judgement is Judgement.DENY
    assert judge(run("rm -rf build"), mode=Mode.ALLOW).judgement is Judgement.ALLOW


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Judgement.ALLOW),
        ({"thread": "thr_other"}, Judgement.ASK),
        ({"scope": Scope.PROJECT, "project": "prj_p"}, Judgement.ALLOW),
        ({"scope": Scope.PROJECT, "project": "prj_q"}, Judgement.ASK),
        ({"scope": Scope.ALWAYS}, Judgement.ALLOW),
        ({"protocol": "wire"}, Judgement.ASK),
        ({"expires_ms": 5}, Judgement.ASK),
        ({"uses_left": 0}, Judgement.ASK),
        ({"revoked_ms": 1}, Judgement.ASK),
        ({"tool": "write"}, Judgement.ASK),
        ({"pattern": ("git", "push")}, Judgement.ASK),
    ],
)
def test_a_grant_serves_only_where_and_while_it_was_given(changes: dict[str, object], expected: Judgement) -> None:
    assert judge(run("git status -s"), grants=(grant(**changes),), now_ms=10).judgement is expected


def test_what_is_not_understood_is_asked_and_offers_nothing_to_remember() -> None:
    verdict = judge(run("git status | sh"), grants=(grant(),))
    assert verdict.judgement is Judgement.ASK
    assert verdict.offers == ()


def test_an_offer_is_never_wider_than_what_is_shown() -> None:
    offers = judge(run("git commit -m x")).offers
    assert {o.pattern for o in offers} == {("git", "commit")}
    offers = judge(Prepared("x", {}, paths=("/p/a.py",)), WRITE).offers
    assert {o.pattern for o in offers} == {("/p/a.py",)}


@pytest.mark.parametrize("line", [{"shell: x": "maybe"}, {":": "allow"}, {"shell:": "allow"}])
def test_a_rule_that_makes_no_sense_is_refused_by_name(line: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="is not a rule"):
        parse_rules(line)


@pytest.mark.parametrize("path", ["/w/a.txt", "/w/*", "/w/a[1].txt", "/w/?", "/w/[ab]"])
def test_what_is_remembered_of_a_path_covers_that_path_and_no_other(path: str) -> None:
    (offer, *_) = judge(Prepared("write it", {}, paths=(path,)), WRITE).offers
    kept = grant(tool="write", subject=offer.subject, pattern=offer.pattern)
    assert judge(Prepared("again", {}, paths=(path,)), WRITE, grants=(kept,)).judgement is Judgement.ALLOW
    for other in ("/w/b.txt", "/w/a1.txt", "/w/a", "/w/sub/c"):
        assert judge(Prepared("other", {}, paths=(other,)), WRITE, grants=(kept,)).judgement is Judgement.ASK


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    "command", ["git push x", "/usr/bin/git push x", "git -C /tmp push", "git --no-pager --git-dir /x push origin"]
)
def test_a_deny_rule_holds_however_the_command_is_spelled(command: str, mode: Mode) -> None:
    assert judge(run(command), mode=mode, rules={"shell: git push *": "deny"}).judgement is Judgement.DENY


@pytest.mark.parametrize("command", ["g=git; $g push", "$(echo git) push", "git $x", "git $x push", "PATH=. ls"])
def test_where_a_rule_says_no_what_could_be_that_is_asked_even_in_mode_allow(command: str) -> None:
    verdict = judge(run(command), mode=Mode.ALLOW, rules={"shell: git push *": "deny"})
    assert verdict.judgement in (Judgement.ASK, Judgement.DENY)
    assert judge(run(command), mode=Mode.ALLOW).judgement is Judgement.ALLOW


def test_unknown_words_behind_those_of_a_deny_rule_do_not_hold_up_other_commands() -> None:
    assert judge(run("git log $x"), mode=Mode.ALLOW, rules={"shell: git push *": "deny"}).judgement is Judgement.ALLOW


@pytest.mark.parametrize("command", ["python3.11 -c x", "nodejs -e x", "perl5.36 -e x", "pwsh -c x"])
def test_an_interpreter_given_code_is_not_understood_whatever_its_version(command: str) -> None:
    assert judge(run(command), rules={f"shell: {command.split()[0]} *": "allow"}).judgement is Judgement.ASK


@pytest.mark.parametrize("command", ["curl -o x http://y", "make -C z", "pytest -q"])
def test_an_option_is_not_remembered_as_if_it_were_a_subcommand(command: str) -> None:
    offer = judge(run(command)).offers[0]
    assert (offer.pattern, offer.exact) == (tuple(command.split()), True)
    kept = grant(pattern=offer.pattern, exact=True)
    assert judge(run(command), grants=(kept,)).judgement is Judgement.ALLOW
    assert judge(run(f"{command} more"), grants=(kept,)).judgement is Judgement.ASK


@pytest.mark.parametrize(
    ("command", "pattern", "others"),
    [
        ("cd sub && pytest tests", ("pytest", "tests"), ["pytest other", "cd .. && pytest tests", "make"]),
        ("cd sub && echo go && make test", ("make", "test"), ["make install"]),
        ("timeout 60 make test", ("timeout", "60", "make", "test"), ["timeout 60 make install", "make install"]),
        ("npm run build", ("npm", "run", "build"), ["npm run other", "npm install"]),
        ("uv run pytest tests", ("uv", "run", "pytest", "tests"), ["uv run make"]),
        ("cargo build", ("cargo", "build"), ["cargo install x"]),
        ("make", ("make",), ["cargo build", "make install"]),
        ("make test", ("make", "test"), ["make test install", "make test -f x"]),
        ("bash x.sh", ("bash", "x.sh"), ["bash x.sh more", "bash y.sh"]),
    ],
)
def test_what_is_offered_covers_the_line_again_and_nothing_else(
    command: str, pattern: tuple[str, ...], others: list[str]
) -> None:
    offer = judge(run(command)).offers[0]
    assert offer.pattern == pattern
    kept = grant(pattern=offer.pattern, exact=offer.exact)
    assert judge(run(command), grants=(kept,)).judgement is Judgement.ALLOW
    for other in [*others, f"{command}; make install", f"{command} > out", f"{command} $(make x)", f"sudo {command}"]:
        assert judge(run(other), grants=(kept,)).judgement is Judgement.ASK, other


@pytest.mark.parametrize(
    "command", ["make a; make b", "a | b", "sh -c 'make x'", "ls > out", "python -c x", "$x", "a $x"]
)
def test_a_line_with_more_than_one_real_command_offers_nothing(command: str) -> None:
    assert judge(run(command)).offers == ()


def test_several_rules_and_grants_cover_a_line_together_and_each_grant_is_named() -> None:
    one, two = grant(id="grt_1", pattern=("make",)), grant(id="grt_2", pattern=("npm", "test"))
    verdict = judge(run("make && npm test && git status"), rules={"shell: git status": "allow"}, grants=(one, two))
    assert (verdict.judgement, verdict.grants) == (Judgement.ALLOW, ("grt_1", "grt_2"))
    assert verdict.rule == "shell: git status; grt_1; grt_2"
    assert judge(run("make && npm test"), grants=(one,)).judgement is Judgement.ASK


@pytest.mark.req("security:S27")
@pytest.mark.parametrize("command", ["rm -rf x", "ls; rm -rf x", "sh -c 'rm -rf x'", "sudo rm -rf x", "A=1 rm -rf x"])
def test_nothing_remembered_covers_the_destructive_class(command: str) -> None:
    every = (grant(subject=Subject.TOOL, pattern=()), grant(pattern=("rm",)), grant(pattern=("ls",)))
    rules = {"shell": "allow", "shell: rm *": "allow", "shell: ls *": "allow", "shell: sh *": "allow"}
    verdict = judge(run(command), rules=rules, grants=every)
    assert (verdict.judgement, verdict.offers, verdict.destructive) == (Judgement.ASK, (), True)
    assert judge(run(command), mode=Mode.READ_ONLY, rules=rules, grants=every).judgement is Judgement.DENY
    assert judge(run(command), mode=Mode.ALLOW).judgement is Judgement.ALLOW


@pytest.mark.parametrize("call", [run("ls", confined=False), run("ls", network=True), run("ls > out"), run("A=1 ls")])
def test_a_grant_for_the_whole_tool_covers_only_calls_that_are_confined_plain_and_without_network(
    call: Prepared,
) -> None:
    whole = grant(subject=Subject.TOOL, pattern=())
    assert judge(run("ls"), grants=(whole,)).judgement is Judgement.ALLOW
    assert judge(call, grants=(whole,)).judgement is Judgement.ASK


UNCONFINED = [
    (Mode.READ_ONLY, None, Judgement.ASK), (Mode.READ_ONLY, False, Judgement.ASK),
    (Mode.READ_ONLY, True, Judgement.DENY),
    (Mode.ASK, None, Judgement.ASK), (Mode.ASK, False, Judgement.ASK), (Mode.ASK, True, Judgement.DENY),
    (Mode.ALLOW, None, Judgement.ASK), (Mode.ALLOW, False, Judgement.ALLOW), (Mode.ALLOW, True, Judgement.DENY),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "required", "expected"), UNCONFINED)
def test_without_a_sandbox_each_command_is_put_to_the_person_unless_they_said_otherwise(
    mode: Mode, required: bool | None, expected: Judgement
) -> None:
    every = (grant(pattern=("ls",)), grant(subject=Subject.TOOL, pattern=()))
    verdict = judge(run("ls", confined=False), mode=mode, rules={"shell": "allow"}, grants=every, required=required)
    assert (verdict.judgement, verdict.offers) == (expected, ())


def test_a_grant_made_without_network_never_covers_a_call_with_it() -> None:
    plain, wide = grant(pattern=("npm", "ci")), grant(pattern=("npm", "ci"), network=True)
    asked = judge(run("npm ci", network=True), grants=(plain,), rules={"shell: npm *": "allow"})
    assert (asked.judgement, {o.network for o in asked.offers}) == (Judgement.ASK, {True})
    assert "with network" in asked.offers[0].words()
    assert judge(run("npm ci", network=True), grants=(wide,)).judgement is Judgement.ALLOW
    assert judge(run("npm ci"), grants=(wide,)).judgement is Judgement.ALLOW


@pytest.mark.req("security:S23")
@pytest.mark.parametrize("mode", list(Mode))
def test_content_of_a_project_is_agreed_to_by_its_hash_in_every_mode(mode: Mode) -> None:
    def skill(digest: str) -> Prepared:
        return Prepared("read the skill x", {}, always_ask="of the project", content=("skill", "x", digest))

    asked = judge(skill("aa"), READ, mode)
    assert asked.judgement is Judgement.ASK
    offer = asked.offers[0]
    assert (offer.subject, offer.pattern) == (Subject.CONTENT, ("skill", "x", "aa"))
    kept = grant(tool="read", subject=Subject.CONTENT, pattern=offer.pattern)
    assert judge(skill("aa"), READ, mode, grants=(kept,)).judgement is Judgement.ALLOW
    assert judge(skill("bb"), READ, mode, grants=(kept,)).judgement is Judgement.ASK
    whole = grant(tool="read", subject=Subject.TOOL, pattern=())
    assert judge(skill("aa"), READ, mode, grants=(whole,)).judgement is Judgement.ASK


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.ALLOW])
def test_what_always_asks_is_asked_unless_a_rule_names_its_target(mode: Mode) -> None:
    fetch = ToolSpec("web_fetch", "", {}, Effect.NETWORK)
    call = Prepared("fetch it", {}, paths=("http://docs.example/a",), always_ask="not encrypted")
    assert judge(call, fetch, mode).judgement is Judgement.ASK
    assert judge(call, fetch, mode, rules={"web_fetch": "allow"}).judgement is Judgement.ASK
    assert judge(call, fetch, mode, rules={"web_fetch: http://docs.example/*": "allow"}).judgement is Judgement.ALLOW
    assert judge(call, fetch, mode, rules={"web_fetch: http://other/*": "allow"}).judgement is Judgement.ASK


@pytest.mark.req("security:S21")
def test_rules_of_a_project_tighten_and_never_allow() -> None:
    assert judge(run("make"), project_rules={"shell: make *": "allow"}).judgement is Judgement.ASK
    assert judge(run("make"), mode=Mode.ALLOW, project_rules={"shell: make *": "deny"}).judgement is Judgement.DENY
    allowed = {"shell: make *": "allow"}
    assert judge(run("make"), rules=allowed, project_rules={"shell: make *": "ask"}).judgement is Judgement.ASK


def test_the_same_call_mode_rules_and_grants_get_the_same_verdict() -> None:
    grants = (grant(), grant(id="grt_2", pattern=("make",)))
    for command in ("git status", "make && git status", "ls $x", "rm -rf x", "git push", "A=1 x", "cd x && make"):
        for mode in Mode:
            rules = {"shell: git push *": "deny", "shell: ls *": "allow"}
            verdicts = [judge(run(command), mode=mode, rules=rules, grants=grants) for _ in range(3)]
            assert verdicts[0] == verdicts[1] == verdicts[2]


def test_a_program_in_another_place_is_not_covered_by_an_allow_rule() -> None:
    assert judge(run("/tmp/evil/git status"), rules={"shell: git status *": "allow"}).judgement is Judgement.ASK


@pytest.mark.parametrize("pattern", ["git pu*", "g* push", "* push", "git * origin"])
def test_a_command_rule_that_could_never_match_is_refused(pattern: str) -> None:
    with pytest.raises(Invalid, match="never match"):
        parse_rules({f"shell: {pattern}": "deny"})
    assert parse_rules({"write: src/*.py": "allow"})


@pytest.mark.parametrize("rules", [{"shell": "allow", "shell: git push *": "deny"}, {"*: git push *": "deny"}])
@pytest.mark.parametrize("command", ["g=git; $g push", "git --attr-source HEAD push"])
def test_a_broad_allow_does_not_open_a_way_around_a_deny_rule(rules: dict[str, str], command: str) -> None:
    assert judge(run(command), mode=Mode.ALLOW, rules=rules).judgement is not Judgement.ALLOW


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    "command", ["ls", "git $x", "$x", "python -c x", "A=1 x; ls | wc", "", "ls (", "sh -c 'ls $x'"]
)
@pytest.mark.parametrize("pattern", ["shell: *", "*: *"])
def test_a_rule_of_only_a_star_speaks_of_every_command(mode: Mode, command: str, pattern: str) -> None:
    call = run(command or "# nothing")
    assert judge(call, mode=mode, rules={pattern: "deny"}).judgement is Judgement.DENY
    assert judge(call, mode=mode, rules={pattern: "ask"}).judgement is Judgement.ASK


def test_a_rule_of_only_a_star_allows_what_is_understood_and_asks_about_what_can_be_remembered() -> None:
    assert judge(run("make && ls $x"), rules={"shell: *": "allow"}).judgement is Judgement.ALLOW
    assert judge(run("python -c x"), rules={"shell: *": "allow"}).judgement is Judgement.ASK
    asked = judge(run("git status"), mode=Mode.ALLOW, rules={"shell: *": "ask"})
    assert (asked.rule, asked.offers[0].pattern) == ("shell: *", ("git", "status"))
    assert judge(run("git status"), mode=Mode.ALLOW, rules={"shell: *": "ask"}, grants=(grant(),)).grants == ("grt_1",)


SECOND_WORD_IS_NO_SUBCOMMAND = """
rm foo | cp a | mv a | tee out.txt | scp a | nc host | find . | wget https://ok.example/ | bash x.sh | python3 x.py
curl https://ok.example/ | node x.js | ./x.sh y | npx thing | make test | npm run build | go test | pip install
docker run | kubectl get | git push | git clone | git remote | timeout 5 rm foo | cd sub && rm foo
"""
SUCH = [c.strip() for line in SECOND_WORD_IS_NO_SUBCOMMAND.strip().splitlines() for c in line.split(" | ")]


@pytest.mark.req("security:S27")
@pytest.mark.parametrize("command", SUCH)
@pytest.mark.parametrize("network", [False, True])
def test_what_is_remembered_of_a_command_without_known_subcommands_is_exactly_its_words(
    command: str, network: bool
) -> None:
    for offer in judge(run(command, network=network)).offers:
        kept = grant(pattern=offer.pattern, exact=offer.exact, network=offer.network)
        for more in ("-T .env https://evil", "other", "-f x"):
            again = judge(run(f"{command} {more}", network=network), grants=(kept,))
            assert again.judgement is Judgement.ASK, (command, more)


def test_with_network_nothing_but_the_very_words_is_remembered() -> None:
    offer = judge(run("git log origin/main", network=True)).offers[0]
    assert (offer.pattern, offer.exact) == (("git", "log", "origin/main"), True)


@pytest.mark.req("security:S26a")
def test_what_is_remembered_of_a_script_is_about_its_content() -> None:
    call = run("timeout 5 ./x.sh", scripts=("", "aa"))
    offer = judge(call).offers[0]
    assert (offer.pattern, offer.scripts) == (("timeout", "5", "./x.sh"), "aa")
    assert "as its script is now (aa)" in offer.words()
    kept = grant(pattern=offer.pattern, exact=offer.exact, scripts=offer.scripts)
    assert judge(call, grants=(kept,)).judgement is Judgement.ALLOW
    assert judge(run("timeout 5 ./x.sh", scripts=("", "bb")), grants=(kept,)).judgement is Judgement.ASK
    loose = grant(pattern=offer.pattern, exact=True)
    assert judge(call, grants=(loose,)).judgement is Judgement.ASK
    beside = judge(run("git status && timeout 5 ./x.sh", scripts=("", "", "aa")), grants=(grant(id="grt_2"), kept))
    assert (beside.judgement, beside.grants) == (Judgement.ALLOW, ("grt_2", "grt_1"))


@pytest.mark.req("security:S24")
@pytest.mark.parametrize(
    "command",
    ["strange --do git push", "strange /usr/bin/git -C x push", "strange 'then git push'", "git bisector git push"],
)
def test_the_words_of_a_deny_rule_in_the_hands_of_another_program_are_asked_about(command: str) -> None:
    for judgement in ("deny", "ask"):
        verdict = judge(run(command), mode=Mode.ALLOW, rules={"shell: git push *": judgement, "shell": "allow"})
        assert (verdict.judgement, verdict.offers) == (Judgement.ASK, ())
    assert judge(run(command), mode=Mode.ALLOW).judgement is Judgement.ALLOW


@pytest.mark.parametrize("command", ["echo git push", "grep -n 'git push' x", "git commit -m 'make it so'", "git pull"])
def test_a_deny_rule_does_not_hold_up_words_that_nobody_runs(command: str) -> None:
    rules = {"shell: git push *": "deny", "shell: make *": "deny"}
    assert judge(run(command), mode=Mode.ALLOW, rules=rules).judgement is Judgement.ALLOW


@pytest.mark.parametrize("pattern", ["secrets/*", "./secrets/*", "src/../secrets/*", "/w [1]/secrets/*", "*/secrets/*"])
@pytest.mark.parametrize("whose", ["rules", "project_rules"])
def test_a_relative_path_in_a_rule_begins_at_the_root_of_the_project(pattern: str, whose: str) -> None:
    if pattern.startswith("/"):
        pattern = "/w [[]1]/secrets/*"
    said: dict[str, Any] = {whose: {f"write: {pattern}": "deny"}, "roots": ("/w [1]",)}
    inside, outside = (Prepared("x", {}, paths=(p,)) for p in ("/w [1]/secrets/key", "/w [1]/src/key"))
    assert judge(inside, WRITE, Mode.ALLOW, **said).judgement is Judgement.DENY
    assert judge(outside, WRITE, Mode.ALLOW, **said).judgement is Judgement.ALLOW


def test_a_relative_path_in_an_allow_rule_opens_nothing_elsewhere() -> None:
    rules = {"write: docs/*": "allow"}
    for path, expected in (
        ("/w/docs/a", Judgement.ALLOW),
        ("/v/docs/a", Judgement.ASK),
        ("/w/x/docs/a", Judgement.ASK),
    ):
        assert judge(Prepared("x", {}, paths=(path,)), WRITE, rules=rules, roots=("/w",)).judgement is expected
    assert judge(Prepared("x", {}, paths=("/w/docs/a",)), WRITE, rules=rules).judgement is Judgement.ASK


def test_a_path_rule_with_a_tilde_is_refused_since_it_could_never_match() -> None:
    with pytest.raises(Invalid, match="never match"):
        parse_rules({"write: ~/x": "deny"})


@pytest.mark.req("security:S18")
@pytest.mark.parametrize("path", ["/w/Secr\u00e9ts/KEY", "/w/secre\u0301ts/key", "/w/SECRE\u0301TS/key"])
def test_a_path_rule_that_says_no_holds_for_every_spelling_and_one_that_allows_for_its_own(path: str) -> None:
    call = Prepared("x", {}, paths=(path,))
    for judgement in (Judgement.DENY, Judgement.ASK):
        rules = {"write: secr\u00e9ts/*": judgement.value}
        assert judge(call, WRITE, Mode.ALLOW, rules=rules, roots=("/w",)).judgement is judgement
    assert judge(call, WRITE, rules={"write: secr\u00e9ts/*": "allow"}, roots=("/w",)).judgement is Judgement.ASK


def test_a_rule_of_the_project_is_told_with_its_file() -> None:
    denied = judge(run("make"), mode=Mode.ALLOW, project_rules={"shell: make *": "deny"})
    assert denied.rule == "shell: make * in /w/.quintet/config.toml"
    assert judge(run("make"), project_rules={"shell: make *": "ask"}).rule == "shell: make * in /w/.quintet/config.toml"
    assert judge(run("make"), rules={"shell: make *": "deny"}).rule == "shell: make *"

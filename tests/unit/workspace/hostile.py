"""A repository that tries every way we know of to make git run something; each leaves a file in `marks`."""

from __future__ import annotations

from pathlib import Path

from tests.unit.workspace.repositories import repository, sh, write

HOOKS = ("post-index-change", "pre-commit", "post-checkout", "post-commit", "reference-transaction")
COPYING = ("clean", "smudge", "textconv")  # what git expects to answer with the bytes it is given


def trap(marks: Path, name: str) -> str:
    """A program that leaves a mark."""
    marks.mkdir(exist_ok=True)
    path = marks.parent / "traps" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch '{marks}/{name}'\n" + ("cat $1\n" if name in COPYING else "exit 1\n"))
    path.chmod(0o755)
    return str(path)


def config(marks: Path, elsewhere: Path) -> list[tuple[str, str]]:
    def to(name: str) -> str:
        return trap(marks, name)

    return [
        ("core.fsmonitor", to("fsmonitor")),
        ("core.hooksPath", str(elsewhere / "hooks")),
        ("core.pager", to("pager")),
        ("pager.ls-files", to("pager-ls-files")),
        ("pager.diff-files", to("pager-diff-files")),
        ("core.editor", to("editor")),
        ("core.askPass", to("askpass")),
        ("core.sshCommand", to("ssh")),
        ("core.gitProxy", to("proxy")),
        ("core.alternateRefsCommand", to("alternate-refs")),
        ("core.worktree", str(elsewhere / "tree")),
        ("core.attributesFile", str(elsewhere / "attributes")),
        ("core.untrackedCache", "true"),
        ("diff.external", to("external-diff")),
        ("diff.evil.command", to("diff-command")),
        ("diff.evil.textconv", to("textconv")),
        ("filter.evil.clean", to("clean")),
        ("filter.evil.smudge", to("smudge")),
        ("filter.evil.required", "true"),
        ("filter.long.process", to("process")),
        ("merge.evil.driver", to("merge")),
        ("credential.helper", f"!{to('credential')}"),
        ("gpg.program", to("gpg")),
        ("gpg.ssh.program", to("gpg-ssh")),
        ("include.path", str(elsewhere / "included")),
        ("includeIf.gitdir:/.path", str(elsewhere / "included")),
        ("alias.ls-files", f"!{to('alias')}"),
        ("alias.diff-files", f"!{to('alias')}"),
        ("alias.x", f"!{to('alias')}"),
        ("remote.origin.url", f"ext::{to('ext')}"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", to("uploadpack")),
        ("remote.ssh.url", "ssh://localhost/x"),
        ("protocol.allow", "always"),
        ("extensions.partialClone", "origin"),
        ("core.repositoryFormatVersion", "1"),
    ]


def hostile_repository(place: Path, marks: Path) -> Path:
    elsewhere = place.parent / "elsewhere"
    tree = repository(
        place,
        {
            "a.txt": "a\n",
            "gone.txt": "gone\n",
            "f.flt": "filtered\n",
            "p.prc": "processed\n",
            "d.dif": "textconv\n",
            ".gitattributes": "*.flt filter=evil\n*.prc filter=long\n*.dif diff=evil\n*.txt diff=evil\n",
        },
    )
    repository(tree / "sub", {"s.txt": "s\n"})
    repository(tree / "untracked-sub", {"s.txt": "s\n"})
    for inner in ("sub", "untracked-sub"):
        sh(f"git config core.fsmonitor {trap(marks, 'sub-fsmonitor')}", tree / inner)
    sh("git add sub; git commit -qm sub", tree)
    sh("touch .gitmodules; git config -f .gitmodules submodule.sub.path sub", tree)
    for hooks in (elsewhere / "hooks", tree / ".git/hooks"):
        hooks.mkdir(parents=True, exist_ok=True)
        for name in HOOKS:
            (hooks / name).symlink_to(trap(marks, f"hook-{name}"))
    write(elsewhere, {"tree/decoy": "d", "attributes": "* filter=evil diff=evil\n"})
    (elsewhere / "included").write_text(f"[core]\n\tfsmonitor = {trap(marks, 'included')}\n")
    (tree / ".git/info/attributes").write_text("*.flt filter=evil\n")
    # An object that only a fetch could bring.
    name = sh("git rev-parse :gone.txt", tree).strip()
    (tree / ".git/objects" / name[:2] / name[2:]).unlink()
    lines = [(*setting.rpartition(".")[::2], value) for setting, value in config(marks, elsewhere)]
    with (tree / ".git/config").open("a") as file:
        for section, key, value in lines:
            head, _, inner = section.partition(".")
            file.write(f'[{head} "{inner}"]\n' if inner else f"[{head}]\n")
            file.write(f'\t{key} = "{value}"\n')
    return tree


def hostile_environment(marks: Path, elsewhere: Path) -> dict[str, str]:
    """What could stand in the environment that Quintet itself was started with."""
    return {
        "GIT_DIR": str(elsewhere / "nothing"),
        "GIT_WORK_TREE": str(elsewhere / "tree"),
        "GIT_INDEX_FILE": str(elsewhere / "index"),
        "GIT_EXTERNAL_DIFF": trap(marks, "env-external-diff"),
        "GIT_SSH_COMMAND": trap(marks, "env-ssh"),
        "GIT_PAGER": trap(marks, "env-pager"),
        "PAGER": trap(marks, "env-pager"),
        "GIT_EDITOR": trap(marks, "env-editor"),
        "GIT_ASKPASS": trap(marks, "env-askpass"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": trap(marks, "env-fsmonitor"),
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={trap(marks, 'env-fsmonitor')}'",
        "GIT_EXEC_PATH": str(elsewhere),
        "GIT_TRACE": str(marks / "trace"),
        "HOME": str(elsewhere),
        "XDG_CONFIG_HOME": str(elsewhere),
    }

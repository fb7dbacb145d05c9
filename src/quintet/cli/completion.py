"""completion: the script a shell reads to complete quintet's commands, actions and flags. Made from the parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from quintet.cli.invoke import Invocation
from quintet.cli.words import Words, all_words

HOW = {
    "bash": 'eval "$(quintet completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(quintet completion zsh)"   # in ~/.zshrc, after compinit',
    "fish": "quintet completion fish | source   # in ~/.config/fish/config.fish",
}


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(HOW), help="the shell to make it for")


async def run(invocation: Invocation) -> int:
    script = _SCRIPTS[invocation.flags.shell](all_words())
    invocation.screen.raw(f"# Use it with: {HOW[invocation.flags.shell]}\n{script}".encode())
    return 0


def _next_words(words: list[Words]) -> dict[str, str]:
    """What may follow a path of words, as one line: actions where there are some, and flags."""
    following: dict[str, list[str]] = {"": [w.path[0] for w in words if len(w.path) == 1]}
    for word in words:
        actions = [w.path[1] for w in words if len(w.path) == 2 and w.path[0] == word.path[0] and len(word.path) == 1]
        following[" ".join(word.path)] = [*actions, *word.flags]
    return {path: " ".join(options) for path, options in following.items()}


def _choices(words: list[Words]) -> dict[str, str]:
    return {f"{' '.join(w.path)} {flag}": " ".join(given) for w in words for flag, given in w.choices.items()}


def bash(words: list[Words]) -> str:
    """The first word is the command, the second its action where it has some; flags may stand anywhere."""
    actions = "|".join(repr(" ".join(w.path)) for w in words if len(w.path) == 2)
    following = _cases(_next_words(words), "    ")
    return f"""_quintet() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= action= path options= each
  for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $each in
      -*) ;;
      *) if [ -z "$command" ]; then command=$each; elif [ -z "$action" ]; then action=$each; fi ;;
    esac
  done
  case "$command $action" in
    {actions}) path="$command $action" ;;
    *) path=$command ;;
  esac
  case "$path" in
{following}  esac
  case "$path $before" in
{_cases(_choices(words), "    ")}  esac
  COMPREPLY=($(compgen -W "$options" -- "$word"))
  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _quintet quintet
"""


def _cases(options: dict[str, str], indent: str) -> str:
    return "".join(f"{indent}{path!r}) options={given!r} ;;\n" for path, given in options.items())


def zsh(words: list[Words]) -> str:
    """Through zsh's own reading of bash completions: one script to keep right."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{bash(words)}"


def fish(words: list[Words]) -> str:
    lines = ["complete -c quintet -f"]
    for word in words:
        summary = _quoted(word.summary)
        if len(word.path) == 1:
            lines.append(f"complete -c quintet -n __fish_use_subcommand -a {word.path[0]} -d {summary}")
            seen = f"__fish_seen_subcommand_from {word.path[0]}"
        else:
            lines.append(
                f"complete -c quintet -n '__fish_seen_subcommand_from {word.path[0]}' -a {word.path[1]} -d {summary}"
            )
            seen = f"__fish_seen_subcommand_from {word.path[0]}; and __fish_seen_subcommand_from {word.path[1]}"
        for flag in word.flags:
            given = f" -x -a {_quoted(' '.join(word.choices[flag]))}" if flag in word.choices else ""
            name = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            lines.append(f"complete -c quintet -n '{seen}' {name}{given}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + re.sub(r"(['\\])", r"\\\1", text) + "'"


_SCRIPTS: dict[str, Callable[[list[Words]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}

"""The executable `quintet-kimi`: stands where a client expects `kimi`. Knows `--wire`, `info` and `--version`; of what
else clients start it for it says why that is not here.
"""

from __future__ import annotations

import sys

COMPATIBLE = "1.49.0"  # the release of Kimi's own line whose clients are served; they compare it
# What a client learns before it speaks. The Go SDK declares it, and ends at any later event.
DECLARED = "1.2"
USAGE = "quintet-kimi: clients start it with --wire. A person talks with `quintet chat`, or asks with `quintet run`."
HELP = """\
Quintet where a program expects `kimi`. Programs start it themselves; a person uses `quintet`.

  quintet-kimi --wire [FLAG...]   serves Kimi Wire; `quintet-kimi --wire --help` lists the flags
  quintet-kimi info [--json]      the versions clients ask for first
  quintet-kimi --version          the release of Kimi whose clients are served"""
# A client shows these to its user.
_NOT_HERE = {
    "login": "There is no login with Quintet: it takes the api_key in Kimi's config.toml, or `quintet models`.",
    "logout": "There is no login with Quintet, so nobody is logged out. A key is removed where it was written.",
    "mcp": "Quintet starts no MCP server for Kimi's clients yet, so there is none to test or to log in to.",
    "export": "Quintet exports with `quintet threads export`.",
    "plugin": "Kimi's plugins are not here. Skills are: `--skills-dir DIR`.",
    "term": "There is no such terminal here. A person talks with `quintet chat`.",
    "vis": "There is no such page here. `quintet events --follow` and `quintet stats` show what happens.",
    "web": "There is no such page here. `quintet serve` serves programs, `quintet chat` a person.",
}


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    flags = [word.partition("=")[0] for word in words]
    if words[:1] != ["info"] and {"--version", "-V"} & set(words):
        print(f"kimi, version {COMPATIBLE}")
        return 0
    if words in (["--help"], ["-h"]):
        print(HELP)
        return 0
    if words[:1] == ["info"]:
        return _info(words[1:])
    if "--wire" in words:
        from quintet.cli import main as quintet

        return quintet(["wire", *words])
    from quintet.cli.last_resort import tell

    tell(_said_of(flags))
    return 2


def _said_of(words: list[str]) -> str:
    from quintet.cli.wire_flags import ACP, OTHER_FACES, RUN

    instead = OTHER_FACES | dict.fromkeys(("--prompt", "--command", "-p", "-c"), RUN)
    said = _NOT_HERE | {"acp": ACP}
    named = next((word for word in words if not word.startswith("-")), "")  # flags may stand before it
    if named in said:
        return f"quintet-kimi: {said[named]}"
    return next((f"quintet-kimi: {word}: {instead[word]}" for word in words if word in instead), USAGE)


def _info(words: list[str]) -> int:
    import json
    import platform

    from quintet import __version__

    facts = {
        "kimi_cli_version": COMPATIBLE,
        "agent_spec_versions": ["1"],
        "wire_protocol_version": DECLARED,
        "python_version": platform.python_version(),
        "quintet_version": __version__,
    }
    if "--json" in words:
        print(json.dumps(facts))
    else:
        for name, value in facts.items():
            print(f"{name}: {value if isinstance(value, str) else ', '.join(value)}")
    return 0

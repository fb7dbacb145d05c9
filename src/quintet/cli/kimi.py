"""The executable `quintet-kimi`: stands where a client expects `kimi`. Knows `--wire`, `info` and `--version`."""

from __future__ import annotations

import sys

COMPATIBLE = "1.49.0"  # the release of Kimi's own line whose clients are served; they compare it
# What a client learns before it speaks. The Go SDK declares it, and ends at any later event.
DECLARED = "1.2"
USAGE = "quintet-kimi: only --wire, info and --version are known. Clients start it with --wire."


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words == ["--version"] or words == ["-V"]:
        print(f"kimi, version {COMPATIBLE}")
        return 0
    if words[:1] == ["info"]:
        return _info(words[1:])
    if "--wire" in words:
        from quintet.cli import main as quintet

        return quintet(["wire", *words])
    from quintet.cli.last_resort import tell

    tell(USAGE)
    return 2


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

"""Explaining: what policy would say to a call, in every mode, and why. Judges exactly as a turn would; runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.grant import Grant
from quintet.domain.ports import CommandParser, ParsedCommand, Tool
from quintet.domain.tool import CallScope, Confine, Prepared
from quintet.domain.turn import Mode
from quintet.engine.policy import Policy, Verdict
from quintet.engine.project_policy import ProjectPolicy


class Explained(msgspec.Struct, frozen=True):
    call: Prepared
    parsed: ParsedCommand | None  # of a command line
    verdicts: dict[Mode, Verdict]


class Explaining:
    def __init__(self, policy: Policy, parser: CommandParser, tools: Sequence[Tool]) -> None:
        self._policy = policy
        self._parser = parser
        self._tools = {tool.spec.name: tool for tool in tools}

    async def explain(
        self,
        tool: str,
        words: str,
        *,
        cwd: str,
        protocol: str,
        project: str,
        project_policy: ProjectPolicy,
        grants: Sequence[Grant],
        now_ms: int,
    ) -> Explained:
        """The call of a tool with its one telling argument, or with all of them as a JSON object."""
        found = self._tools.get(tool)
        if found is None:
            raise Invalid(f"There is no tool {tool!r}.", next_step=f"Name one of: {', '.join(sorted(self._tools))}.")
        arguments = _arguments(found.spec.parameters, words)
        verdicts: dict[Mode, Verdict] = {}
        call = Prepared("", {})
        for mode in Mode:
            call = await found.prepare(arguments, CallScope(cwd, mode=mode, confine=Confine.AUTO))
            verdicts[mode] = self._policy.judge(
                found.spec,
                call,
                mode,
                grants,
                protocol=protocol,
                root="",
                project=project,
                now_ms=now_ms,
                rules=project_policy.rules,
                roots=project_policy.roots,
            )
        return Explained(call, self._parser.parse(call.command) if call.command else None, verdicts)


def _arguments(schema: dict[str, Any], words: str) -> dict[str, Any]:
    if words.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(words, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise Invalid(
                f"The call is not a JSON object: {error}.", next_step="Give one, or the words alone."
            ) from None
    names = list(schema.get("required", ())) or list(schema.get("properties", {}))
    if not names:
        return {}
    return {names[0]: words, **{name: _filler(schema, name) for name in names[1:]}}


def _filler(schema: dict[str, Any], name: str) -> Any:
    """Something of the right type for what was not given: what would be written does not change the verdict."""
    kind = schema.get("properties", {}).get(name, {}).get("type", "string")
    return {"string": "", "array": [], "object": {}, "boolean": False}.get(kind, 0)

"""Policy: may this call run? One engine for all protocols, over mode, rules and remembered grants.

Pure. What is not understood is asked, never allowed; a deny rule wins over everything; what is too long to be read is
refused. The same call, mode, rules and grants always get the same verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from quintet.domain.grant import Grant, GrantOffer, Subject
from quintet.domain.ports import CommandParser, ParsedCommand
from quintet.domain.tool import Effect, Prepared, ToolSpec
from quintet.domain.turn import Mode
from quintet.engine.coverage import cover, denying, offers, serves
from quintet.engine.rules import Judgement, Rule, anchored, strictest_rule, uncertain_rule

TOO_LONG = "a command of more than 10,000 characters or 200 simple commands is never run: split it, or write a script"
UNCONFINED = "not sandboxed"
REQUIRED = "[sandbox] required = true, and this would run without a sandbox"


class Verdict(msgspec.Struct, frozen=True):
    judgement: Judgement
    rule: str  # what decided: rules' texts and grants' ids, or the mode
    grants: tuple[str, ...] = ()  # each is used once when the call runs
    destructive: bool = False
    offers: tuple[GrantOffer, ...] = ()
    broad: bool = False  # a yes may be remembered for every call of this effect


class Policy:
    def __init__(self, rules: Sequence[Rule], parser: CommandParser, *, sandbox_required: bool | None = None) -> None:
        self.rules = tuple(rules)
        self._parser = parser
        self._sandbox_required = sandbox_required  # None: the person has not said

    def judge(
        self,
        spec: ToolSpec,
        call: Prepared,
        mode: Mode,
        grants: Iterable[Grant],
        *,
        protocol: str,
        root: str,
        project: str,
        now_ms: int,
        rules: Sequence[Rule] = (),
        roots: tuple[str, ...] = (),
    ) -> Verdict:
        """`rules` come on top of the configured ones, from the project: they can only ask or deny. Relative paths in
        rules begin at `roots`."""
        parsed = self._parser.parse(call.command) if call.command else ParsedCommand(understood=True)
        serving = [g for g in grants if g.live(now_ms) and serves(g, protocol, root, project)]
        added = (*(r for r in rules if r.judgement is not Judgement.ALLOW), *denying(serving))
        strict = anchored((*self.rules, *added), roots)
        refused = self._refused(spec, call, parsed, mode, strict)
        if refused:
            return Verdict(Judgement.DENY, refused, destructive=parsed.destructive)
        live = [g for g in serving if not g.denies]
        if mode is Mode.ASK or call.always_ask or strictest_rule(strict, spec, call, parsed) is not None:
            return self._with_memory(spec, call, parsed, mode, strict, live)
        return self._by_mode(spec, call, parsed, mode, strict)

    def _refused(self, spec: ToolSpec, call: Prepared, parsed: ParsedCommand, mode: Mode, rules: Sequence[Rule]) -> str:
        if parsed.too_long:
            return TOO_LONG
        rule = strictest_rule(rules, spec, call, parsed)
        if rule is not None and rule.judgement is Judgement.DENY:
            return rule.named
        if _free(spec):
            return ""
        if mode is Mode.READ_ONLY and (spec.effect is not Effect.EXECUTE or parsed.destructive):
            return "mode read-only"
        return REQUIRED if not call.confined and self._sandbox_required else ""

    def _by_mode(
        self, spec: ToolSpec, call: Prepared, parsed: ParsedCommand, mode: Mode, rules: Sequence[Rule]
    ) -> Verdict:
        """Modes allow and read-only, where nothing asks about the call by itself."""
        if _free(spec):
            return Verdict(Judgement.ALLOW, "no effect")
        if why := self._must_be_seen(spec, call, parsed, mode, rules):
            return Verdict(Judgement.ASK, why, destructive=parsed.destructive)
        judgement = Judgement.ALLOW if mode is Mode.ALLOW else Judgement.ASK
        return Verdict(judgement, f"mode {mode}", destructive=parsed.destructive)

    def _with_memory(
        self,
        spec: ToolSpec,
        call: Prepared,
        parsed: ParsedCommand,
        mode: Mode,
        rules: Sequence[Rule],
        grants: Sequence[Grant],
    ) -> Verdict:
        """Somebody has to agree: now, or earlier by a rule or grant that covers all of it."""
        asking = strictest_rule(rules, spec, call, parsed)
        if _free(spec) and asking is None and not call.always_ask:
            return Verdict(Judgement.ALLOW, "no effect")
        if why := self._must_be_seen(spec, call, parsed, mode, rules):
            return Verdict(Judgement.ASK, why, destructive=parsed.destructive)
        because = asking.named if asking else call.always_ask or f"mode {mode}"
        if mode is Mode.READ_ONLY and not _free(spec):
            return Verdict(Judgement.ASK, because, destructive=parsed.destructive)
        offered = offers(spec, call, parsed)
        if asking or call.always_ask:
            # Only what is remembered of exactly such calls; not a yes to the tool as a whole.
            grants = [g for g in grants if g.subject not in (Subject.TOOL, Subject.EFFECT)]
            offered = tuple(o for o in offered if o.subject is not Subject.TOOL)
        covered = cover(spec, call, parsed, () if asking else rules, grants)
        if covered is not None:
            return Verdict(Judgement.ALLOW, covered.words(), covered.grants)
        broad = not (asking or call.always_ask or call.network or _free(spec)) and parsed.understood
        return Verdict(Judgement.ASK, because, destructive=parsed.destructive, offers=offered, broad=broad)

    def _must_be_seen(
        self, spec: ToolSpec, call: Prepared, parsed: ParsedCommand, mode: Mode, rules: Sequence[Rule]
    ) -> str:
        """Why somebody has to look at exactly this call, whatever is remembered; and nothing is remembered of it."""
        if not call.confined and (mode is not Mode.ALLOW or self._sandbox_required is None):
            return UNCONFINED
        if (unsure := uncertain_rule(rules, spec, call, parsed)) is not None:
            return unsure.named
        if parsed.destructive and mode is not Mode.ALLOW:
            return f"mode {mode}: hard to undo"
        return ""


def _free(spec: ToolSpec) -> bool:
    return spec.effect is Effect.NONE or spec.external

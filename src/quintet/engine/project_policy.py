"""ProjectPolicy: what a project's own files may say about its turns. It tightens and never loosens; pure."""

from __future__ import annotations

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.hook import Hook
from quintet.domain.project import ProjectConfig
from quintet.domain.turn import Mode, strictest
from quintet.engine.rules import Judgement, Rule, parse_rules


class ProjectPolicy(msgspec.Struct, frozen=True):
    mode: Mode | None = None  # an upper bound, like the person's own
    rules: tuple[Rule, ...] = ()  # ask and deny only
    roots: tuple[str, ...] = ()  # its directories, where the relative paths of rules begin
    hooks: tuple[Hook, ...] = ()  # each needs somebody's yes before it runs
    instructions: str = ""  # for the model, as the project's words
    warnings: tuple[str, ...] = ()


def project_policy(config: ProjectConfig) -> ProjectPolicy:
    """The readable part of it. A line meant to tighten that cannot be read must not leave more allowed than before."""
    rules: list[Rule] = []
    warnings = list(config.warnings)
    mode = config.mode
    for text, word in config.rules.items():
        try:
            rules += [r for r in parse_rules({text: word}, config.path) if r.judgement is not Judgement.ALLOW]
        except Invalid as error:
            warnings.append(f"{config.path}: {error.message} Until it is corrected, turns here ask before they act.")
            mode = strictest(mode, Mode.ASK)
    return ProjectPolicy(mode, tuple(rules), (), config.hooks, config.instructions, tuple(warnings))


def together(policies: list[ProjectPolicy], roots: tuple[str, ...] = ()) -> ProjectPolicy:
    """The strictest of several files, for the project with these directories."""
    modes = [p.mode for p in policies if p.mode is not None]
    return ProjectPolicy(
        strictest(*modes) if modes else None,
        tuple(rule for p in policies for rule in p.rules),
        roots,
        tuple(dict.fromkeys(hook for p in policies for hook in p.hooks)),
        "\n\n".join(p.instructions for p in policies if p.instructions),
        tuple(dict.fromkeys(w for p in policies for w in p.warnings)),
    )

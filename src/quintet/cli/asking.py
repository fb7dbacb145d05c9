"""Asking at a terminal: which request is asked, what to say, and what a typed line means. Reads and writes nothing.

Whoever answers first, here or elsewhere, wins; only a request's own resolution moves on to the next.
"""

from __future__ import annotations

from collections import deque

from quintet.domain.grant import Scope
from quintet.domain.interaction import Approval, Interaction, Question, QuestionItem, Verdict
from quintet.engine.interactions import Answer

REMEMBER_BY = "t, p or a"
_SCOPES = {"t": Scope.THREAD, "p": Scope.PROJECT, "a": Scope.ALWAYS}
_SCOPE_WORDS = {Scope.THREAD: "this [t]hread", Scope.PROJECT: "this [p]roject", Scope.ALWAYS: "[a]lways"}


class Asking:
    """The requests that wait here, one of them asked."""

    def __init__(self, *, free_answers: bool = False) -> None:
        self.asked: Interaction | None = None
        self._free = free_answers  # words of one's own instead of an option
        self._waiting: deque[Interaction] = deque()
        self._answers: list[tuple[str, ...]] = []  # of a question, so far

    def add(self, interaction: Interaction) -> bool:
        """Whether it is the one to ask now."""
        self._waiting.append(interaction)
        return self.asked is None and self.next()

    def knows(self, interaction: str) -> bool:
        return any(i.id == interaction for i in (self.asked, *self._waiting) if i is not None)

    def resolved(self, interaction: str) -> bool:
        """Answered, here or elsewhere. Whether it was the one that is asked."""
        self._waiting = deque(i for i in self._waiting if i.id != interaction)
        if self.asked is None or self.asked.id != interaction:
            return False
        self.asked = None
        return True

    def next(self) -> bool:
        """Whether there is one to ask now that was not asked before."""
        if self.asked is not None or not self._waiting:
            return False
        self.asked = self._waiting.popleft()
        self.again()
        return True

    def again(self) -> None:
        """From its first question."""
        self._answers = []

    def clear(self) -> None:
        self._waiting.clear()
        self.asked = None

    def words(self) -> str:
        """What is wanted now."""
        assert self.asked is not None
        request = self.asked.request
        if isinstance(request, Question):
            return _choices(request.items[len(self._answers)], free=self._free)
        return f"  allow? [y]es, [n]o{_remembering(self.asked)}:"

    def take(self, words: str) -> Answer | str:
        """The answer a typed line gives, else what to say: why it is none, or nothing when a question is left."""
        assert self.asked is not None
        request = self.asked.request
        return self._chosen(request, words) if isinstance(request, Question) else self._verdict(words)

    def _chosen(self, request: Question, words: str) -> Answer | str:
        item = request.items[len(self._answers)]
        chosen = understood(item, words)
        if chosen is None and self._free and words and not words.isdigit():
            chosen = (words,)
        if chosen is None:
            return f"{words!r} is not one of the answers." if words else "An answer is needed."
        self._answers.append(chosen)
        return "" if len(self._answers) < len(request.items) else Answer(Verdict.ANSWER, answers=tuple(self._answers))

    def _verdict(self, words: str) -> Answer | str:
        assert self.asked is not None
        word, _, reason = words.partition(" ")
        if words.lower() in ("y", "yes"):
            return Answer(Verdict.ALLOW)
        if word.lower() in ("n", "no"):
            return Answer(Verdict.DENY, reason=reason.strip())
        if (scope := _scope(words)) in _offered(self.asked):
            return Answer(Verdict.ALLOW, remember=scope)
        letters = [letter for letter, scope in _SCOPES.items() if scope in _offered(self.asked)]
        return f"please answer {', '.join(['y', *letters])} or n (`n REASON` tells the model why)"


def _offered(asked: Interaction) -> tuple[Scope, ...]:
    return tuple(o.scope for o in asked.request.offers) if isinstance(asked.request, Approval) else ()


def _remembering(asked: Interaction) -> str:
    scopes = [words for scope, words in _SCOPE_WORDS.items() if scope in _offered(asked)]
    return f", or yes and for {', '.join(scopes)}" if scopes else ""


def _scope(words: str) -> Scope:
    """How far it is to be remembered, by letter or word."""
    near = [scope for letter, scope in _SCOPES.items() if words.lower() in (letter, scope.value)]
    return near[0] if near else Scope.CALL


def _choices(item: QuestionItem, *, free: bool) -> str:
    lines = [f"  {item.text}"]
    for number, option in enumerate(item.options, 1):
        lines.append(f"    {number}) {option.label}{f': {option.description}' if option.description else ''}")
    kind = "your answer" if not item.options else f"number or label{', or words of your own' if free else ''}"
    return "\n".join([*lines, f"  {kind}{', several with commas' if item.multiple else ''}:"])


def understood(item: QuestionItem, words: str) -> tuple[str, ...] | None:
    """The labels meant by numbers or labels; None when something is no option. Without options any words will do."""
    if not item.options:
        return (words,) if words else None
    whole = _option(item, words)
    if whole is not None:
        return (whole,)
    if not item.multiple:
        return None
    chosen = [_option(item, word.strip()) for word in words.split(",")]
    return tuple(dict.fromkeys(c for c in chosen if c is not None)) if None not in chosen else None


def _option(item: QuestionItem, words: str) -> str | None:
    labels = [option.label for option in item.options]
    for label in labels:
        if label == words:
            return label
    near = [label for label in labels if label.casefold() == words.casefold()]
    if len(near) == 1:
        return near[0]
    if words.isascii() and words.isdigit() and len(words) < 4 and 1 <= int(words) <= len(labels):
        return labels[int(words) - 1]
    return None

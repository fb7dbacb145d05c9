"""What a typed line means to the request that is asked."""

from __future__ import annotations

import pytest

from quintet.cli.asking import Asking
from quintet.domain.grant import GrantOffer, Scope, Subject
from quintet.domain.interaction import Approval, Interaction, Option, Question, QuestionItem, Verdict
from quintet.engine.interactions import Answer

OFFERS = tuple(
    GrantOffer("shell", Subject.COMMAND, ("ls",), scope) for scope in (Scope.THREAD, Scope.PROJECT, Scope.ALWAYS)
)


def asked(request: Approval | Question, name: str = "int_1") -> Interaction:
    return Interaction(name, "thr_1", "thr_1", "trn_1", "call", request, 0)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("y", Answer(Verdict.ALLOW)),
        ("YES", Answer(Verdict.ALLOW)),
        ("n", Answer(Verdict.DENY)),
        ("no", Answer(Verdict.DENY)),
        ("n use the other file", Answer(Verdict.DENY, reason="use the other file")),
        ("t", Answer(Verdict.ALLOW, remember=Scope.THREAD)),
        ("project", Answer(Verdict.ALLOW, remember=Scope.PROJECT)),
        ("a", Answer(Verdict.ALLOW, remember=Scope.ALWAYS)),
    ],
)
def test_an_approval_is_answered_by_letter_word_or_reason(words: str, answer: Answer) -> None:
    asking = Asking()
    assert asking.add(asked(Approval("shell", "ls", offers=OFFERS)))
    assert asking.take(words) == answer


@pytest.mark.parametrize("words", ["", "maybe", "yes please", "ny", "call", "/y"])
def test_anything_else_is_no_answer(words: str) -> None:
    asking = Asking()
    asking.add(asked(Approval("shell", "ls", offers=OFFERS)))
    assert "please answer y, t, p, a or n" in str(asking.take(words))


def test_what_is_not_offered_cannot_be_remembered() -> None:
    asking = Asking()
    asking.add(asked(Approval("shell", "ls")))
    assert "[a]lways" not in asking.words()
    assert "please answer y or n" in str(asking.take("a"))


def test_a_question_takes_words_of_ones_own_only_where_that_is_said() -> None:
    item = QuestionItem("Which?", (Option("left"), Option("right")))
    for free in (False, True):
        asking = Asking(free_answers=free)
        asking.add(asked(Question((item, item))))
        assert ("words of your own" in asking.words()) == free
        assert asking.take("2") == ""  # the next question follows
        assert asking.take("9") == "'9' is not one of the answers."
        given = asking.take("up")
        assert (given == Answer(Verdict.ANSWER, answers=(("right",), ("up",)))) == free


def test_requests_are_asked_one_after_the_other_and_only_their_resolution_moves_on() -> None:
    asking = Asking()
    assert asking.add(asked(Approval("shell", "one"), "int_1"))
    assert not asking.add(asked(Approval("shell", "two"), "int_2"))
    assert asking.knows("int_2")
    assert not asking.resolved("int_2")  # answered elsewhere while it waited
    assert asking.resolved("int_1")
    assert not asking.next()
    assert asking.asked is None

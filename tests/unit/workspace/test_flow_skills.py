"""Charts of flow skills: what is read from them, what is wrong with them and where, and that nothing takes long."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.flow import NODES_AT_MOST, Flow, Kind
from quintet.workspace.flow_skills import CHARACTERS_AT_MOST, LINE_AT_MOST, flow_in, flow_of
from quintet.workspace.skills import find_skills

ROOT = Path(__file__).parents[3]


def mermaid(*lines: str) -> Flow:
    return flow_in("\n".join(["```mermaid", *lines, "```"]))


def d2(*lines: str) -> Flow:
    return flow_in("\n".join(["```d2", *lines, "```"]))


def texts(flow: Flow) -> dict[str, tuple[str, str]]:
    return {node.id: (node.kind.value, node.text) for node in flow.nodes.values()}


def ways(flow: Flow) -> set[tuple[str, str, str]]:
    return {(start, edge.label, edge.to) for start in flow.nodes for edge in flow.ways(start)}


# --- Mermaid ------------------------------------------------------------------------------------------------------
@pytest.mark.req("wire:S114")
def test_tasks_decisions_and_labels_are_read_from_mermaid() -> None:
    flow = mermaid(
        *("flowchart TD", "A([BEGIN]) --> B[Look it up]", "B --> C{Enough?}", "C -->|yes| D([END])", "C -->|no| B")
    )
    assert texts(flow) == {
        "A": ("begin", "BEGIN"),
        "B": ("task", "Look it up"),
        "C": ("decision", "Enough?"),
        "D": ("end", "END"),
    }
    assert ways(flow) == {("A", "", "B"), ("B", "", "C"), ("C", "yes", "D"), ("C", "no", "B")}
    assert flow.begin == "A"


@pytest.mark.req("wire:S114")
def test_a_node_without_a_text_is_called_what_its_name_is() -> None:
    flow = mermaid("graph LR", "BEGIN --> TASK", "TASK --> END")
    assert texts(flow) == {"BEGIN": ("begin", "BEGIN"), "TASK": ("task", "TASK"), "END": ("end", "END")}


@pytest.mark.req("wire:S114")
@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("B[plain]", "plain"),
        ("B( round )", "round"),
        ("B([stadium])", "stadium"),
        ("B[[twice]]", "twice"),
        ("B((circle))", "circle"),
        ("B(((ring)))", "ring"),
        ("B[(store)]", "store"),
        ("B{asked}", "asked"),
        ("B{{six}}", "six"),
        ('B["hello | world --> [x]; %% y"]', "hello | world --> [x]; %% y"),
        (r'B["say \"hi\"\nthen go"]', 'say "hi"\nthen go'),
        ("B[(first) then the rest]", "(first) then the rest"),
        ("B[über 100 % sure; go]", "über 100 % sure; go"),
        ("B[told]:::loud", "told"),
    ],
)
def test_a_text_stands_in_any_of_mermaids_brackets(written: str, text: str) -> None:
    assert mermaid(f"BEGIN --> {written} --> END").nodes["B"].text == text


@pytest.mark.req("wire:S114")
@pytest.mark.parametrize(
    ("arrow", "label"),
    [
        ("-->", ""),
        ("--->", ""),
        ("->", ""),
        ("---", ""),
        ("-.->", ""),
        ("==>", ""),
        ("-->|yes, go|", "yes, go"),
        ("--> | yes |", "yes"),
        ('-->|"a | b"|', "a | b"),
        ("-- not-yet... -->", "not-yet..."),
        ('-- "a --> b" -->', "a --> b"),
        ("-. maybe .->", "maybe"),
        ("== sure ==>", "sure"),
        ("-- open ---", "open"),
    ],
)
@pytest.mark.parametrize("blank", ["", " "])
def test_an_arrow_has_its_label_behind_it_or_in_its_middle(arrow: str, label: str, blank: str) -> None:
    flow = mermaid("BEGIN --> A", f"A{blank}{arrow}{blank}END")
    assert ways(flow) == {("BEGIN", "", "A"), ("A", label, "END")}


@pytest.mark.req("wire:S114")
def test_what_only_says_how_a_chart_looks_is_passed_over() -> None:
    flow = mermaid(
        *("---", "title: mine", "---", "%% a comment", "flowchart TB", ""),
        *("classDef loud fill:#f9f,stroke:#333;", "subgraph one [The first]", "direction LR"),
        *("A([BEGIN]) --> B[Tree clean?] %% behind it", "B -- yes --> C{Prepare}; B -- no --> D([END]);"),
        *("end", "C --> D", "class B loud", "style C fill:#bbf", "linkStyle 0 stroke:red", 'click B "there"'),
    )
    assert set(flow.nodes) == {"A", "B", "C", "D"}
    assert flow.nodes["B"].kind is Kind.DECISION
    assert flow.nodes["C"].kind is Kind.TASK  # one way leads on: there is nothing to decide


# --- D2 -----------------------------------------------------------------------------------------------------------
@pytest.mark.req("wire:S114")
def test_tasks_decisions_and_labels_are_read_from_d2() -> None:
    flow = d2(
        *('a: "add a line to test.txt"', "a.shape: rectangle", "a.foo.bar", "direction: right", "# a comment"),
        *('b: "more than 3 lines?" {', "  sub1 -> sub2", "  sub2: {", '    1 # "', "  }", "}"),
        *("BEGIN -> a -> b", "b -> a: no", "not_used", "b -> END: yes # and out", "b -> END: 'yes: 2' {", "}"),
        *("(b -> a)[0].style.opacity: 0.4", "b.style.fill: '#fff'"),
    )
    assert flow.nodes["a"].text == "add a line to test.txt"
    assert (flow.nodes["b"].kind, flow.nodes["b"].text) == (Kind.DECISION, "more than 3 lines?")
    assert flow.begin == "BEGIN"
    assert ways(flow) >= {
        *(("BEGIN", "", "a"), ("a", "", "b"), ("b", "no", "a"), ("b", "yes", "END"), ("b", "yes: 2", "END"))
    }
    assert "sub1" not in flow.nodes


@pytest.mark.req("wire:S114")
def test_a_text_of_d2_may_go_over_several_lines() -> None:
    flow = d2(
        *("BEGIN -> a -> b -> c -> d -> END", "a: |md", "  # Look", "", '    - at "this" -> {', "  |"),
        *('b: "one', '  two \\" three"', "c: |md at once |", "d.label: don't stop"),
    )
    assert flow.nodes["a"].text == '# Look\n\n  - at "this" -> {'
    assert flow.nodes["b"].text == 'one\n  two " three'
    assert flow.nodes["c"].text == "at once"
    assert flow.nodes["d"].text == "don't stop"


# --- what is wrong, and where -------------------------------------------------------------------------------------
@pytest.mark.req("wire:S114")
@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("A --> END",), "The chart has no BEGIN."),
        (("BEGIN --> A",), "The chart has no END."),
        (("BEGIN --> END", "X[Begin] --> END"), "Line 3: a second BEGIN; the first is in line 2."),
        (("BEGIN --> A", "A --> B", "B --> A", "C --> END"), "Line 5: END cannot be reached from BEGIN."),
        (("BEGIN --> A", "A -->|x| END", "A --> END"), "Line 4: several ways lead on from the node A"),
        (("BEGIN --> A", "A -->|x| END", "A -->|x| B"), "Line 4: two ways from the node A have the label 'x'."),
        (("BEGIN --> A{?}", "A -->|x| END", "A -->|y| B"), "Line 4: nothing leads on from the node B"),
        (("BEGIN -->|x| END", "BEGIN -->|y| END"), "Line 3: more than one way leads on from BEGIN"),
        (("BEGIN --> END", "END --> BEGIN"), "Line 3: something leads on from END."),
        (("BEGIN --> A[one]", "A[two] --> END"), "Line 3: the node A already has another text, in line 2."),
        (("BEGIN --> A[ ] --> END",), "Line 2: the node A has an empty text."),
        (("BEGIN --> A[one --> END",), "Line 2: a text that begins with [ does not end with ]."),
        (('BEGIN --> A["one] --> END',), "Line 2: a quoted text is not closed."),
        (("BEGIN --> A -->|x END",), "Line 2: a label that begins with | does not end with one."),
        (("BEGIN --> A -- END",), "Line 2: an arrow has no end"),
        (("BEGIN -->",), "Line 2: a node is expected where the line ends."),
        (("BEGIN & A --> END",), "Line 2: an arrow is expected where '& A --> END' stands."),
        (("BEGIN --> END", "!!"), "Line 3: a node is expected where '!!' stands."),
    ],
)
def test_a_mistake_in_a_chart_is_told_with_its_line(lines: tuple[str, ...], told: str) -> None:
    with pytest.raises(Invalid) as error:
        mermaid(*lines)
    assert error.value.message.startswith(told)
    assert error.value.step


@pytest.mark.req("wire:S114")
@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("BEGIN -> a", 'a: "one'), "Line 3: a quoted text is not closed."),
        (("BEGIN -> a: {", "x"), "Line 3: a brace is not closed."),
        (("BEGIN -> a", "}"), "Line 3: a } closes nothing."),
        (("BEGIN -> a", "a: |md", "text"), "Line 3: a text that begins with | is not closed"),
        (("BEGIN <- a",), "Line 2: 'BEGIN <- a' is no name of a node; arrows are written ->."),
        (("my node -> END",), "Line 2: 'my node' is no name of a node"),
        (("BEGIN -> a -> END", 'a: "one" two'), "Line 3: 'two' stands behind a quoted text."),
    ],
)
def test_a_mistake_in_d2_is_told_with_its_line(lines: tuple[str, ...], told: str) -> None:
    with pytest.raises(Invalid) as error:
        d2(*lines)
    assert error.value.message.startswith(told)


@pytest.mark.req("wire:S114")
def test_a_chart_is_found_among_other_blocks_and_its_lines_are_those_of_the_file() -> None:
    text = "---\ntype: flow\n---\n\n~~~text\n```mermaid\n~~~\n````{Mermaid} title\nBEGIN --> END\nx\n```\n````\n"
    with pytest.raises(Invalid, match=r"^Line 11: a node is expected"):
        flow_in(text)
    assert texts(flow_in(text.replace("x\n```\n", ""))).keys() == {"BEGIN", "END"}
    with pytest.raises(Invalid, match="no chart in the skill"):
        flow_in("```python\nflowchart\n```")
    with pytest.raises(Invalid, match=r"^Line 2: the d2 block is not closed"):
        flow_in("words\n```d2\na -> b\n")


@pytest.mark.req("wire:S114")
def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(Invalid, match="longer than"):
        flow_in("x" * (CHARACTERS_AT_MOST + 1))
    with pytest.raises(Invalid, match=r"^Line 2: it is longer"):
        mermaid("x" * (LINE_AT_MOST + 1))
    with pytest.raises(Invalid, match=f"{NODES_AT_MOST} nodes at most"):
        mermaid(*(f"n{n} --> m{n}" for n in range(NODES_AT_MOST)))


# --- anything at all ----------------------------------------------------------------------------------------------
PIECES = (
    *("BEGIN", "END", "A", "b-c", "-->", "--", "---", "->", "-.", ".->", "==", "|", "|md", "[", "]", "([", "])", "{"),
    *(
        "}",
        "(",
        ")",
        '"',
        "'",
        "\\",
        ":",
        ";",
        "%%",
        "#",
        "\n",
        "\n|\n",
        " ",
        "end",
        "subgraph x",
        ":::",
        "é",
        "\0",
        ".",
    ),
    *("\r", "\u2028", "\ud800"),
)


@pytest.mark.req("wire:S114")
@pytest.mark.parametrize("language", ["mermaid", "d2"])
def test_any_text_is_a_flow_or_invalid_and_nothing_else(language: str) -> None:
    dice, flows = random.Random(language), 0
    for _ in range(20_000):
        whole = dice.choice(["", "BEGIN -> A -> END\n"])
        text = whole + "".join(dice.choices(PIECES, k=dice.randrange(25)))
        try:
            flow = flow_in(f"~~~{language}\n{text}\n~~~")
        except Invalid:
            continue
        flows += 1
        assert {node.kind for node in flow.nodes.values()} >= {Kind.BEGIN, Kind.END}
    assert flows > 10


@pytest.mark.parametrize(
    "piece", ["-", "=.", "(", "([", "A([x)-->", "|", "'", '"', "{", "\\", "A-->", "a.", "-- x ", "#"]
)
@pytest.mark.parametrize("language", ["mermaid", "d2"])
def test_the_longest_chart_of_one_sign_is_read_or_refused(language: str, piece: str) -> None:
    """Each takes milliseconds; one that would try every place anew took minutes, and the test's limit would show it."""
    line = piece * (LINE_AT_MOST // len(piece))
    text = "\n".join(["BEGIN --> A -- " + line[: LINE_AT_MOST - 20]] * 9)
    with pytest.raises(Invalid):
        flow_in(f"~~~{language}\n{text}\n~~~")


# --- skills -------------------------------------------------------------------------------------------------------
@pytest.mark.req("wire:S114")
def test_a_skill_says_that_it_is_a_flow_and_its_flow_has_the_digest_it_was_read_with(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "rounds"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\ntype: flow\n---\n```d2\nBEGIN -> a -> END\n```\n")
    (tmp_path / "skills" / "plain").mkdir()
    (tmp_path / "skills" / "plain" / "SKILL.md").write_text("words")
    plain, found = find_skills(str(tmp_path), str(tmp_path / "nowhere"))
    assert (plain.is_flow, found.is_flow) == (False, True)
    flow, digest = flow_of(found)
    assert len(flow.nodes) == 3
    (skill / "more.md").write_text("x")
    assert flow_of(found)[1] != digest

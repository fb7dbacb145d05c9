"""The structure of a shell line, by tree-sitter: every simple command wherever it stands, and what else the line does.

The grammar differs from bash in places. So words are read again from their raw text, nothing may lie between two
nodes but blanks, and a kind of node not named here makes the line one that is not understood.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from quintet.domain.ports import UNKNOWN_WORD
from quintet.workspace.shell_parsing.variables import harmless_for_command, harmless_in_shell
from quintet.workspace.shell_parsing.words import Misfit, read_word

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_KNOWN_TEXT = """
program list pipeline redirected_statement command command_name word string string_content raw_string number
ansi_c_string concatenation simple_expansion expansion special_variable_name variable_name command_substitution
process_substitution subshell compound_statement if_statement elif_clause else_clause while_statement for_statement
do_group case_statement case_item negated_command file_redirect file_descriptor heredoc_redirect heredoc_start
heredoc_body heredoc_content heredoc_end herestring_redirect variable_assignment variable_assignments
declaration_command unset_command test_command unary_expression binary_expression parenthesized_expression
test_operator comment regex extglob_pattern brace_expression translated_string arithmetic_expansion
function_definition
"""
_KNOWN = frozenset(_KNOWN_TEXT.split())
# Read as one piece from their raw text; what lies between their children is content.
_ATOMS_TEXT = "word string raw_string ansi_c_string concatenation translated_string regex heredoc_body"
_ATOMS = frozenset(_ATOMS_TEXT.split())
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_BEFORE_A_WORD = frozenset(b" \t\n;&|()`")
_SUMS = re.compile(rb"[0-9\s+*/%()-]*")
_SAFE_EXPANSION = re.compile(rb"\$\{#?[A-Za-z_0-9]+((:?[-+?]|%%?|##?|//?|\^\^?|,,?)[\s\S]*)?\}")
_RUNS_IN_EXPANSION = re.compile(rb"[`'\"\\\n]|[$<>]\(")
_DELIMITER = re.compile(rb"""[A-Za-z_][A-Za-z0-9_]*|'[A-Za-z_][A-Za-z0-9_]*'|"[A-Za-z_][A-Za-z0-9_]*\"""")
_NUMERIC_TESTS = re.compile(rb"-(eq|ne|lt|le|gt|ge)\b[\s\S]*\$|\$[\s\S]*-(eq|ne|lt|le|gt|ge)\b|-[vR]\b")
_ODD_IN_TESTS = re.compile(rb"[;\n`()<>\\]|(?<!&)&(?!&)|(?<!\|)\|(?!\|)")
_OWN_REDIRECTS = re.compile(r"[0-9]+|-|[0-9]+-")


@cache
def _language() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _parse(source: bytes) -> Node:
    from tree_sitter import Parser

    return Parser(_language()).parse(source).root_node  # its own parser: digests are made in threads


class Structure:
    """What was found in one text. `trouble` says why it is not understood."""

    def __init__(self, text: str) -> None:
        self.argvs: list[tuple[str, ...]] = []
        self.writes: list[str] = []
        self.trouble = ""
        self._source = text.encode()
        root = _parse(self._source)
        if root.has_error or b"$$(" in self._source or b"$${" in self._source:
            self._cannot("a syntax error")
        self._walk(root)

    def _cannot(self, why: str) -> None:
        self.trouble = self.trouble or why

    def _walk(self, root: Node) -> None:
        # A list instead of recursion: a hostile line nests deeper than Python's stack.
        waiting: list[tuple[Node, bool]] = [(root, False)]
        while waiting:
            node, inside = waiting.pop()
            if node.is_named and node.type not in _KNOWN:
                self._cannot(f"a {node.type.replace('_', ' ')}")
            if node.type not in _ATOMS:
                self._check_gaps(node)
            self._look_at(node, inside=inside)
            inside = inside or node.type in ("command_substitution", "process_substitution")
            waiting.extend((child, inside) for child in reversed(node.children))

    def _check_gaps(self, node: Node) -> None:
        """Between two children of a node bash must see nothing either."""
        at = node.start_byte
        for child in node.children:
            if self._source[at : child.start_byte].strip(b" \t\n"):
                self._cannot("text the grammar skipped")
            at = child.end_byte
        if node.children and self._source[at : node.end_byte].strip(b" \t\n"):
            self._cannot("text the grammar skipped")

    def _look_at(self, node: Node, *, inside: bool) -> None:
        parent = node.parent.type if node.parent else ""
        raw = self._raw(node)
        match node.type:
            case "command":
                self._command(node)
            case "declaration_command":
                self._declaration(node)
            case "unset_command" | "for_statement":
                self._names(node)
            case "variable_assignment":
                self._assignment(node, parent)
            case "file_redirect":
                self._redirect(node)
            case "heredoc_redirect":
                self._heredoc(node)
            case "herestring_redirect":
                self._check_target(node, node.children[-1])
            case "function_definition" | "((" | "translated_string" | "array" | "subscript":
                self._cannot(f"a {node.type.replace('_', ' ')}")
            case "expansion" if not _SAFE_EXPANSION.fullmatch(raw) or _RUNS_IN_EXPANSION.search(raw):
                self._cannot("an expansion that could do more")
            case "arithmetic_expansion" if not _SUMS.fullmatch(raw.strip(b"$()")):
                self._cannot("arithmetic over more than numbers")
            case "test_command" if _NUMERIC_TESTS.search(raw) or _ODD_IN_TESTS.search(raw):
                self._cannot("a test that could do more")
            case "command_substitution" if raw[:1] == b"`" and (b"\\" in raw or b"`" in raw[1:-1]):
                self._cannot("backticks within backticks")
            case "extglob_pattern" | "regex" if b"$" in raw or b"`" in raw:
                self._cannot("an expansion in a pattern")
            case "comment":
                before = self._source[node.start_byte - 1 : node.start_byte]
                if inside or (before and before not in b" \t\n;&|()"):
                    self._cannot("a comment in an odd place")
            case "case_statement" if inside:
                self._cannot("a case inside a substitution")
            case ";;" | ";&" | ";;&" if parent != "case_item":
                self._cannot("a syntax error")

    # --- simple commands -----------------------------------------------------------------------------------------
    def _command(self, node: Node) -> None:
        parts = []
        for child in node.children:
            if child.type == "subshell":
                self._cannot("a syntax error")
            elif child.type == "file_redirect":
                parts += _strays(child)
            elif child.type not in _REDIRECTS and child.type != "variable_assignment":
                parts.append(child)
        statement = node.parent
        if statement is not None and statement.type == "redirected_statement":
            for redirect in statement.children_by_field_name("redirect"):
                parts += _strays(redirect)  # the grammar takes words behind a target for more targets
        self._add(parts)

    def _add(self, parts: list[Node]) -> None:
        spans: list[list[int]] = []
        for part in sorted(parts, key=lambda n: n.start_byte):
            if spans and spans[-1][1] == part.start_byte:
                spans[-1][1] = part.end_byte
            else:
                spans.append([part.start_byte, part.end_byte])
        argv = tuple(self._word(start, end) for start, end in spans)
        if not argv:
            return  # only redirections
        if argv[0] == UNKNOWN_WORD:
            self._cannot("a program named by an expansion")
        self.argvs.append(argv)

    def _word(self, start: int, end: int) -> str:
        if start and self._source[start - 1] not in _BEFORE_A_WORD:
            self._cannot("a word the grammar cut")
        raw = self._source[start:end]
        if self._source[end : end + 1] in (b"<", b">") and (raw.isdigit() or raw.endswith(b"}")):
            self._cannot("a descriptor in an odd place")  # bash takes it for part of the redirection
        return self._read(start, end)

    def _read(self, start: int, end: int) -> str:
        try:
            return read_word(self._source[start:end].decode())
        except Misfit as misfit:
            self._cannot(str(misfit))
            return UNKNOWN_WORD

    def _value(self, node: Node) -> str:
        return self._read(node.start_byte, node.end_byte)

    def _raw(self, node: Node) -> bytes:
        return self._source[node.start_byte : node.end_byte]

    # --- variables -----------------------------------------------------------------------------------------------
    def _assignment(self, node: Node, parent: str) -> None:
        target = node.child_by_field_name("name")
        name = self._raw(target).decode() if target is not None and target.type == "variable_name" else ""
        # What a command or `export` sets reaches programs; else it stays in the shell.
        harmless = harmless_for_command if parent in ("command", "declaration_command") else harmless_in_shell
        value = node.child_by_field_name("value")
        if not harmless(name) or self._raw(node)[len(name) : len(name) + 2] == b"+=":
            self._cannot(f"the variable {name or 'of an array'} is set")
        elif parent == "declaration_command" and value is not None and self._value(value) == UNKNOWN_WORD:
            self._cannot(f"the variable {name} is set to something unknown")

    def _declaration(self, node: Node) -> None:
        self.argvs.append(tuple(self._value(c) for c in node.children))
        if node.children[0].type != "export":
            self._cannot(f"`{node.children[0].type}` changes what follows")
        for child in node.named_children:
            if child.type != "variable_assignment" and not harmless_for_command(self._raw(child).decode()):
                self._cannot("`export` of a variable that programs listen to")

    def _names(self, node: Node) -> None:
        if node.type == "unset_command":
            self.argvs.append(tuple(self._value(c) for c in node.children))
            names = node.named_children
        else:
            names = node.children_by_field_name("variable")
        for name in names:
            if name.type != "variable_name" or not harmless_in_shell(self._raw(name).decode()):
                self._cannot("a variable that programs listen to is changed")

    # --- redirections --------------------------------------------------------------------------------------------
    def _redirect(self, node: Node) -> None:
        operator = next((c.type for c in node.children if not c.is_named), "")
        descriptor = node.child_by_field_name("descriptor")
        if descriptor is not None:
            alone = not node.start_byte or self._source[node.start_byte - 1] in _BEFORE_A_WORD
            if not alone or not self._raw(descriptor).isdigit():
                self._cannot("a descriptor in an odd place")
        if node.parent is not None and node.parent.type == "redirected_statement" and len(_strays(node)):
            body = node.parent.child_by_field_name("body")
            if body is None or body.type != "command":
                self._cannot("words behind a redirection")
        targets = node.children_by_field_name("destination")
        if not targets:
            if not operator.endswith("-") or not self._ends(node.end_byte):
                self._cannot("a redirection without a target")
            return
        self._check_target(node, targets[0])
        if operator.endswith("-"):
            self._cannot("words behind a redirection")
        target = self._value(targets[0])
        if "&" in operator and not operator.startswith("&") and _OWN_REDIRECTS.fullmatch(target):
            return  # another descriptor
        if operator in ("<", "<&"):
            if target == UNKNOWN_WORD or target.startswith(("/dev/tcp", "/dev/udp")):
                self._cannot("input from somewhere unknown")
        elif target != "/dev/null":
            self.writes.append(target)

    def _check_target(self, redirect: Node, target: Node) -> None:
        """Bash wants the target on the operator's line, and a number before another operator for itself."""
        between = self._source[redirect.start_byte : target.start_byte]
        if b"\n" in between or not (
            self._ends(target.end_byte) or self._source[target.end_byte : target.end_byte + 1] in (b"<", b">")
        ):
            self._cannot("a redirection in an odd place")
        if b"&" in between and self._raw(target).startswith(b"-") and self._raw(target) != b"-":
            self._cannot("a redirection in an odd place")  # bash takes the dash alone
        if self._raw(target).isdigit() and self._source[target.end_byte : target.end_byte + 1] in (b"<", b">"):
            self._cannot("a descriptor in an odd place")

    def _ends(self, at: int) -> bool:
        """Whether a word is over here."""
        return at >= len(self._source) or self._source[at] in _BEFORE_A_WORD

    def _heredoc(self, node: Node) -> None:
        """The grammar is weak here: only one plain document is taken, and its end is looked up again."""
        if node.children_by_field_name("argument") or any(_strays(child) for child in node.children):
            self._cannot("words behind a redirection")
        start, body, end = (_child(node, kind) for kind in ("heredoc_start", "heredoc_body", "heredoc_end"))
        if start is None or end is None or not _DELIMITER.fullmatch(self._raw(start)) or self._source.count(b"<<") != 1:
            return self._cannot("a here-document")
        delimiter = self._raw(start).strip(b"'\"")
        first_line, _, rest = self._source[start.end_byte :].partition(b"\n")
        tabs = b"\t*" if node.children[0].type == "<<-" else b""
        found = re.search(rb"^" + tabs + delimiter + rb"$", rest, re.MULTILINE)
        place = start.end_byte + len(first_line) + 1
        if found is None or end.end_byte != place + found.end() or b"\\" in first_line:
            return self._cannot("a here-document")
        text = rest[: found.start()]
        if self._raw(start) == delimiter:
            seen = [] if body is None else [c for c in body.children if c.type == "command_substitution"]
            if b"`" in text or b"\\" in text or text.count(b"$(") != len(seen):
                self._cannot("a here-document with expansions")


def _strays(redirect: Node) -> list[Node]:
    """Words the grammar takes for further targets of a redirection: they are arguments of its command."""
    return redirect.children_by_field_name("destination")[1:] if redirect.type == "file_redirect" else []


def _child(node: Node, kind: str) -> Node | None:
    return next((c for c in node.children if c.type == kind), None)

"""An HTML page as text a model can read: headings, lists, links and code stay, scripts and what is hidden go. Pure.

The page is fed in pieces and never closed: the parser's way of closing looks through the rest again for each tag that a
hostile page left open.
"""

from __future__ import annotations

import re
import time
from html import unescape
from html.parser import HTMLParser

from quintet.domain.errors import Invalid
from quintet.workspace.web.urls import WebUrl, join_url

PIECE = 65_536
WITHIN_S = 5.0
_DROPPED_WORDS = """
script style noscript template svg math iframe object embed canvas audio video select datalist
"""
_VOID_WORDS = """
area base br col embed hr img input link meta source track wbr
"""
_BLOCK_WORDS = """
p div section article header footer main aside nav address figure figcaption form fieldset dl dt dd ul ol li
table tbody thead tfoot tr caption details summary blockquote body html h1 h2 h3 h4 h5 h6 pre hr
"""
_DROPPED, _VOID, _BLOCKS = (frozenset(words.split()) for words in (_DROPPED_WORDS, _VOID_WORDS, _BLOCK_WORDS))
_HEADINGS = {f"h{n}": "#" * n + " " for n in range(1, 7)}
_HIDDEN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)


def readable(html: str, base: WebUrl) -> tuple[str, str]:
    """(title, text). What was left out because the page is broken or takes too long is told at the end."""
    parser = _Reader(base)
    until = time.monotonic() + WITHIN_S
    for start in range(0, len(html), PIECE):
        parser.feed(html[start : start + PIECE])
        if time.monotonic() > until:
            parser.end_with(f"[{len(html) - start - PIECE} characters of the page were not read: it is too tangled]")
            break
    else:
        parser.rest()
    return " ".join(parser.title.split()), parser.text()


class _Reader(HTMLParser):
    def __init__(self, base: WebUrl) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._base = base
        self._lines: list[str] = []
        self._line = ""
        self._skipping = ""  # the element whose content is dropped, and how deep in others of its name
        self._depth = 0
        self._in_title = False
        self._code = 0  # inside <pre>
        self._lists: list[int] = []  # 0: bullets, n: the next number
        self._link: tuple[str, int] | None = None

    # --- what the parser calls -----------------------------------------------------------------------------------
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "title" and not self.title:
            self._in_title = True
            return
        if self._skipping:
            self._depth += tag == self._skipping
            return
        if tag not in _VOID and tag != "body" and (tag in _DROPPED or _hidden(given)):
            self._skipping, self._depth = tag, 1
            return
        if tag in _BLOCKS:
            self._break()
        self._open(tag, given)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._skipping:
            self._depth -= tag == self._skipping
            if not self._depth:
                self._skipping = ""
        else:
            self._close(tag)
            if tag in _BLOCKS:
                self._break()

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif self._skipping:
            return
        elif self._code:
            self._line += data
        else:
            words = re.sub(r"\s+", " ", data)
            self._line += words.lstrip() if not self._line or self._line.endswith((" ", "\n")) else words

    # --- what an element means -----------------------------------------------------------------------------------
    def _open(self, tag: str, given: dict[str, str | None]) -> None:
        if tag in _HEADINGS:
            self._line = _HEADINGS[tag]
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else 0)
        elif tag == "li":
            self._line = self._bullet()
        elif tag == "pre":
            self._code += 1
            self._line = "```\n"
        elif tag == "code" and not self._code:
            self._line += "`"
        elif tag == "br":
            self._line = self._line.rstrip(" ") + "\n"
        elif tag == "hr":
            self.block("---")
        elif tag == "img" and (given.get("alt") or "").strip():
            self._line += f"[image: {' '.join((given['alt'] or '').split())}]"
        elif tag in ("td", "th") and self._line.strip():
            self._line = self._line.rstrip() + " | "
        elif tag == "a" and given.get("href"):
            self._link = (given["href"] or "", len(self._line))

    def _close(self, tag: str) -> None:
        if tag == "pre" and self._code:
            self._code -= 1
            self._line = self._line.rstrip("\n") + "\n```"
        elif tag == "code" and not self._code:
            self._line += "`"
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "a":
            self._end_link()

    def _bullet(self) -> str:
        indent = "  " * max(0, len(self._lists) - 1)
        if not self._lists or not self._lists[-1]:
            return f"{indent}- "
        self._lists[-1] += 1
        return f"{indent}{self._lists[-1] - 1}. "

    def _end_link(self) -> None:
        if self._link is None:
            return
        (href, start), self._link = self._link, None
        words = self._line[start:].strip()
        if not words or self._code or "\n" in words:
            return
        try:
            target = join_url(self._base, href.strip()).text
        except Invalid:
            return  # mailto:, javascript: and the like: the words stay, the link goes
        self._line = f"{self._line[:start]}[{words}]({target})"

    # --- lines ---------------------------------------------------------------------------------------------------
    def _break(self) -> None:
        if self._code:
            return
        self._end_link()
        line, self._line = self._line.rstrip(), ""
        if line.strip(" #-`") or line == "---":
            self._lines.append(line)

    def block(self, line: str) -> None:
        self._break()
        self._lines.append(line)

    def end_with(self, line: str) -> None:
        self._code = 0
        self.block(line)

    def rest(self) -> None:
        """Text behind the last tag; a tag that never ends is told, not guessed at."""
        left, self.rawdata = self.rawdata, ""
        if "<" not in left:
            self.handle_data(unescape(left))
        elif not self._skipping:
            self.end_with(f"[the page's last {len(left)} characters are an element that does not end]")

    def text(self) -> str:
        self._code = 0
        self._break()
        made: list[str] = []
        for line in self._lines:
            tight = _is_entry(line) and made and _is_entry(made[-1])
            made.append(line if not made else ("\n" if tight else "\n\n") + line)
        return "".join(made).strip("\n")


def _is_entry(line: str) -> bool:
    return bool(re.match(r"\n*\s*(?:- |\d+\. )", line))


def _hidden(given: dict[str, str | None]) -> bool:
    return "hidden" in given or given.get("aria-hidden") == "true" or bool(_HIDDEN.search(given.get("style") or ""))

"""Generated texts and expressions, for comparing two searchers."""

from __future__ import annotations

from pathlib import Path
from random import Random

PIECES = [
    *(
        b"foo",
        b"bar",
        b"Foo",
        b"FOO",
        b" ",
        b" ",
        b"\t",
        b"1",
        b"42",
        b"_",
        b".",
        b"-",
        b"(",
        b"\\",
        b"[x]",
        b"{",
        b"}",
    ),
    *(b"^", b"\xff", b"\xc3", b"\r", b"\x0c", b"\x1f", b"a", b"b", b"ab", b"import os", b"def f(x):"),
    *(char.encode() for char in ("ä", "Ä", "ß", "日本", "\u00a0", "\u2028")),
]
PATTERNS = r"""
foo
^foo
foo$
^$
^foo.*bar$
o+
(foo|bar)+
f.o
.
..
[a-c]+
[^a-z]
[^a-z ]+$
[[:alpha:]]+[[:digit:]]
[[:punct:]]
[[:^alpha:]]
[]a]
[^]a]
[a-]
[-a]
[\]x]
[\w.-]+
[\s\S]
[\D]
[^\d]
\d+
\D
\w+\s\w+
\W
\S+$
\s
\bfoo\b
\Boo
foo\.
\(
\\
\[x\]
\{
a{2}
a{1,2}b
a{0,}b
(?:a|b){2,3}
a*?b
a++
(a*)*b
(?i)foo
(?i)ä
(?i:f)oo
((?i)f)OO
(?-i)foo
foo|(?i)bar
(?P<name>foo)
(?<name>foo)
(?=foo)
(?!foo)
(?<=f)oo
(?>foo)
(foo)\1
\x66oo
\x{66}oo
\u0066oo
\u00e4
\p{L}
\pL
\A
\z
\Z
\n
foo\r
\r$
\t
\f
\v
\a
\e
\-
\ foo
\"
\/
(?x)f o o
(?s).
(?m)^foo
(?U)a+
(?u:a)
(?-u:a)
a(
a)
(
[
[z-a]
[a&&b]
[a--b]
[a~~b]
[[a]b]
[a[:digit:]]
[[:nosuch:]]
*a
+
?
a|*
{2}
a{
a{,2}
a{2
a{3,2}
a}
]
()
(|a)
a||b
|
^*foo
$foo
foo^
(^|\s)foo
日
[日-本]
ß
ẞ
\u{df}
[ä-ü]
import\s+(os|re)
def \w+\(
(?i)[a-f]
(?i)[^f]
a.*b.*c
^.{5,10}$
^\s*$
#
-
--version
-e
""".strip("\n").split("\n")


def text(random: Random) -> bytes:
    lines = [b"".join(random.choices(PIECES, k=random.randint(0, 6))) for _ in range(random.randint(0, 12))]
    made = b"\n".join(lines) + random.choice([b"\n", b"", b"\r\n"])
    shape = random.random()
    if shape < 0.06:
        return b"\xef\xbb\xbf" + made
    if shape < 0.12:
        return made.decode("utf-8", "replace").encode(random.choice(["utf-16", "utf-16-be"]), "replace")
    if shape < 0.16:
        return b"\xfe\xff" + made.decode("utf-8", "replace").encode("utf-16-be")
    if shape < 0.22:
        return made + b"\0" + made
    if shape < 0.25:
        return made + b"x" * random.choice([600, 5_000]) + b"\n" + made
    if shape < 0.27:
        return made + b"foo ab\n" * 30_000 + b"\0"
    if shape < 0.30:
        return made.replace(b"\n", b"\r\n")
    return made


def fill(root: Path, random: Random) -> None:
    for number in range(random.randint(1, 12)):
        name = random.choice(["f.py", "g.ts", "h", "i.tsx", "j k", "l:m", "n\nl", "ö.py", ".env"])
        place = root / random.choice(["", "src", "src/deep", "a.py", ".hidden", "ig"]) / f"{number}{name}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text(random))
    if random.random() < 0.5:
        (root / ".gitignore").write_text(random.choice(["ig\n", "*.ts\n", "h\n!*h\n", "/src/deep/\n"]))
    (root / "link").symlink_to("..")

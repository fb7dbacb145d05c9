"""AnswerForm: the JSON Schema a turn's last words must fit. Says what is wrong in words for the model; asks nobody.

The schema is the starter's. It may refer to itself, never to anywhere else: no address is ever opened for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from quintet.domain.errors import AnswerUnfit, Invalid
from quintet.domain.item import AssistantMessage, Item

MORE_TRIES = 2
SCHEMA_LIMIT = 64 * 1024  # bytes; it is told to the model
_FENCE = re.compile(r"\A```[A-Za-z]*[ \t]*\n(.*)\n```\Z", re.DOTALL)


class AnswerForm:
    def __init__(self, schema: bytes, source: str) -> None:
        """Invalid when it is no schema; `source` is how people call it."""
        self._check = _checker(schema, source)
        text = msgspec.json.encode(msgspec.json.decode(schema), order="sorted").decode()
        self.words = (
            "# The form of your answer\nEnd with one JSON value and nothing else, no fence, no words around it. It "
            f"must fit this JSON Schema:\n{text}"
        )

    def wrong_with(self, answer: str) -> str:
        """Nothing when it fits."""
        try:
            value = msgspec.json.decode(bare(answer))
        except (ValueError, RecursionError) as error:
            return f"it is not JSON: {error}"
        return self._check(value)


class Answering:
    """One turn's tries."""

    def __init__(self, form: AnswerForm | None) -> None:
        self._form = form
        self._tries = 0

    def correction(self, items: Sequence[Item]) -> str:
        """What to tell the model about its last words; nothing when they fit. AnswerUnfit after the last try."""
        if self._form is None:
            return ""
        said = [item.body.text for item in items if isinstance(item.body, AssistantMessage)]
        wrong = self._form.wrong_with(said[-1]) if said else "it is empty"
        if not wrong:
            return ""
        if self._tries == MORE_TRIES:
            raise AnswerUnfit(f"The answer does not fit the schema after {MORE_TRIES + 1} tries: {wrong[:500]}.")
        self._tries += 1
        told = f"[Quintet] Your answer does not fit the schema: {wrong[:2_000]}."
        return f"{told} Answer again, with nothing but the JSON."


def bare(answer: str) -> str:
    """The JSON without the fence that models like to put around it."""
    text = answer.strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


def _checker(schema: bytes, source: str) -> Callable[[Any], str]:
    if len(schema) > SCHEMA_LIMIT:
        raise Invalid(f"{source} is longer than {SCHEMA_LIMIT // 1024} KiB.")
    try:
        document = msgspec.json.decode(schema)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{source} is not JSON: {error}.") from error
    if not isinstance(document, dict):
        raise Invalid(f"{source} is not a JSON Schema: it must be an object.")
    if elsewhere := next(_references(document), ""):
        raise Invalid(f"{source} refers to {elsewhere[:100]!r}; only references within it (#/…) are followed.")
    import fastjsonschema  # only where a turn has a schema

    try:
        nowhere = dict.fromkeys(("http", "https", "ftp", "file", "data"), _not_opened)
        validate = fastjsonschema.compile(document, nowhere, use_default=False)
    except (
        fastjsonschema.JsonSchemaException,
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        SyntaxError,
        RecursionError,
        re.error,
    ) as error:
        raise Invalid(f"{source} is not a JSON Schema Quintet can use: {error}.") from error

    def check(value: Any) -> str:
        try:
            validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)
        except RecursionError:
            return "it is nested too deeply"
        return ""

    return check


def _not_opened(address: str) -> Any:
    raise ValueError(f"{address[:100]!r} is not opened")


def _references(value: Any) -> Iterator[str]:
    """Every reference that leads out of the schema."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str) and not inner.startswith("#"):
                yield inner
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)

"""Running one command: its flags, the event loop, signals, and errors as one line with the right exit code."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from quintet.cli import exits, last_resort
from quintet.cli.parser import Parser, common_flags, flags_of
from quintet.cli.terminal import OutputFailed, Screen, one_line
from quintet.domain.errors import Invalid, QuintetError

if TYPE_CHECKING:
    from quintet.app import App

ALONE = "overview"  # what `quintet` without a command runs
LARGEST_NUMBER = 1_000_000
LONGEST_S = 365 * 86_400
Command = Callable[["Invocation"], Coroutine[Any, Any, int]]


class Invocation:
    """One call of one command: what was asked and where to answer."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.json: bool = flags.json
        self.screen = Screen(color=not flags.no_color)
        self.home = flags.home

    @asynccontextmanager
    async def open(self, protocol: str = "cli", *, starts_turns: bool = False) -> AsyncIterator[App]:
        """The home, opened; what is not as it should be is told first."""
        from quintet.app import open_app

        async with open_app(self.home, protocol, starts_turns=starts_turns) as app:
            with suppress(OutputFailed):  # a warning that cannot be told stops no command; it is in the log
                for warning in app.warnings:
                    self.screen.note(f"quintet: {warning}")
            yield app


def positive(text: str) -> int:
    """A flag's number: one to a million."""
    number = int(text)
    if not 1 <= number <= LARGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"must be from 1 to {LARGEST_NUMBER}")
    return number


def seconds(text: str) -> float:
    """A flag's time: nothing to a year."""
    number = float(text)
    if not 0 <= number <= LONGEST_S:  # not true of nan either
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0 to {LONGEST_S}")
    return number


def money(text: str) -> float:
    """A flag's amount in dollars: more than nothing, and no more than anybody means."""
    number = float(text.removeprefix("$"))
    if not 0 < number <= LARGEST_NUMBER:  # not true of nan either
        raise argparse.ArgumentTypeError(f"must be an amount in dollars above 0, at most {LARGEST_NUMBER}")
    return number


def directory(given: str, flag: str = "--cwd") -> str:
    """A flag's working directory, which must exist; the current one if none was given."""
    try:
        path = os.path.realpath(given or os.getcwd())
    except FileNotFoundError:
        raise Invalid(
            "The current directory is gone.", next_step=f"Go to another one, or name one with {flag}."
        ) from None
    if not os.path.isdir(path):
        raise Invalid(f"{given} is not a directory.", next_step=f"Name an existing one with {flag}.")
    if not is_text(path):
        raise Invalid(
            f"{path} has a name that is not UTF-8, which nothing can be kept under.",
            next_step=f"Rename it, or name another one with {flag}.",
        )
    return path


def is_text(name: str) -> bool:
    """Whether a name the system gave is text: any other bytes in it stand as halves of surrogate pairs."""
    return not any("\ud800" <= sign <= "\udfff" for sign in name)


def invoke(name: str, words: list[str]) -> int:
    """Parse, run, and turn whatever happens into an exit code."""
    module = importlib.import_module(f"quintet.cli.{name}")
    return run_guarded(module.run, Invocation(parse(module, name, words)))


def parse(module: ModuleType, name: str, words: list[str]) -> argparse.Namespace:
    """The flags of a command; what is not understood ends in SystemExit, after it was told."""
    common = common_flags()
    parser = Parser(prog="quintet", parents=[common], add_help=False)
    # Without a name given argparse would lay out its help first, to find one.
    subparsers = parser.add_subparsers(dest="command", required=True, parser_class=Parser, prog="quintet")
    typed = "quintet" if name == ALONE else f"quintet {name}"
    own = subparsers.add_parser(name, prog=typed, parents=[common], description=module.__doc__)
    module.add_flags(own, common)
    return flags_of(parser, own, words)


def run_guarded(command: Command, invocation: Invocation) -> int:
    """Whatever happens is one line at most, and an exit code."""
    try:
        return asyncio.run(_quietly(command, invocation))
    except QuintetError as error:
        words = f"quintet: {error.line()} ({error.docs})"
        last_resort.tell(_json(error) if invocation.json else one_line(words, sys.stderr))
        return exits.BY_CODE[error.code]
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except OutputFailed as failed:
        return last_resort.unwritable(failed.error)
    except Exception as error:
        return last_resort.unexpected(error, invocation.home)


def _json(error: QuintetError) -> str:
    """The same for programs, which asked for --json: still one line, still on stderr."""
    from quintet.cli.event_json import VERSION, encode_line

    info = error.info()
    said = {"code": info.code, "message": info.message, "next_step": info.next_step, "docs": info.docs}
    line = {"v": VERSION, "error": {**said, "data": info.data, "exit": exits.BY_CODE[info.code]}}
    return encode_line(line).decode().rstrip("\n")


async def _quietly(command: Command, invocation: Invocation) -> int:
    """What goes wrong in a callback, or in a task nobody asks any more, belongs into the log, not on the terminal."""

    def keep(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        last_resort.log(context.get("exception") or RuntimeError(context.get("message", "")), invocation.home)

    asyncio.get_running_loop().set_exception_handler(keep)
    return await command(invocation)

"""chat: a conversation at a terminal: streamed answers, approvals and questions in place, steering while it runs."""

from __future__ import annotations

import argparse
import sys

from quintet.cli.inside_call import refuse_inside_a_call
from quintet.cli.invoke import Invocation, money
from quintet.domain.errors import Invalid
from quintet.domain.turn import Mode


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--model", default="", help="provider/model")
    parser.add_argument("-c", "--continue", dest="go_on", action="store_true", help="go on with the newest thread here")
    parser.add_argument("--thread", default="", help="go on with this thread")
    parser.add_argument("--cwd", default="", help="working directory (else the current one)")
    parser.add_argument("--mode", choices=[m.value for m in Mode], help="how much may happen unasked (default: ask)")
    parser.add_argument("--sandbox", choices=["ro", "ws", "off"], default="ws", help="how commands are confined")
    parser.add_argument("--agent", default="", metavar="NAME", help="who works in the thread from now on")
    plan_help = "change nothing until somebody agreed to a plan; --no-plan ends that"
    parser.add_argument("--plan", action=argparse.BooleanOptionalAction, help=plan_help)
    parser.add_argument("--budget", type=money, metavar="USD", help="dollars each turn may cost")


async def run(invocation: Invocation) -> int:
    if invocation.json:
        raise Invalid("A conversation has no JSON form.", next_step="Use `quintet run --json PROMPT`.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Invalid("A conversation needs a terminal.", next_step="Without one, use `quintet run PROMPT`.")
    refuse_inside_a_call("hold a conversation in which requests are answered")
    from quintet.cli.chat.opening import hold  # with all that a terminal needs, which no other command does

    return await hold(invocation)

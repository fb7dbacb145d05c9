"""What the command line says of files that were or would be brought back, and of what turns changed in them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from quintet.app import App
from quintet.cli import exits
from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.cli.terminal import Screen, safe_line
from quintet.domain.errors import NotFound
from quintet.engine.threads import Reverted
from quintet.engine.undo import Undone


def add_actions(action: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """The part of `quintet threads` that is about going back."""
    differing = action("diff", "what a thread changed in files")
    differing.add_argument("thread")
    differing.add_argument("--turn", default="", help="only what this turn changed")
    reverting = action("revert", "hide what follows an item, until unrevert or the next turn")
    reverting.add_argument("thread")
    reverting.add_argument("--through", type=int, required=True, metavar="N", help="the last item that stays")
    unreverting = action("unrevert", "show again what revert has hidden")
    unreverting.add_argument("thread")
    for one in (reverting, unreverting):
        one.add_argument(
            "--files", action="store_true", help="files too: what was changed after it is undone or redone"
        )
        one.add_argument("--force", action="store_true", help="also files that have changed since; they are kept")
        one.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")


async def turn_of(app: App, thread: str, given: str) -> str:
    """A turn's id from what a person typed: the id or its end."""
    found = [t.id for t in await app.journal.turns(thread) if t.id == given or t.id.endswith(given)]
    if len(found) != 1:
        words = "no turn" if not found else f"{len(found)} turns"
        raise NotFound(
            f"The thread has {words} with an id like {given!r}.",
            next_step=f"`quintet threads show {thread} --json` names them.",
        )
    return found[0]


async def diff(invocation: Invocation, app: App) -> int:
    thread = await app.threads.find(invocation.flags.thread)
    turn = await turn_of(app, thread, invocation.flags.turn) if invocation.flags.turn else ""
    found = await app.diffs.of(thread, turn)
    if invocation.json:
        invocation.screen.raw(encode_line(found))
        return exits.DONE
    for file in found.files:
        if file.shown:
            invocation.screen.write(file.diff)
        else:
            invocation.screen.line(f"({safe_line(file.path)}: {file.status}, too long to show)")
        if file.shared:
            invocation.screen.note(f"{safe_line(file.path)}: may be somebody else's change")
    for why in found.partial:
        invocation.screen.note(f"Not everything is known: {safe_line(why)}.")
    if not found.files:
        invocation.screen.note("No files were changed.")
    return exits.DONE


async def revert(invocation: Invocation, app: App) -> int:
    flags = invocation.flags
    thread = await app.threads.find(flags.thread)
    done = await app.threads.revert(thread, flags.through, files=flags.files, force=flags.force, dry_run=flags.dry_run)
    return tell(invocation, done, redo=False)


async def unrevert(invocation: Invocation, app: App) -> int:
    flags = invocation.flags
    thread = await app.threads.find(flags.thread)
    done = await app.threads.unrevert(thread, files=flags.files, force=flags.force, dry_run=flags.dry_run)
    return tell(invocation, done, redo=True)


def tell(invocation: Invocation, done: Reverted, *, redo: bool) -> int:
    """What was brought back, what was left alone and why; failed where something was left alone."""
    files, screen = done.files, invocation.screen
    code = exits.FAILED if files is not None and files.conflicts else exits.DONE
    if invocation.json:
        hidden = done.thread.view.reverted
        answer = {"thread": done.thread.id, "hidden": hidden, "redo": redo, "files": files}
        screen.raw(encode_line(answer))
        return code
    if files is None:
        screen.note("Shown again." if redo else f"Items after {_kept(done)} are hidden until `unrevert`.")
        if done.files_behind:
            again = f"quintet threads unrevert {done.thread.id} --files"
            screen.note(f"Files stay as they are; bring them with `{again}`, until the next turn.")
        return code
    _tell_files(screen, files)
    for why in files.partial:
        screen.note(f"Undo is partial: {safe_line(why)}.")
    if not files.restored and not files.conflicts:
        screen.note("No file had to be changed.")
    if files.dry_run:
        screen.note("That is what would be done; nothing was changed.")
    elif not redo:
        screen.note(f"Items after {_kept(done)} are hidden. `quintet undo {done.thread.id} --redo` takes it back.")
    elif done.thread.view.reverted:
        screen.note(f"Items after {_kept(done)} are still hidden: one step was taken back; `--redo` again takes more.")
    if able := sum(c.forcible for c in files.conflicts):
        again = f"quintet undo {done.thread.id}{' --redo' if redo else ''} --force"
        which = "what was left alone" if able == len(files.conflicts) else f"{able} of what was left alone"
        screen.note(f"`{again}` brings back {which} too; what stands there now is kept where it can be.")
    if late := sum(c.by_name for c in files.conflicts):
        what = "a file" if late == 1 else f"{late} files"
        screen.note(
            f"Left alone: {what} that may be yours. `quintet undo {done.thread.id} --also PATH` takes one back."
        )
    return code


def _tell_files(screen: Screen, files: Undone) -> None:
    """One line per path."""
    why = {c.path: safe_line(c.why) for c in files.conflicts}
    words = ("would restore", "would remove") if files.dry_run else ("restored", "removed")
    width = 15 if files.dry_run else 12
    for back in files.restored:
        not_further = f": not further, {why.pop(back.path)}" if back.path in why else ""
        screen.line(f"{words[back.removed]:<{width}}{safe_line(back.path)}{not_further}")
    for path, reason in why.items():
        screen.line(f"{'left alone':<{width}}{safe_line(path)}: {reason}")


def _kept(done: Reverted) -> int:
    hidden = done.thread.view.reverted
    return hidden[0] - 1 if hidden else done.thread.last_ordinal

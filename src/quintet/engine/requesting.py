"""Requesting: what the model of a turn would be asked now: its instructions, what it has been told, its tools."""

from __future__ import annotations

from quintet.domain.model import ModelRequest
from quintet.domain.surroundings import Surroundings
from quintet.engine.candidates import Candidates
from quintet.engine.context import Context
from quintet.engine.prompt import system_text
from quintet.engine.recalling import Remembered
from quintet.engine.running import RunningTurn


class Requesting:
    def __init__(
        self,
        running: RunningTurn,
        models: Candidates,
        context: Context,
        around: Surroundings,
        remembered: Remembered,
        told_late: str = "",
    ) -> None:
        self._running = running
        self._models = models
        self._context = context
        self._around = around
        self._remembered = remembered
        self._told = "\n\n".join(filter(None, (running.starter.told, told_late)))

    def request(self) -> ModelRequest:
        starter = self._running.starter
        return ModelRequest(
            model=self._models.model.partition("/")[2],
            instructions=self._prompt(),
            items=starter.spellings.respelled(self._context.for_model()),
            tools=self._running.specs(),
            thread=self._running.thread.id,
            restarts=starter.restarts,
            effort=starter.effort,
        )

    def _prompt(self) -> str:
        running, form = self._running, self._running.starter.answer_form
        return system_text(
            running.agent,
            self._around,
            project=running.project.instructions,
            plan_mode=running.planning,
            subagent=running.above is not None,
            answer_form=form.words if form else "",
            told=self._told,
            memory=self._remembered.text,
            missing=self._remembered.problem,
            named=running.starter.spellings.name_of,
        )

"""Candidates: the models of one turn in the order they are tried. One that failed is not asked again in this turn."""

from __future__ import annotations

from quintet.domain.errors import NotConfigured
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Models


class Candidates:
    def __init__(self, models: Models, reference: str) -> None:
        self._models = models
        self.model, self.provider = models.resolve(reference)
        self._others = list(models.info(self.model).fallback)

    @property
    def info(self) -> ModelInfo:
        """What is known of the model in use."""
        return self._models.info(self.model)

    def fall_back(self) -> bool:
        """Go on to the next model that can be used; False when there is none."""
        while self._others:
            try:
                self.model, self.provider = self._models.resolve(self._others.pop(0))
            except NotConfigured:
                continue
            return True
        return False

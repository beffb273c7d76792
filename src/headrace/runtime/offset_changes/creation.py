"""The steps in which a connector is created with offsets (KIP-995), as its errors tell them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum

from headrace.runtime.herder.errors import RequestError


class CreationStep(Enum):
    """A step's number and what it does."""

    VALIDATING_CONFIG = (1, "validating the config")
    VALIDATING_OFFSETS = (2, "validating the offsets")
    WIPING_OFFSETS = (3, "wiping existing offsets")
    SETTING_OFFSETS = (4, "setting the initial offsets")
    WRITING_CONFIG = (5, "writing the config")


InStep = Callable[[CreationStep], AbstractContextManager[None]]
"""Tells errors with the step in which they happen."""


@contextmanager
def creation_step(connector: str, step: CreationStep) -> Generator[None]:
    """Have every request error in the block say that it happened in *step* of creating *connector*.

    Its status and text stay. Called by the herder for step 1, and by the change of offsets for the others;
    only for creations with offsets.
    """
    try:
        yield
    except RequestError as error:
        raise told_with_step(error, connector, step) from error


def told_with_step(error: RequestError, connector: str, step: CreationStep) -> RequestError:
    """*error* with the step in which creating *connector* failed."""
    number, doing = step.value
    told = copy.copy(error)
    told.args = (f"{error} (creating connector {connector} failed at step {number}: {doing})",)
    return told


def no_step(_: CreationStep) -> AbstractContextManager[None]:
    """For changes that are no creation: errors are told as they are."""
    return nullcontext()

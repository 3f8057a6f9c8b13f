"""The user's function: load it, check it, and apply it to messages."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.session import reason_of


if TYPE_CHECKING:
    from types import ModuleType

Function = Callable[[DataFrame], DataFrame]

_WANTED: Final = (
    "--function takes module:name or path.py:name, a function DataFrame -> DataFrame"
)
_REASON_CHARS: Final = 500


def load_function(text: str) -> Function:
    """Return the function named by `module:name` or `path.py:name`.

    Definitions in a file travel to the executors automatically; a module must be installed there.

    Raises:
        RequestError: it cannot be imported, or has no such function.
    """
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise RequestError(f"{_WANTED}, not {text!r}")
    if place.endswith(".py") and not Path(place).is_file():
        raise RequestError(f"{_WANTED}: there is no file {place}")
    try:
        is_file = place.endswith(".py")
        module: Any = _of_file(Path(place)) if is_file else importlib.import_module(place)
    except Exception as error:
        raise RequestError(f"{_WANTED}: {place} cannot be imported: {told(error)}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise RequestError(f"{_WANTED}: there is no function {name!r} in {place}")
    return function  # type: ignore[no-any-return]


def _of_file(path: Path) -> "ModuleType":
    name = f"streamfrom_function_{path.stem}"  # a file may be named like a module
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def applied(function: Function, messages: DataFrame) -> DataFrame:
    """Return the result of *function* for *messages*.

    Raises:
        JobError: it is no DataFrame.
        Exception: any error of the function.
    """
    result = function(messages)
    if not isinstance(result, DataFrame):
        raise JobError(
            f"the function returned {type(result).__name__} where a DataFrame is wanted"
        )
    return result


def run_through(frame: DataFrame) -> None:
    """Compute all of *frame* and discard it."""
    frame.write.format("noop").mode("overwrite").save()


def checked(function: Function, empty: DataFrame) -> DataFrame:
    """Return the result of *function* for no messages, which shows its columns.

    Raises:
        RequestError: the function fails, or returns no DataFrame, or columns with ambiguous names.
    """
    try:
        result = applied(function, empty)
        run_through(result)
    except Exception as error:
        raise RequestError(
            f"--function fails where there are no messages: {told(error)}; it must take any number of"
            f" them, with the columns {', '.join(empty.columns)}"
        ) from error
    names = [name.lower() for name in result.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        raise RequestError(
            f"--function returns {'no columns' if not names else f'two columns {twice[0]!r}'}: select"
            " what the sink is to have"
        )
    return result


def told(error: Exception) -> str:
    """Return an error as one short line."""
    return " ".join(reason_of(error).split())[:_REASON_CHARS]

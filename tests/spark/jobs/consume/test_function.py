"""The user's function, found and tried."""

import pytest

from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.consume.function import checked, load_function
from tests.spark.jobs.consume.functions import FUNCTIONS, broken, kept, nothing, twice


def load(text):
    return load_function(text)


def test_a_function_of_a_module_or_of_a_file_is_found():
    assert load("os.path:join")("a", "b") == "a/b"
    again = load(f"{FUNCTIONS}:kept"), load(f"{FUNCTIONS}:kept")
    assert [function.__name__ for function in again] == ["kept", "kept"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("function", "module:name or path.py:name"),
        (":f", "module:name or path.py:name"),
        ("absent.module:f", "No module named 'absent'"),
        ("absent.py:f", "there is no file absent.py"),
        (f"{FUNCTIONS}:absent", "no function 'absent'"),
        (f"{FUNCTIONS}:NO_FUNCTION", "no function 'NO_FUNCTION'"),
    ],
)
def test_what_is_not_there_is_told_with_what_is_wanted(text, said):
    with pytest.raises(RequestError, match=said) as told:
        load(text)
    assert "--function takes" in str(told.value)


def test_a_file_that_fails_is_told(tmp_path):
    path = tmp_path / "json.py"
    path.write_text("1 / 0")
    with pytest.raises(RequestError, match="ZeroDivisionError"):
        load(f"{path}:f")
    path.write_text("def f(frame): return frame")
    assert load(f"{path}:f")(3) == 3


@pytest.mark.spark
def test_a_function_is_tried_without_messages_before_any_is_taken(spark):
    empty = spark.createDataFrame([], "id bigint, word string")
    assert checked(kept, empty).columns == ["id", "word"]
    for function, said in (
        (nothing, "returned NoneType where a DataFrame is wanted"),
        (broken, r"nonsense.*with the columns id, word"),
        (twice, "two columns 'id'"),
        (lambda frame: frame.select(), "no columns"),
    ):
        with pytest.raises(RequestError, match=said) as told:
            checked(function, empty)
        assert "\n" not in str(told.value)


@pytest.mark.spark
def test_helpers_of_a_file_are_found_on_executors(spark):
    frame = spark.createDataFrame([(1, "a")], "id bigint, word string")
    assert load(f"{FUNCTIONS}:shouted")(frame).collect() == [(1, "A")]

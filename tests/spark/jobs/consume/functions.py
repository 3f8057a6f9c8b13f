"""Functions as users write them."""

from pyspark.sql import functions as F


FUNCTIONS = __file__


def kept(messages):
    """Fails on what says that it is poison, when it is computed."""
    failing = F.raise_error(F.lit("this one is poison"))
    word = F.when(messages.word == "poison", failing).otherwise(messages.word)
    return messages.select("id", word.alias("word"))


def shouted(messages):
    """Runs Python on the executors."""
    from pyspark.sql.types import StringType

    return messages.select("id", F.udf(shout, StringType())("word").alias("word"))


def shout(word):
    return word.upper()


def nothing(messages):
    """Forgets to return."""


def broken(messages):
    return messages.select("nonsense")


def twice(messages):
    return messages.select("id", messages.word.alias("ID"))


NO_FUNCTION = 7

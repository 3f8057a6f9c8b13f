"""Random texts by a grammar: each name has forms, of which any may stand for it."""

import random
import re
from collections.abc import Mapping, Sequence


NAME = re.compile(r"\{(\w+)\}")


class Forms:
    """Writes texts. In a form, `{name}` is what is given for that name, or one of its own forms, each time another."""

    def __init__(self, dice: random.Random, forms: Mapping[str, Sequence[str]]) -> None:
        self.dice = dice
        self._forms = forms

    def say(self, name: str, **given: str) -> str:
        """Return one of the forms of *name*, written out."""
        return self.fill(self.dice.choice(self._forms[name]), **given)

    def fill(self, form: str, **given: str) -> str:
        """Return *form*, written out."""

        def part(found: re.Match[str]) -> str:
            name = found[1]
            return given[name] if name in given else self.say(name, **given)

        return NAME.sub(part, form)

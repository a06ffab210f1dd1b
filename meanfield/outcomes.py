"""What can become of a run: one enumeration whose members explain themselves."""

from enum import Enum
from typing import Self

from theory.errors import InputError


class Outcome(Enum):
    """The outcome of a run, measured or simulated; the parts are never merged.

    Attributes
    ----------
    word : str
        The word in tables and on command lines.
    code : int
        The int8 code in Datasets.
    sentence : str
        What is shown to the user.

    Source: ours; the rules that give a measured run its outcome are those of `meanfield.labels`.

    >>> Outcome.from_word("collapsed").sentence
    'The run collapsed and did not come back.'
    """

    STABLE = ("stable", 0, "The run stayed healthy to the end of its horizon.")
    DEGRADED = ("degraded", 1, "The run lost much of its reward, or lost it for a time, without a collapse.")
    COLLAPSED = ("collapsed", 2, "The run collapsed and did not come back.")
    FAILED = ("failed", 3, "The numerics or the machine failed; this says nothing about stability.")
    UNKNOWN = ("unknown", 4, "What became of the run is not known.")

    word: str
    code: int
    sentence: str

    def __init__(self, word: str, code: int, sentence: str) -> None:
        self.word = word
        self.code = code
        self.sentence = sentence

    @classmethod
    def from_word(cls, word: str) -> Self:
        """Return the outcome with this word; raises InputError on an unknown one.

        >>> Outcome.from_word("stable").code
        0
        """
        for member in cls:
            if member.word == word:
                return member
        words = ", ".join(member.word for member in cls)
        raise InputError("outcome", "be a known word", repr(word), f"Use one of: {words}.")

    @classmethod
    def from_code(cls, code: int) -> Self:
        """Return the outcome with this int8 code; raises InputError on an unknown one.

        >>> Outcome.from_code(2).word
        'collapsed'
        """
        for member in cls:
            if member.code == code:
                return member
        codes = ", ".join(f"{member.code} ({member.word})" for member in cls)
        raise InputError("outcome code", "be a known code", code, f"Use one of: {codes}.")

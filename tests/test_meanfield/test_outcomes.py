import pytest

from meanfield.outcomes import Outcome
from theory.errors import InputError


def test_words_and_codes_are_the_published_ones():
    assert [(member.word, member.code) for member in Outcome] == [
        ("stable", 0),
        ("degraded", 1),
        ("collapsed", 2),
        ("failed", 3),
        ("unknown", 4),
    ]


@pytest.mark.parametrize("outcome", Outcome)
def test_word_and_code_lead_back(outcome):
    assert Outcome.from_word(outcome.word) is outcome
    assert Outcome.from_code(outcome.code) is outcome


def test_sentences_are_sentences_and_differ():
    sentences = [member.sentence for member in Outcome]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence.endswith(".") for sentence in sentences)


def test_unknown_word_and_code():
    with pytest.raises(InputError, match=r"outcome must be a known word, got 'dead'\. Use one of: stable, degraded"):
        Outcome.from_word("dead")
    with pytest.raises(InputError, match=r"outcome code must be a known code, got 7\. Use one of: 0 \(stable\)"):
        Outcome.from_code(7)

"""TF-IDF weights of texts whose words a model file holds as one text."""

from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer

# Stands in no word: what words are made of is letters and figures, and pairs have a blank between them.
BETWEEN = "\n"


class Words(TfidfVectorizer):
    """TF-IDF weights of words; it is kept with one text of all its words in their order.

    A model file has a node for each entry of a dictionary. For 50,000 words, writing and reading these took longer than
    fitting the model.
    """

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, of the vocabulary only the words."""
        state: dict[str, Any] = dict(super().__getstate__())
        if (numbers := state.get("vocabulary_")) is not None:
            state["vocabulary_"] = BETWEEN.join(sorted(numbers, key=numbers.__getitem__))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Number the words again."""
        if (words := state.get("vocabulary_")) is not None:
            state = {**state, "vocabulary_": {word: i for i, word in enumerate(words.split(BETWEEN))}}
        super().__setstate__(state)

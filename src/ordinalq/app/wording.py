"""Messages of the library in the words of the page: what it calls parameters are fields here."""

import re

# Parameters as messages write them, and what the page calls them.
WORDS = {
    r"skip_unlabelled=True": "the tick that leaves out rows without a class",
    r"(?:give )?all (?:of them|classes) in (?:ascending )?order, classes=\[\.\.\.\]": "put the classes in order",
    r"(?:name it in )?classes=\[\.\.\.\]": "put the classes in order",
    r"name (?:it|the column|some|other columns) (?:in|with) (?:(?:features|text|categories)=\[\.\.\.\](?: or )?)+": (
        "choose what the column is used as"
    ),
    r"(?:features|text|categories)=\[\.\.\.\]": "what the columns are used as",
    r"(?:give )?quoting='none'": "choose that quotes are plain characters",
    r"name its format with dates=\{[^}]*\}": "write them as 2024-01-31",
    r"if you know who made them, [^;]*trusted=\[\.\.\.\]": "only the command line can be told to trust them",
}


def on_page(message: str) -> str:
    """Return a message in the words of the page.

    >>> on_page("fill it, or use skip_unlabelled=True.")
    'fill it, or use the tick that leaves out rows without a class.'
    >>> on_page("is no text; name it in text=[...] or categories=[...] to keep it")
    'is no text; choose what the column is used as to keep it'
    """
    for pattern, words in WORDS.items():
        message = re.sub(pattern, words, message)
    return message

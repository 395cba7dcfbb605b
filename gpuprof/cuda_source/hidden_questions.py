# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Conditions that would ask whether a file is there, in words that macros make.

`__has_include` may be the value of a macro, or be pasted together by `##`, and so may what it asks about.
What a condition comes to is not worked out: what its macros hold, and the macros in these, is gathered.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain

#: A question that is written out.
ASKS = re.compile(
    r'(?P<word>__has_(?:include|embed)\w*)\s*\((?P<name>\s*(?:"[^"\n]{0,500}"|<[^>\n]{0,500}>)\s*|[^()]*)\)?'
)
#: Whether a condition hides a question.
Hidden = Callable[[str], bool]

_QUESTIONS = ("__has_include", "__has_embed")
#: What can be a part of one's word.
_PIECES = frozenset(
    word[begin:end]
    for word in _QUESTIONS
    for begin in range(len(word))
    for end in range(begin + 1, len(word) + 1)
)
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*\w+\s*\)|\w+)")
_WORD = re.compile(r"[^\W\d]\w*")


def hidden_questions(definitions: Iterable[tuple[str, str]]) -> Hidden:
    """Tells the conditions that may ask about a file in other words than `ASKS` finds."""
    held: dict[str, set[str]] = defaultdict(set)
    users: dict[str, list[str]] = defaultdict(list)
    for name, value in definitions:
        held[name] |= _marks(value)
        for word in set(_WORD.findall(value)):
            users[word].append(name)
    pending = list(held)
    while pending:  # each gains a mark only so often
        name = pending.pop()
        for user in users.get(name, ()):
            if not held[name] <= held[user]:
                held[user] |= held[name]
                pending.append(user)

    def hides(condition: str) -> bool:
        plain = _DEFINED.sub(" ", ASKS.sub(" ", condition))
        marks = _marks(plain).union(*(held.get(word, ()) for word in _WORD.findall(plain)))
        # No other condition holds a text; the name in brackets could be a comparison.
        return '"' in marks or ("<" in marks and any(_spelled(word, marks) for word in _QUESTIONS))

    return hides


def _marks(text: str) -> set[str]:
    """What of a text may take part in a question."""
    text = ASKS.sub(" ", text)
    words = set(_WORD.findall(text))
    spelled = (question for question in _QUESTIONS if any(question[2:] in word.lower() for word in words))
    return {*chain(_PIECES & words, spelled), *(mark for mark in '"<' if mark in text)}


def _spelled(word: str, pieces: set[str]) -> bool:
    """Whether a word is a chain of pieces."""
    reached = {0}
    for end in range(1, len(word) + 1):
        if any(word[begin:end] in pieces for begin in reached):
            reached.add(end)
    return len(word) in reached

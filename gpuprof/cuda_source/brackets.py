# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Bracketed parts of masked code: where one ends, and code without them."""

import re

_BRACKETS = re.compile(r"[()\[\]{}<>]")
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
#: The longest list of parameters that anybody writes.
_LONGEST = 20_000
#: Lists that do not end, after which a file is not looked at any further.
_MOST_UNCLOSED = 16
_TEMPLATE = re.compile(r"\btemplate\s*(?=<)")


def end_of(code: str, position: int) -> int | None:
    """Where the bracket at a position is closed: behind the closing one; None where it is not nearby.

    An angle bracket counts only where the one at the position is an angle bracket, and outside of others.
    """
    angles = code[position] == "<"
    others = 0
    awaited: list[str] = []
    for match in _BRACKETS.finditer(code, position, position + _LONGEST):
        mark = match[0]
        if mark in "<>":
            if not angles or others:
                continue
        else:
            others += 1 if mark in _PAIRS else -1
        if mark in _PAIRS:
            awaited.append(_PAIRS[mark])
        elif awaited.pop() != mark:
            return None
        if not awaited:
            return match.end()
    return None


def without_parentheses(code: str) -> str:
    """Code with an empty pair in the place of each parenthesised part."""
    parts, depth, position = [], 0, 0
    for match in re.finditer(r"[()]", code):
        if match[0] == "(":
            if depth == 0:
                parts.append(code[position : match.end()])
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                position = match.start()
    return "".join(parts) + (code[position:] if depth == 0 else "")


def without_template_lists(code: str) -> tuple[str, list[str]]:
    """Code without the `template <…>` in it, and what stood between each one's angle brackets."""
    lists, kept, position, unclosed = [], [], 0, 0
    for match in _TEMPLATE.finditer(code):
        if match.start() < position:
            continue
        end = end_of(code, match.end())
        if end is None:
            unclosed += 1
            if unclosed == _MOST_UNCLOSED:
                break
            continue
        lists.append(code[match.end() + 1 : end - 1])
        kept.append(code[position : match.start()])
        position = end
    return "".join((*kept, code[position:])), lists


def split_list(text: str) -> list[str]:
    """The parts of a list between commas that stand in no brackets; none of an empty text."""
    parts, depth, begin = [], 0, 0
    for match in re.finditer(r"[()\[\]{}<>,]", text):
        if match[0] == "," and depth <= 0:
            parts.append(text[begin : match.start()])
            begin = match.end()
        elif match[0] in _PAIRS:
            depth += 1
        elif match[0] != ",":
            depth -= 1
    parts.append(text[begin:])
    return [part.strip() for part in parts] if text.strip() else []

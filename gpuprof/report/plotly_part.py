# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The part of Plotly that a page needs: its core, which draws lines and points, and bars.

Plotly's package ships one bundle with all its kinds of charts; a page weighs a quarter without the others.
"""

import re
from collections import Counter

#: A module as esbuild wraps it: `var NAME=WRAPPER((exports,module)=>{…});`; who needs it calls `NAME()`.
_MODULE = re.compile(r"(?<=[;}])var (?:[\w$]+,)*([\w$]+)=([\w$]+)\((?=\(|[\w$]+=>)")
_CALLS = re.compile(r"[\w$]+(?=\(\))")
#: What the last module adds to the core, and how the kind of chart to add is known.
_REGISTERED = re.compile(r"\.register\(\[[\w$(),]*\]\)")
_BARS = 'moduleType:"trace",name:"bar"'


def plotly_part(bundle: str) -> str:
    """Plotly's bundle without the modules that nobody calls when bars alone are registered.

    A bundle of another build is returned as it is. Names of modules are unique in it.
    """
    found = [(match[1], match[2], match.start()) for match in _MODULE.finditer(bundle)]
    wrappers = [name for name, _ in Counter(wrapper for _, wrapper, _ in found).most_common(2)]
    starts: list[int] = []
    place: dict[str, int] = {}
    for name, wrapper, start in found:
        # The functions of an ES module stand before its wrapper: it goes with the CommonJS module before.
        if wrapper == wrappers[0]:
            starts.append(start)
        if wrapper in wrappers and starts:
            place[name] = len(starts) - 1
    end = bundle.find("return ", starts[-1]) if starts else -1
    texts = [bundle[start:stop] for start, stop in zip(starts, [*starts[1:], end], strict=False)]
    bars = [name for name, index in place.items() if _BARS in texts[index]]
    if end < 0 or len(bars) != 1 or not _REGISTERED.search(texts[-1]):
        return bundle
    texts[-1] = _REGISTERED.sub(f".register([{bars[0]}()])", texts[-1])
    needed: set[int] = set()
    waiting = [len(texts) - 1]
    while waiting:
        index = waiting.pop()
        if index not in needed:
            needed.add(index)
            waiting.extend(place[name] for name in _CALLS.findall(texts[index]) if name in place)
    return bundle[: starts[0]] + "".join(texts[index] for index in sorted(needed)) + bundle[end:]

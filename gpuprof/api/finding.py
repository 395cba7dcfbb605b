# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a run, a comparison and a fleet share: cases found by their attributes, and tables that show them."""

from collections.abc import Iterator, Mapping
from numbers import Integral
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from gpuprof.case_parts import size_label
from gpuprof.errors import InputError, did_you_mean
from gpuprof.text import in_xyz, listed

if TYPE_CHECKING:
    from gpuprof.report.document import Document

C = TypeVar("C")


def told(path: str, text: str) -> Any:
    """A property that is an attribute of something within, with what it means."""
    return property(attrgetter(path), doc=text)


class ShownAsTables:
    """Something that a report tells of in tables."""

    def _report(self) -> "Document":
        raise NotImplementedError

    def to_markdown(self) -> str:
        """The tables as Markdown."""
        from gpuprof.report.markdown import markdown_of

        return markdown_of(self._report())

    def _repr_html_(self) -> str:
        """What a notebook shows: compact tables."""
        from gpuprof.report.document_page import render_notebook

        return render_notebook(self._report())


class CaseFinder(Generic[C]):
    """Something that has cases."""

    #: Attributes of cases with all that they can be.
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @property
    def cases(self) -> tuple[C, ...]:
        """Every case."""
        raise NotImplementedError

    def find(self, **wanted: Any) -> tuple[C, ...]:
        """The cases whose attributes have these values.

        Args:
            wanted: For example `kernel="reg_8x8"`, `ok=False` or, of a comparison, `verdict="regressed"`.
                Sizes and blocks as `profile` takes them: `size=4096`, `block=(32, 8)`. Of a mapping the items
                that are named must agree: `params={"BK": 16}` fits whatever the other parameters are.

        Raises:
            AttributeError: Cases have no such attribute.
            InputError: No case can ever be so.
        """
        for name, words in self.words.items():
            if (word := wanted.get(name, words[0])) not in words:
                known = f"It is one of {', '.join(words)}."
                raise InputError(f"No case has {name}={word!r}.", fix=did_you_mean(str(word), words, known))
        return tuple(
            case
            for case in self.cases
            if all(_agrees(getattr(case, name), value) for name, value in wanted.items())
        )

    def case(self, kernel: str | None = None, **wanted: Any) -> C:
        """The one case of a kernel, or that these attributes single out.

        Raises:
            InputError: None or several fit.
        """
        asked = wanted if kernel is None else {"kernel": kernel, **wanted}
        found = self.find(**asked)
        if len(found) != 1:
            text = ", ".join(f"{name}={value!r}" for name, value in asked.items()) or "no condition"
            if not found:
                names = {str(getattr(case, "kernel", "")) for case in self.cases}
                raise InputError(
                    f"No case fits {text}.", fix=f"There are cases of {listed(sorted(names), 6)}."
                )
            held = "; ".join(repr(case) for case in found[:6])
            raise InputError(f"{len(found)} cases fit {text}.", fix=f"Say which one, or use find(): {held}.")
        return found[0]

    def __len__(self) -> int:
        """Number of cases."""
        return len(self.cases)

    def __iter__(self) -> Iterator[C]:
        """Go through the cases."""
        return iter(self.cases)


def _agrees(found: Any, wanted: Any) -> bool:
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        return wanted.items() <= found.items()
    if isinstance(wanted, (Integral, tuple)) and isinstance(found, (str, tuple)):
        extents = wanted if isinstance(wanted, tuple) else (wanted,)
        return bool(found == (size_label(extents) if isinstance(found, str) else in_xyz(extents, 1)))
    return bool(found == wanted)

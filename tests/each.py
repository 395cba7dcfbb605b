# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Many small cases in one test: `pytest.mark.parametrize` for what is worth no id of its own."""

import inspect
import itertools
from collections.abc import Callable, Iterable

import pytest


def each(**values: Iterable[object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every combination of values, to the end; a failure names all that failed, by id if any.

    It is skipped where one combination is and none fails.
    """

    def one_test(test: Callable[..., None]) -> Callable[..., None]:
        listed = {name: list(these) for name, these in values.items()}
        assert all(listed.values()), f"{test.__name__} has no cases"

        def run(**fixtures: object) -> None:
            failures, skipped = [], None
            combinations = list(itertools.product(*listed.values()))
            for combination in combinations:
                case = dict(zip(listed, combination, strict=True))
                try:
                    test(**case, **fixtures)
                except pytest.skip.Exception as reason:
                    skipped = reason
                except (Exception, pytest.fail.Exception) as failure:
                    told = [f"{name}={getattr(value, 'id', value)}" for name, value in case.items()]
                    failure.add_note(f"where {', '.join(told)}")
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(combinations)} cases", failures)
            if skipped:
                raise skipped

        asked = inspect.signature(test).parameters.values()
        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        run.__signature__ = inspect.Signature([one for one in asked if one.name not in listed])
        return run

    return one_test

"""Short cases of one rule as one test, which names each of them that fails."""

import pytest


def together(cases, by=lambda *_: "all"):
    """Parametrize by groups of cases, as `pytest.mark.parametrize` does by single ones.

    Each test of pytest takes more than a millisecond, which is more than most of these need.
    """
    groups = {}
    for case in cases:
        case = case if isinstance(case, tuple) else (case,)
        groups.setdefault(by(*case), []).append(case)

    def decorate(check):
        def test(group):
            failed = {}
            for case in groups[group]:
                try:
                    check(*case)
                except (Exception, pytest.fail.Exception) as error:
                    failed[", ".join(map(str, case))] = error
            if failed:
                words = (f"{case}: {type(why).__name__}: {why}" for case, why in failed.items())
                raise AssertionError("\n\n".join(words)) from next(iter(failed.values()))

        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(test, name, getattr(check, name))
        return pytest.mark.parametrize("group", groups)(test)

    return decorate

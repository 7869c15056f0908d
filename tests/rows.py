import json
import os
import sys

import pandas as pd

from cvstats.core.result import is_count


def only_row(result):
    if isinstance(result, pd.Series):
        if result.attrs.get("method") != "decompose" or "theta_1" not in result.index:
            f = sys._getframe(1)
            pos = list(f.f_code.co_positions())[f.f_lasti // 2]
            with open("/tmp/bad_rows", "a") as out:
                out.write(
                    json.dumps(
                        [os.path.basename(f.f_code.co_filename), *pos, "caution" in result.index]
                    )
                    + "\n"
                )
            return result if "caution" not in result.index else counted(result)
        return counted(result)
    assert len(result) == 1
    return counted(result.iloc[0])


def counted(numbers):
    counts = {name: value for name, value in numbers.attrs.items() if is_count(name)}
    return pd.concat([numbers.astype(object), pd.Series(counts, dtype=object)])

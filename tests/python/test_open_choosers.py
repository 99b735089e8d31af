# SPDX-License-Identifier: Apache-2.0
"""A chooser that is not known before a call says nothing of stages. It refuses no rule that a call would take."""

import elsewise as ew
import numpy as np
import pytest


@pytest.mark.parametrize("chooser", ["f", "not f", "f or not f"])
@pytest.mark.parametrize("joined", ["w", "max(0, w)", "w + 1", "5 - w", "abs(w)", "where(g, w, 1)"])
def test_a_whole_number_chosen_by_a_parameter_is_a_scalar(chooser: str, joined: str) -> None:
    kernel = ew.kernel(f"let w = where({chooser}, 2, 3)\nu32(x) + {joined}")
    x = np.arange(5, dtype=np.uint32)
    arguments = {"g": True} if "g" in joined else {}
    assert kernel(x, f=True, **arguments).dtype == np.uint32


def test_what_varies_has_no_dtype_in_common_at_the_call() -> None:
    kernel = ew.kernel("x + where(f, 2, 3)")
    with pytest.raises(ew.SpecError, match="no dtype in common"):
        kernel(np.arange(5, dtype=np.uint32), f=np.array([True] * 5))

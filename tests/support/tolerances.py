"""Named tolerances, each with its reason."""

CLOSED_FORM = 1e-12
"""A closed form against the same thing computed another way in float64: some thousand roundings of 1e-16."""

LIMIT = 1e-9
"""A limit taken at a small parameter of 1e-5, whose error is of second order in it."""

ROUNDED = 0.5
"""A number that was written down rounded to a whole one."""

"""The hand-written body of the integrator; a compiled model joins its own functions to it."""

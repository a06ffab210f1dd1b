"""An explorer of drift models: a phase diagram that answers to sliders, `python -m meanfield.explore`."""

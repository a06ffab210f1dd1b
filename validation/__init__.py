"""The real learner: asynchronous GRPO on small tasks, measured so that the theory can be held against it.

Nothing is imported here: reading and comparing saved sweeps must work without torch.
"""

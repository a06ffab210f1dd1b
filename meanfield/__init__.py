"""Numbers from the theory: simulate, label, calibrate, recommend, predict. No torch.

Import the module you need by its path (`from meanfield.simulate import simulate`); this file loads nothing.
"""

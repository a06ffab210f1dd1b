"""The simulation engine: any symbolic drift model as compiled code."""

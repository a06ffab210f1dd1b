"""Other engines on the toy, one file each: `run(sets)` gives x at the end, `exits(sets, radius)` eta*t at the exit."""

"""Slow, obvious twins: plain loops, no shortcut, no kernel."""

import math

from scipy.integrate import solve_ivp


def memory_path(kappa, h, u0, num_cycles):
    """u_0, u_1, ... of u -> tanh(h + kappa*u)."""
    memory = [u0]
    while len(memory) < num_cycles:
        memory.append(math.tanh(h + kappa * memory[-1]))
    return memory


def exit_clock(product, *, C, R, h, u0, num_cycles):
    """eta*t at which the displacement reaches R, walking every cycle; inf if it does not."""
    u, x = u0, 0.0
    for cycle in range(num_cycles):
        if u > 0.0 and x + product * u >= R:
            return (cycle * product if cycle else 0.0) + (R - x) / u
        x += product * u
        u = math.tanh(h + product * u / C)
    return math.inf


def collapse_step(S, eta, *, C, R, h, u0, horizon):
    """First optimizer step at which the displacement is at least R, walking every step; None if none is.

    The update of a step is eta*u. At a sync the displacement since the last one, over C, feeds back on u.
    """
    u, x, since_sync = u0, 0.0, 0.0
    for step in range(1, horizon + 1):
        if step > 1 and (step - 1) % S == 0:
            u = math.tanh(h + since_sync / C)
            since_sync = 0.0
        x += eta * u
        since_sync += eta * u
        if x >= R:
            return step
    return None


def persistent_exit(product, *, a, s, rho, h, m0, R, R_batch, num_cycles, rtol):
    """(eta*t at exit, code): every cycle integrated by a general solver, the exit found as its event."""
    m, x = m0, 0.0
    for cycle in range(num_cycles):

        def flow(_, state, m=m):
            return [math.tanh(h + m + a * state[0])]

        def leaves(_, state, x=x):
            return x + state[0] - R

        leaves.terminal = True
        solved = solve_ivp(flow, (0.0, product), [0.0], events=leaves, rtol=rtol, atol=1e-14, method="DOP853")
        if solved.t_events[0].size:
            return cycle * product + solved.t_events[0][0], 2
        d = solved.y[0, -1]
        if d >= R_batch:
            return (cycle + 1) * product, 1
        x, m = x + d, rho * m + s * d
    return math.inf, 0

"""How old the gradients of a run are, and what the optimizer does with them."""

from dataclasses import dataclass

from theory.errors import InputError


@dataclass(frozen=True)
class Periodic:
    """Every gradient is taken at the last sync; the lag goes 0, 1, ..., S - 1 and starts again.

    Parameters
    ----------
    sync_interval : int
        S [optimizer steps], 1 or more.
    """

    sync_interval: int

    def __post_init__(self) -> None:
        _whole("sync_interval", self.sync_interval, 1, "A sync after every step is 1.")


@dataclass(frozen=True)
class Late:
    """Every gradient is taken some syncs before the last: lags d*S to (d + 1)*S - 1, with d the cycles late.

    Parameters
    ----------
    sync_interval : int
        S [optimizer steps], 1 or more.
    cycles_late : int
        0 or more; 0 is the periodic schedule.
    """

    sync_interval: int
    cycles_late: int

    def __post_init__(self) -> None:
        _whole("sync_interval", self.sync_interval, 1, "A sync after every step is 1.")
        _whole("cycles_late", self.cycles_late, 0, "Generation that waits for the sync is 0 cycles late.")


@dataclass(frozen=True)
class Fixed:
    """Every gradient is equally old.

    Parameters
    ----------
    lag : int
        Age [optimizer steps], 0 or more.
    """

    lag: int

    def __post_init__(self) -> None:
        _whole("lag", self.lag, 0, "A fresh gradient has lag 0.")


@dataclass(frozen=True)
class Mixed:
    """Every batch mixes the lags 0 to S - 1 in equal parts.

    Parameters
    ----------
    sync_interval : int
        S [optimizer steps], the number of lags, 1 or more.
    """

    sync_interval: int

    def __post_init__(self) -> None:
        _whole("sync_interval", self.sync_interval, 1, "A batch of one lag is 1.")


@dataclass(frozen=True)
class Weights:
    """Every batch mixes lags in these parts.

    Parameters
    ----------
    weights : tuple of float
        The part of lag 0, of lag 1, and so on; none below 0, their sum 1.
    """

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.weights or not all(weight >= 0.0 for weight in self.weights):
            raise InputError("weights", "be parts of 0 or more", self.weights, "Give the share of each lag from lag 0.")
        if not abs(sum(self.weights) - 1.0) <= 1e-9:
            raise InputError("weights", "sum to 1", sum(self.weights), "Divide the counts of the lags by their sum.")


Schedule = Periodic | Late | Fixed | Mixed | Weights


@dataclass(frozen=True)
class NoMomentum:
    """The plain step, x <- x - eta*g."""


@dataclass(frozen=True)
class Ema:
    """The mean of past gradients, as in Adam: m <- beta*m + (1 - beta)*g, then x <- x - eta*m.

    Parameters
    ----------
    beta : float
        In [0, 1).
    """

    beta: float

    def __post_init__(self) -> None:
        _kept("beta", self.beta)


@dataclass(frozen=True)
class HeavyBall:
    """The sum of past gradients: v <- mu*v + g, then x <- x - eta*v.

    Parameters
    ----------
    mu : float
        In [0, 1).
    """

    mu: float

    def __post_init__(self) -> None:
        _kept("mu", self.mu)


Momentum = NoMomentum | Ema | HeavyBall


def _whole(argument: str, value: int, least: int, way_out: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(argument, f"be an integer >= {least}", value, way_out)


def _kept(argument: str, value: float) -> None:
    if not 0.0 <= value < 1.0:
        raise InputError(argument, "be in [0, 1)", value, "A step without momentum is NoMomentum().")

"""Linear stability with delayed gradients: schedules, exact thresholds, momentum, weight decay."""

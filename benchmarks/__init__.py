"""Speed side by side with other engines, in one run, as ratios; no part of the three packages."""

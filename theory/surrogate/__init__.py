"""The GRPO surrogate: definition, exact enumeration on small policies, and the bias of stale samples."""

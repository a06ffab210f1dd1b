"""Small experiments for tests of the learner, the store and the commands."""

from validation.config import Experiment, GrpoConfig, PolicyConfig, TaskConfig


def small_experiment() -> Experiment:
    """A sweep of eight runs that trains in a second."""
    return Experiment(
        name="small",
        sync_interval=(1, 4),
        learning_rate=(1e-3, 4e-3),
        seed=(0, 1),
        max_steps=12,
        num_eval_prompts=16,
        task=TaskConfig(num_symbols=5, length=3),
        policy=PolicyConfig(hidden_size=16, pretrain_reward=0.3),
        grpo=GrpoConfig(num_prompts=4, num_generations=4),
    )

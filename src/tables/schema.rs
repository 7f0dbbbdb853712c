//! The columns of all tables: name, type, unit, meaning, and where the value stands in a row, which is an event or a JSON document
//! like one. `docs/reference/tables.md` is written from them.

use serde_json::{Value, json};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// An `int64`.
    Integer,
    /// A `double`.
    Number,
    /// A string. Values other than texts are written as JSON.
    Text,
    /// A `boolean`.
    Flag,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: CellKind,
    /// Unit of its values. Empty without one.
    pub unit: &'static str,
    /// Meaning of its values.
    pub meaning: &'static str,
    /// Names of fields, from the outermost on, with dots between them.
    pub path: String,
    /// The value for rows without one.
    pub default: Value,
}

impl Column {
    /// A column of texts that no table declares. A row has the value under its name.
    pub(super) fn text(name: &str) -> Self {
        Self {
            name: name.into(),
            kind: CellKind::Text,
            unit: "",
            meaning: "",
            path: name.into(),
            default: Value::Null,
        }
    }

    /// The value of a row, or the default.
    pub(super) fn of<'a>(&'a self, row: &'a Value) -> &'a Value {
        let nested = || self.path.split('.').try_fold(row, |value, field| value.get(field));
        row.get(&self.path).or_else(nested).unwrap_or(&self.default)
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The kind of events that are its rows. `None` if its rows are drawn from several events, or are parts of one.
    pub event: Option<&'static str>,
    /// Meaning of a row.
    pub about: &'static str,
    /// Columns, in order.
    pub columns: Vec<Column>,
}

/// Declares the tables: of each its name, the event that a row is, what that is, and of each column name, type, what stands for a
/// missing value, unit, meaning, and its path, which is `data.` and its name unless it is given.
macro_rules! tables {
    ($($table:ident $(of $event:ident)?, $about:literal {
        $($name:ident: $kind:ident $(else $default:tt)?, $unit:literal, $meaning:literal $(, $path:literal)?;)+
    })+) => {
        /// All tables, those of runs before that of sweeps.
        pub fn tables() -> Vec<Table> {
            vec![$(Table {
                name: stringify!($table),
                event: [$(stringify!($event))?].first().copied(),
                about: $about,
                columns: vec![$(Column {
                    name: stringify!($name).into(),
                    kind: CellKind::$kind,
                    unit: $unit,
                    meaning: $meaning,
                    path: [$($path,)? concat!("data.", stringify!($name))][0].into(),
                    default: [$(json!($default),)? Value::Null][0].clone(),
                }),+],
            }),+]
        }
    };
}

tables! {
    rounds of round_finished, "A row for every finished round, over all envs: `round_finished`." {
        round: Integer, "", "round, from 0", "round";
        accuracy_mean: Number, "%", "final validation accuracy, mean over envs";
        accuracy_std: Number, "points", "population standard deviation over envs";
        accuracy_best: Number, "%", "best validation accuracy of any env and step";
        accuracy_env: Text, "%", "final validation accuracy of each env; JSON";
        rolling_accuracy: Number, "%", "mean of the last ten rounds; empty in round 0";
        perplexity: Number, "", "perplexity, only for language models";
        reward_mean: Number, "reward", "reward of an episode, mean over envs";
        reward_std: Number, "reward", "population standard deviation over envs";
        reward_terms: Text, "reward", "sum of each term over an episode, mean over envs; JSON", "data.reward_terms_mean";
        germinated: Integer, "seeds", "germinated seeds";
        committed: Integer, "seeds", "committed seeds";
        pruned: Integer, "seeds", "removed seeds";
        anomalies: Integer, "steps", "steps with an unhealthy loss";
        panics: Integer, "steps", "steps after which an env had to be rolled back";
        episodes_failed: Integer, "envs", "failed envs; means leave them out";
        metrics: Text, "", "measurements of plugins, by metric; JSON";
        wall_s: Number, "s", "duration of the round", "data.perf.round_wall_s";
        env_steps_per_s: Number, "1/s", "throughput", "data.perf.env_steps_per_s";
        samples: Integer, "samples", "training samples of all envs", "data.perf.samples";
        memory_bytes: Integer, "bytes", "machine memory that the process uses at the end of the round", "data.perf.memory_bytes";
        device_memory: Text, "bytes", "memory of each other device: in tensors, its peak, and held by libtorch; JSON",
            "data.perf.device_memory_bytes";
    }
    steps of env_step, "A row for every env and step: `env_step`." {
        round: Integer, "", "round, from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times the number of envs, plus env", "episode";
        step: Integer, "", "step of the episode, from 1", "step";
        train_loss: Number, "nats", "mean loss over the samples of batches with a finite loss";
        train_accuracy: Number, "%", "accuracy over the training samples";
        val_loss: Number, "nats", "mean loss over the validation samples";
        val_accuracy: Number, "%", "accuracy over the validation samples";
        host_grad_norm: Number, "", "gradient norm of the host at the last sampled batch";
        nonfinite_batches: Integer else 0, "batches", "batches with a loss that was not finite";
        skipped_updates: Integer else 0, "updates", "suppressed updates of the host";
        params_total: Integer, "parameters", "parameters of the host and of occupied slots";
        params_committed: Integer else 0, "parameters", "parameters of committed seeds";
        steps_since_best: Integer else 0, "steps", "steps since the best validation accuracy of the episode";
    }
    seed_steps, "A row for every seed and step: a member of `seeds` in `env_step`." {
        round: Integer, "", "round, from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times the number of envs, plus env", "episode";
        step: Integer, "", "step of the episode, from 1", "step";
        slot: Text, "", "slot of the seed", "seed.slot";
        seed_id: Text, "", "id of the seed, as in `seeds`", "seed_id";
        stage: Text, "", "stage of the seed", "seed.stage";
        alpha: Number else 1.0, "0 to 1", "amplitude", "seed.alpha";
        gradient_ratio: Number, "", "gradient of the seed divided by the host's, per parameter, smoothed", "seed.gradient_ratio";
        vanishing: Flag else false, "", "its gradients vanish", "seed.vanishing";
        exploding: Flag else false, "", "its gradients explode", "seed.exploding";
        skipped_updates: Integer else 0, "updates", "suppressed updates of the seed", "seed.skipped_updates";
    }
    seeds, "A row for every seed, from its germination to the end of its episode: `seed_germinated`, with values from the later events about the\n\
        seed: `entered`, `last_stage`, `end` (of `seed_committed` or `seed_pruned`, the later one), `pruned` (`seed_pruned`), `contribution`\n\
        (`counterfactual_matrix`, the last one) and `shapley`." {
        round: Integer, "", "round, from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times the number of envs, plus env", "episode";
        seed_id: Text, "", "id of the seed: `e{episode}.{slot}.{n}`", "seed_id";
        slot: Text, "", "slot of the seed", "slot";
        blueprint: Text, "", "recipe of its module";
        params: Integer, "parameters", "parameters of its module";
        style: Text, "", "curve and operator of its blend";
        tempo_steps: Integer, "steps", "length of its first blend";
        alpha_target: Number, "0 to 1", "amplitude to blend to";
        accuracy_before: Number, "%", "validation accuracy when it germinated", "data.accuracy";
        germinated_step: Integer, "step", "in which it germinated", "step";
        training_step: Integer, "step", "in which it began to train", "entered.TRAINING";
        blending_step: Integer, "step", "in which it first blended", "entered.BLENDING";
        holding_step: Integer, "step", "in which it was first held", "entered.HOLDING";
        committed_step: Integer, "step", "in which it was committed", "entered.COMMITTED";
        pruned_step: Integer, "step", "in which it was removed", "pruned.step";
        last_stage: Text, "", "stage at the end of the episode, or when it was removed", "last_stage";
        prune_reason: Text, "", "reason for its removal", "pruned.data.reason";
        pruned_by: Text, "", "side that ordered its removal", "pruned.data.initiator";
        total_improvement: Number, "points", "accuracy gained from germination to commit or removal", "end.total_improvement";
        blending_delta: Number, "points", "accuracy gained from the beginning of the blend to commit or removal", "end.blending_delta";
        contribution: Number, "points", "validation accuracy lost without it, as last measured", "contribution.points";
        contribution_error: Number, "points", "paired standard error of the contribution", "contribution.error";
        shapley: Number, "points", "its share of what all seeds add, at the end of the episode", "shapley";
    }
    decisions of decision, "A row for every env and step in which a controller decided: `decision`." {
        round: Integer, "", "round, from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times the number of envs, plus env", "episode";
        step: Integer, "", "step of the episode, from 1", "step";
        op: Text, "", "operation";
        slot: Text, "", "slot of the operation; empty for a wait";
        blueprint: Text, "", "blueprint of a germination", "data.choice.blueprint";
        style: Text, "", "curve and operator of a blend", "data.choice.style";
        tempo: Text, "", "length of the first blend", "data.choice.tempo";
        alpha_target: Number, "0 to 1", "amplitude to blend to", "data.choice.alpha_target";
        alpha_speed: Text, "", "length of a ramp", "data.choice.alpha_speed";
        alpha_curve: Text, "", "curve of a ramp", "data.choice.alpha_curve";
        blocked: Text, "", "reason why it was not executed; empty if it was";
        allowed: Text else ["WAIT"], "", "legal operations; JSON";
        reason: Text, "", "the controller's reason";
        value: Number, "reward", "the critic's estimate of the return";
        probabilities: Text, "0 to 1", "probabilities of the chosen options, by head; JSON", "data.p";
        op_probabilities: Text, "0 to 1", "probabilities of the operations in `allowed`; JSON", "data.op_probs";
        reward: Number, "reward", "reward of the step";
        reward_terms: Text, "reward", "terms of the reward that are not zero; JSON", "data.terms";
        contribution: Number, "points", "contribution of the slot's seed";
    }
    updates of learner_update, "A row for every update of the policy, performed or not: `learner_update`." {
        round: Integer, "", "round, from 0", "round";
        performed: Flag, "", "optimizer steps were taken and kept", "data.update_performed";
        skip_reason: Text, "", "reason why it was not performed";
        updates: Integer, "updates", "updates performed so far";
        steps_taken: Integer, "steps", "optimizer steps";
        lr: Number, "", "learning rate";
        entropy_coef: Number, "", "weight of the entropy bonus";
        loss_total: Number, "", "total loss that is minimised";
        loss_policy: Number, "", "clipped surrogate objective";
        loss_value: Number, "", "value loss";
        loss_entropy: Number, "", "weighted entropy bonus";
        approx_kl: Number, "nats", "divergence from the policy that acted";
        clip_fraction: Number, "0 to 1", "share of probability ratios beyond the clip";
        entropy_mean: Number, "0 to 1", "normalised entropy, mean over heads that can learn";
        grad_norm: Number, "", "gradient norm before clipping, the largest of all steps";
        steps_valid: Integer, "steps", "steps that count";
        steps_actor: Integer, "steps", "steps that the actor learns from";
        explained_variance: Number, "", "share of the returns' variance that the critic explains";
        explained_variance_free: Number, "", "the same for the steps with a choice";
        return_mean: Number, "scaled reward", "mean of the returns";
        return_std: Number, "scaled reward", "standard deviation of the returns";
        update_ms: Number, "ms", "duration of the update";
    }
    episodes of episode_finished, "A row for every env and round: `episode_finished`." {
        round: Integer, "", "round, from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times the number of envs, plus env", "episode";
        length: Integer, "steps", "steps played";
        end: Text, "", "reason why it ended";
        error: Text, "", "error of an env that failed";
        outcome: Text, "", "whether it reached the task's success accuracy";
        final_accuracy: Number, "%", "validation accuracy of the network as it is";
        committed_accuracy: Number, "%", "validation accuracy with only committed seeds";
        final_loss: Number, "nats", "final validation loss";
        best_accuracy: Number, "%", "best validation accuracy of any step";
        best_step: Integer, "step", "step with the best validation accuracy";
        test_accuracy: Number, "%", "test accuracy with only committed seeds";
        test_loss: Number, "nats", "test loss";
        param_ratio: Number, "", "parameters divided by the host's";
        committed_ratio: Number, "", "parameters of host and committed seeds divided by the host's";
        germinated: Integer, "seeds", "germinated seeds";
        committed: Integer, "seeds", "committed seeds";
        pruned: Integer, "seeds", "removed seeds";
        contributing: Integer, "seeds", "committed seeds with a contribution of 1 point or more";
        rollbacks: Integer, "", "rollbacks by the governor";
        reward: Number, "reward", "sum of the rewards of the episode";
        return_discounted: Number, "reward", "discounted return from the first step on";
        rent: Number, "points", "mean rent of a step";
        reward_terms: Text, "reward", "sum and extremes of each term; JSON";
        train_macs: Integer, "multiply-accumulates", "compute of training";
        val_macs: Integer, "multiply-accumulates", "compute of validation";
    }
    trials, "A row for every training of a sweep, from `sweep.json`. After these columns there is one of type `text` for every field in which\n\
        trials differ. Its name is the path of the field, e.g. `policy.controller`." {
        trial: Text, "", "beginning of its hash, and name of its folder", "id";
        point: Integer, "", "combination of settings, from 0", "point";
        point_name: Text, "", "name of the point, if the sweep names its points", "name";
        replicate: Integer, "", "training of the point, from 0", "replicate";
        seed: Text, "", "`run.seed`, which may need all 64 bits", "seed";
        state: Text, "", "waiting, done, given_up or failed", "state";
        reason: Text, "", "reason why it failed", "result.reason";
        timed_out: Flag, "", "it exceeded its time limit", "result.timed_out";
        rounds: Integer, "rounds", "rounds played", "rounds_played";
        env_steps: Integer, "env-steps", "env-steps trained", "env_steps";
        evaluated: Flag, "", "scores are from an evaluation, else from the last ten rounds", "result.training.is_evaluated";
        accuracy_minus_rent: Number, "points", "final accuracy minus the mean rent of a step", "scores.accuracy_minus_rent";
        accuracy: Number, "%", "final validation accuracy", "scores.accuracy";
        committed_accuracy: Number, "%", "validation accuracy of the host with only its committed seeds", "scores.committed_accuracy";
        test_accuracy: Number, "%", "test accuracy of the host with only its committed seeds", "scores.test_accuracy";
        loss: Number, "nats", "final validation loss", "scores.loss";
        test_loss: Number, "nats", "test loss of the host with only its committed seeds", "scores.test_loss";
        param_ratio: Number, "", "final parameters divided by the host's", "scores.param_ratio";
        gmacs: Number, "billions", "multiply-accumulates per episode", "scores.gmacs";
        rollbacks: Number, "", "rollbacks per episode", "scores.rollbacks";
        curve_area: Number, "%", "mean final accuracy over all rounds", "scores.curve_area";
        train_s: Number, "s", "time of all rounds", "train_s";
        wall_s: Number, "s", "time of all attempts", "result.wall_s";
        attempts: Integer, "", "number of times that it was started or resumed", "result.attempts";
    }
}

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
        round: Integer, "", "from 0", "round";
        accuracy_mean: Number, "%", "final validation accuracy, mean over envs";
        accuracy_std: Number, "points", "its population standard deviation";
        accuracy_best: Number, "%", "best validation accuracy of any env and step";
        accuracy_env: Text, "%", "final validation accuracy of each env; JSON";
        rolling_accuracy: Number, "%", "mean of the last ten rounds; empty in round 0";
        perplexity: Number, "", "of language models";
        reward_mean: Number, "reward", "sum of an episode, mean over envs";
        reward_std: Number, "reward", "its population standard deviation";
        reward_terms: Text, "reward", "mean sum of an episode by term; JSON", "data.reward_terms_mean";
        germinated: Integer, "seeds", "planted";
        committed: Integer, "seeds", "committed";
        pruned: Integer, "seeds", "removed";
        anomalies: Integer, "steps", "with an unhealthy loss";
        panics: Integer, "steps", "after which an env was to be rolled back";
        episodes_failed: Integer, "envs", "failed; means leave them out";
        metrics: Text, "", "what plugins measured, by name; JSON";
        wall_s: Number, "s", "duration", "data.perf.round_wall_s";
        env_steps_per_s: Number, "1/s", "throughput", "data.perf.env_steps_per_s";
        samples: Integer, "samples", "trained on, all envs", "data.perf.samples";
        memory_bytes: Integer, "bytes", "of the machine, used by the process at the end of the round", "data.perf.memory_bytes";
        device_memory: Text, "bytes", "of each other device: in tensors, the most at once, held by libtorch; JSON",
            "data.perf.device_memory_bytes";
    }
    steps of env_step, "A row for every env and step: `env_step`." {
        round: Integer, "", "from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times envs, plus env", "episode";
        step: Integer, "", "of the episode, from 1", "step";
        train_loss: Number, "nats", "mean over the samples of finite batches";
        train_accuracy: Number, "%", "over the training samples";
        val_loss: Number, "nats", "mean over the validation samples";
        val_accuracy: Number, "%", "over the validation samples";
        host_grad_norm: Number, "", "gradient of the host at the last sampled batch";
        nonfinite_batches: Integer else 0, "batches", "whose loss was not finite";
        skipped_updates: Integer else 0, "updates", "of the host that were suppressed";
        params_total: Integer, "parameters", "of host and occupied slots";
        params_committed: Integer else 0, "parameters", "of committed seeds";
        steps_since_best: Integer else 0, "steps", "since the best validation accuracy of the episode";
    }
    seed_steps, "A row for every seed and step: a member of `seeds` in `env_step`." {
        round: Integer, "", "from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times envs, plus env", "episode";
        step: Integer, "", "of the episode, from 1", "step";
        slot: Text, "", "its slot", "seed.slot";
        seed_id: Text, "", "as in `seeds`", "seed_id";
        stage: Text, "", "its stage", "seed.stage";
        alpha: Number else 1.0, "0 to 1", "amplitude", "seed.alpha";
        gradient_ratio: Number, "", "gradient of the seed over the host's, per parameter, smoothed", "seed.gradient_ratio";
        vanishing: Flag else false, "", "its gradients vanish", "seed.vanishing";
        exploding: Flag else false, "", "its gradients explode", "seed.exploding";
        skipped_updates: Integer else 0, "updates", "of the seed that were suppressed", "seed.skipped_updates";
    }
    seeds, "A row for every seed, from its germination to the end of its episode: `seed_germinated` and the events about it that follow, from which\n\
        `entered`, `last_stage`, `end` (of `seed_committed` or `seed_pruned`, the later one), `pruned` (`seed_pruned`), `contribution`\n\
        (`counterfactual_matrix`, the last one) and `shapley` are drawn." {
        round: Integer, "", "from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times envs, plus env", "episode";
        seed_id: Text, "", "`e{episode}.{slot}.{n}`", "seed_id";
        slot: Text, "", "its slot", "slot";
        blueprint: Text, "", "the recipe of its module";
        params: Integer, "parameters", "of its module";
        style: Text, "", "curve and operator of its blend";
        tempo_steps: Integer, "steps", "of its first blend";
        alpha_target: Number, "0 to 1", "amplitude to blend to";
        accuracy_before: Number, "%", "validation accuracy when it germinated", "data.accuracy";
        germinated_step: Integer, "step", "in which it germinated", "step";
        training_step: Integer, "step", "in which it began to train", "entered.TRAINING";
        blending_step: Integer, "step", "in which it first blended", "entered.BLENDING";
        holding_step: Integer, "step", "in which it was first held", "entered.HOLDING";
        committed_step: Integer, "step", "in which it was committed", "entered.COMMITTED";
        pruned_step: Integer, "step", "in which it was removed", "pruned.step";
        last_stage: Text, "", "at the end of the episode; of a removed seed, when it was removed", "last_stage";
        prune_reason: Text, "", "why it was removed", "pruned.data.reason";
        pruned_by: Text, "", "who ordered it", "pruned.data.initiator";
        total_improvement: Number, "points", "accuracy gained from germination to commit or removal", "end.total_improvement";
        blending_delta: Number, "points", "accuracy gained from the beginning of the blend to commit or removal", "end.blending_delta";
        contribution: Number, "points", "validation accuracy lost without it, as last measured", "contribution.points";
        contribution_error: Number, "points", "its paired standard error", "contribution.error";
        shapley: Number, "points", "its share of what all seeds add, at the end of the episode", "shapley";
    }
    decisions of decision, "A row for every env and step in which a controller decided: `decision`." {
        round: Integer, "", "from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times envs, plus env", "episode";
        step: Integer, "", "of the episode, from 1", "step";
        op: Text, "", "operation";
        slot: Text, "", "that it is about; empty for a wait";
        blueprint: Text, "", "of a germination", "data.choice.blueprint";
        style: Text, "", "curve and operator of a blend", "data.choice.style";
        tempo: Text, "", "length of the first blend", "data.choice.tempo";
        alpha_target: Number, "0 to 1", "amplitude to blend to", "data.choice.alpha_target";
        alpha_speed: Text, "", "length of a ramp", "data.choice.alpha_speed";
        alpha_curve: Text, "", "curve of a ramp", "data.choice.alpha_curve";
        blocked: Text, "", "why it was not executed; empty if it was";
        allowed: Text else ["WAIT"], "", "operations that were legal; JSON";
        reason: Text, "", "the controller's";
        value: Number, "reward", "the critic's estimate of the return";
        probabilities: Text, "0 to 1", "of the chosen options, by head; JSON", "data.p";
        op_probabilities: Text, "0 to 1", "of the operations in `allowed`; JSON", "data.op_probs";
        reward: Number, "reward", "of the step";
        reward_terms: Text, "reward", "every term that is not zero; JSON", "data.terms";
        contribution: Number, "points", "of the slot's seed";
    }
    updates of learner_update, "A row for every update of the policy, performed or not: `learner_update`." {
        round: Integer, "", "from 0", "round";
        performed: Flag, "", "steps were taken and kept", "data.update_performed";
        skip_reason: Text, "", "why not";
        updates: Integer, "updates", "performed so far";
        steps_taken: Integer, "steps", "of the optimizer";
        lr: Number, "", "learning rate";
        entropy_coef: Number, "", "weight of the entropy bonus";
        loss_total: Number, "", "everything that is minimised";
        loss_policy: Number, "", "clipped surrogate objective";
        loss_value: Number, "", "value loss";
        loss_entropy: Number, "", "weighted entropy bonus";
        approx_kl: Number, "nats", "divergence from the policy that acted";
        clip_fraction: Number, "0 to 1", "share of probability ratios beyond the clip";
        entropy_mean: Number, "0 to 1", "normalised entropy, mean over heads that can learn";
        grad_norm: Number, "", "before clipping, the largest of all steps";
        steps_valid: Integer, "steps", "that count";
        steps_actor: Integer, "steps", "that the actor learns from";
        explained_variance: Number, "", "share of the returns' variance that the critic explains";
        explained_variance_free: Number, "", "the same of the steps with a choice";
        return_mean: Number, "scaled reward", "mean of the returns";
        return_std: Number, "scaled reward", "their deviation";
        update_ms: Number, "ms", "duration";
    }
    episodes of episode_finished, "A row for every env and round: `episode_finished`." {
        round: Integer, "", "from 0", "round";
        env: Integer, "", "index of the env, from 0", "env";
        episode: Integer, "", "round times envs, plus env", "episode";
        length: Integer, "steps", "played";
        end: Text, "", "why it ended";
        error: Text, "", "of an env that failed";
        outcome: Text, "", "whether it reached the task's success accuracy";
        final_accuracy: Number, "%", "validation, of the network as it is";
        committed_accuracy: Number, "%", "validation, with committed seeds alone";
        final_loss: Number, "nats", "validation";
        best_accuracy: Number, "%", "validation, of any step";
        best_step: Integer, "step", "that reached it";
        test_accuracy: Number, "%", "test part, with committed seeds alone";
        test_loss: Number, "nats", "test part";
        param_ratio: Number, "", "parameters over the host's";
        committed_ratio: Number, "", "parameters of host and committed seeds over the host's";
        germinated: Integer, "seeds", "planted";
        committed: Integer, "seeds", "committed";
        pruned: Integer, "seeds", "removed";
        contributing: Integer, "seeds", "committed, with a contribution of 1 point or more";
        rollbacks: Integer, "", "by the governor";
        reward: Number, "reward", "sum over the episode";
        return_discounted: Number, "reward", "from the first step on";
        rent: Number, "points", "mean of a step";
        reward_terms: Text, "reward", "sums and extremes by term; JSON";
        train_macs: Integer, "multiply-accumulates", "of training";
        val_macs: Integer, "multiply-accumulates", "of validation";
    }
    trials, "A row for every training of a sweep: what `sweep.json` has of it. After these columns there is one of type `text` for every\n\
        field that trials differ in, by its path: `policy.controller`." {
        trial: Text, "", "beginning of its hash, and name of its folder", "id";
        point: Integer, "", "combination of settings, from 0", "point";
        point_name: Text, "", "where the sweep names its points", "name";
        replicate: Integer, "", "training of the point, from 0", "replicate";
        seed: Text, "", "`run.seed`, which may need all of 64 bits", "seed";
        state: Text, "", "waiting, done, given_up or failed", "state";
        reason: Text, "", "why it failed", "result.reason";
        timed_out: Flag, "", "it ran into its time limit", "result.timed_out";
        rounds: Integer, "rounds", "played", "rounds_played";
        env_steps: Integer, "env-steps", "trained", "env_steps";
        evaluated: Flag, "", "scores are of an evaluation, else of the last ten rounds", "result.training.is_evaluated";
        accuracy_minus_rent: Number, "points", "final accuracy less the mean rent of a step", "scores.accuracy_minus_rent";
        accuracy: Number, "%", "final validation accuracy", "scores.accuracy";
        committed_accuracy: Number, "%", "validation, of the host with its committed seeds alone", "scores.committed_accuracy";
        test_accuracy: Number, "%", "test part, of the host with its committed seeds alone", "scores.test_accuracy";
        loss: Number, "nats", "final validation loss", "scores.loss";
        test_loss: Number, "nats", "test part, of the host with its committed seeds alone", "scores.test_loss";
        param_ratio: Number, "", "final parameters over the host's", "scores.param_ratio";
        gmacs: Number, "billions", "multiply-accumulates of an episode", "scores.gmacs";
        rollbacks: Number, "", "of an episode", "scores.rollbacks";
        curve_area: Number, "%", "mean final accuracy over all rounds", "scores.curve_area";
        train_s: Number, "s", "of all rounds", "train_s";
        wall_s: Number, "s", "of all attempts", "result.wall_s";
        attempts: Integer, "", "how often it was begun or taken up", "result.attempts";
    }
}

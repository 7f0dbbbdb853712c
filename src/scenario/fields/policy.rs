//! The fields of sections `policy` and `initial_topology` (spec 03 §9-10, §15, 06 §15.3).

use super::*;

pub(super) const POLICY: &[Field] = fields! {
    controller: Kind::Text(Names::Controller) => "Who decides.";
    preset: Kind::Optional(&Kind::Text(Names::PolicyPreset)) =>
        "Settings of the learned controller that lie between the defaults and this file's.";
    net: Kind::Text(Names::Net) => "Network of the learned controller.";
    net_cfg: Kind::Record(NET) => "Sizes of the network.";
    obs: Kind::Record(fields! {
        freshness_decay: SHARE => "Factor per step on the freshness of a measured contribution.";
    }) => "What the learned controller sees.";
    floor: Kind::Record(FLOOR) => "Probability that every valid choice of the learned controller keeps.";
    masks: Kind::Record(fields! {
        sequential_germination: Kind::Bool => "Allow germination only while no other seed develops.";
        mask_structural_gates: Kind::Bool => "Hide commands that a gate would refuse for age or structure.";
        action_space: Kind::Record(ACTION_SPACE) => "Choices that controllers have at all; None: every one.";
    }) => "Which legal commands the controller is not offered.";
    init_from: Kind::Optional(&Kind::Text(Names::Free)) =>
        "Folder of a saved policy whose weights the learned controller starts with, relative to this file.";
    heuristic: Kind::Record(HEURISTIC) => "Constants of the rule-based controller.";
    random: Kind::Record(fields! {
        op_weights: Kind::Record(fields! {
            wait: POSITIVE => "Weight of waiting.";
            germinate: NOT_NEGATIVE => "Weight of planting a seed.";
            set_alpha_target: NOT_NEGATIVE => "Weight of ramping a seed's amplitude.";
            prune: NOT_NEGATIVE => "Weight of removing a seed.";
            fossilize: NOT_NEGATIVE => "Weight of committing a seed.";
            advance: NOT_NEGATIVE => "Weight of trying a seed's next gate.";
        }) => "How often each operation is drawn, relative to the others that are legal.";
    }) => "How the `random` controller draws.";
    schedule: Kind::Record(fields! {
        builtin: Kind::Optional(&Kind::Text(Names::Schedule)) => "A built-in schedule instead of entries.";
        entries: Kind::List(&Kind::Record(SCHEDULE_ENTRY)) => "Commands at given steps, in the order of their steps.";
        wait_on_illegal: Kind::Bool => "Wait instead of failing when an entry is illegal at its step.";
    }) => "The list that the `schedule` controller plays.";
    replay: Kind::Record(fields! {
        run: Kind::Optional(&Kind::Text(Names::Free)) => "Folder of the recorded run, relative to this file.";
        wait_on_illegal: Kind::Bool => "Wait instead of failing when a recorded command is illegal now.";
    }) => "The decisions that the `replay` controller repeats, env by env, round by round, step by step.";
    tracker: Kind::Record(fields! {
        plateau_threshold_pct: NOT_NEGATIVE => "A step that gains fewer percentage points extends the plateau.";
        history_window: at_least(5) => "Steps remembered.";
        stabilization_threshold: POSITIVE => "A relative improvement of the loss below this counts as stable.";
        stabilization_epochs: at_least(0) => "Stable steps in a row until the host counts as stabilised.";
        regression_threshold: NOT_NEGATIVE => "A relative worsening of the loss from this on does not count as stable.";
    }) => "When a host counts as stabilised or as standing still.";
};

const ACTION_SPACE: &[Field] = fields! {
    allowed_ops: Kind::Optional(&Kind::List(&Kind::Text(Names::Op))) => "Operations, \"wait\" among them.";
    blueprint: Kind::Optional(&Kind::List(&Kind::Text(Names::Blueprint))) => "Recipes of seeds.";
    style: Kind::Optional(&Kind::List(&Kind::Text(Names::Style))) => "Curves and operators of a blend.";
    tempo: Kind::Optional(&Kind::List(&Kind::Text(Names::Tempo))) => "Lengths of the first blend.";
    alpha_target: Kind::Optional(&Kind::List(&Kind::Text(Names::Target))) => "Amplitudes to blend to.";
    alpha_speed: Kind::Optional(&Kind::List(&Kind::Text(Names::Speed))) => "Lengths of a later ramp.";
    alpha_curve: Kind::Optional(&Kind::List(&Kind::Text(Names::Curve))) => "Curves of a later ramp.";
};

const NET: &[Field] = fields! {
    feature_dim: integer(1, 65536) => "Width of the layer that reads the observation.";
    hidden_dim: integer(8, 65536) => "Width of the core; a multiple of 8.";
    layers: integer(1, 64) => "Recurrent layers.";
    embed_dim: integer(1, 1024) => "Numbers that stand for a blueprint.";
    head_conditioning: variants! {
        per_op => "every operation has its own logits for slots, styles, targets, speeds and curves";
        shared => "all operations share them";
    } => "Whether parameters of an action are chosen by its operation.";
    contribution_head: Kind::Bool => "Predict the seeds' contributions as an auxiliary task.";
    aux_dropout: BELOW_ONE => "Dropout in the contribution head; more than 0 makes runs irreproducible.";
    frame_stack: integer(1, 8) => "Steps that the mlp sees at once.";
    op_bias: Kind::Record(fields! {
        wait: ANY_NUMBER => "On waiting.";
        germinate: ANY_NUMBER => "On germinating.";
        set_alpha_target: ANY_NUMBER => "On ramping a seed's amplitude.";
        prune: ANY_NUMBER => "On pruning.";
        fossilize: ANY_NUMBER => "On committing.";
        advance: ANY_NUMBER => "On trying a gate.";
    }) => "Added to the logits of a fresh built-in network's operations: what it tries before it has learnt anything.";
};

const FLOOR: &[Field] = fields! {
    mode: variants! {
        mixture => "mixes in a uniform distribution: keeps the direction of the gradient";
        clamp => "raises what is below and shrinks the rest";
        none => "none";
    } => "How probabilities are kept up.";
    op: BELOW_ONE => "Least probability of a valid operation.";
    slot: BELOW_ONE => "Least probability of a valid slot.";
    blueprint: BELOW_ONE => "Least probability of a valid blueprint.";
    style: BELOW_ONE => "Least probability of a blend style.";
    tempo: BELOW_ONE => "Least probability of a tempo.";
    alpha_target: BELOW_ONE => "Least probability of an alpha target.";
    alpha_speed: BELOW_ONE => "Least probability of an alpha speed.";
    alpha_curve: BELOW_ONE => "Least probability of an alpha curve.";
};

const HEURISTIC: &[Field] = fields! {
    plateau_epochs_to_germinate: at_least(0) => "Steps without progress before a seed is germinated.";
    min_epochs_before_germinate: at_least(0) => "First step at which a seed may be germinated.";
    embargo_epochs_after_prune: at_least(0) => "Steps of rest after a prune.";
    prune_after_epochs_without_improvement: at_least(0) => "Steps in a stage before a failing seed is pruned.";
    prune_if_accuracy_drops_by: NOT_NEGATIVE => "Accuracy loss in a stage that counts as failing, percentage points.";
    min_improvement_to_fossilize: ANY_NUMBER => "Contribution above which a held seed is committed, percentage points.";
    min_training_epochs: Kind::Optional(&at_least(0)) =>
        "Steps that a seed trains before it is moved on. None: the minimum of its gate.";
    dependency_contribution_threshold: ANY_NUMBER =>
        "Contribution above which a host without overall gain counts as merely dependent on the seed.";
    dependency_improvement_threshold: ANY_NUMBER => "Accuracy gain since germination below which there is no overall gain.";
    blueprint_penalty_on_prune: NOT_NEGATIVE => "Penalty that a prune puts on the seed's blueprint.";
    blueprint_penalty_decay: FRACTION => "Factor on all penalties per step.";
    blueprint_penalty_threshold: POSITIVE => "Penalty from which a blueprint is skipped.";
    rotation: Kind::List(&Kind::Text(Names::Blueprint)) => "Blueprints in the order in which they are tried.";
};

const SCHEDULE_ENTRY: &[Field] = required! {
    step: at_least(1) => "Step at which the command is given, from 1.";
    command: variants! {
        germinate { required! {
            slot: SLOT => "Slot to grow in.";
            blueprint: Kind::Text(Names::Blueprint) => "Recipe of the seed.";
            style: Kind::Text(Names::Style) => "Curve and operator of the first blend.";
            tempo: Kind::Text(Names::Tempo) => "Length of the first blend.";
            target: Kind::Text(Names::Target) => "Amplitude to blend to.";
        } } => "plant a seed";
        set_alpha_target { required! {
            slot: SLOT => "Slot of the seed.";
            style: Kind::Text(Names::Style) => "Blend operator from now on.";
            target: Kind::Text(Names::Target) => "New amplitude.";
            speed: Kind::Text(Names::Speed) => "Length of the ramp.";
            curve: Kind::Text(Names::Curve) => "Curve of the ramp.";
        } } => "ramp a seed's amplitude";
        prune { required! {
            slot: SLOT => "Slot of the seed.";
            speed: Kind::Text(Names::Speed) => "Length of the ramp down.";
            curve: Kind::Text(Names::Curve) => "Curve of the ramp down.";
        } } => "remove a seed";
        fossilize { required! { slot: SLOT => "Slot of the seed."; } } => "commit a seed";
        advance { required! { slot: SLOT => "Slot of the seed."; } } => "try the seed's next gate";
    } => "The command.";
};

pub(super) const INITIAL_TOPOLOGY: Kind = variants! {
    empty => "none: every slot is empty";
    seeds(unnamed(Kind::List(&Kind::Record(INITIAL_SEED)))) => "these seeds, in every episode";
    run { required! {
        path: Kind::Text(Names::Free) => "Folder of the recorded run, relative to this file.";
        episode: Kind::Optional(&EPISODE_CHOICE) => "Which of its episodes. None: the best one.";
    } } => "the seeds that a recorded run had committed at the end of an episode";
};

const INITIAL_SEED: &[Field] = required! {
    slot: SLOT => "Where it stands.";
    blueprint: Kind::Text(Names::Blueprint) => "Recipe of the seed.";
    style: Kind::Optional(&Kind::Text(Names::Style)) => "Its operator is how the seed enters the host. None: sigmoid_add.";
};

const EPISODE_CHOICE: Kind = variants! {
    each => "every env and round starts with what the same env came to in the same round";
    at { required! {
        round: at_least(0) => "Round, from 0.";
        env: at_least(0) => "Env, from 0.";
    } } => "that of one env in one round";
};

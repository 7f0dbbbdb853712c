//! Waiting, honest growth, and the ways to be paid without it.

use super::world::{AT_ONCE, Nature, Order, World};
use crate::growth::{AlphaTarget, GerminationStyle, LifecycleCommand, SeedStage, Tempo};

/// Steps that a seed is held before honest growth commits it.
const HELD: u32 = 5;
/// Steps before the end in which a late seed germinates.
const LATE: u32 = 24;

/// Declares strategies with the name and the line that tables print.
macro_rules! strategies {
    ($($(#[$doc:meta])* $strategy:ident => ($name:literal, $summary:literal)),+ $(,)?) => {
        /// A script that plays an episode.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Strategy { $($(#[$doc])* $strategy),+ }

        impl Strategy {
            /// The name that tables print.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$strategy => $name),+ }
            }

            /// Behaviour of the strategy, in one line.
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$strategy => $summary),+ }
            }
        }
    };
}

strategies! {
    /// The measure of exploiters.
    Wait => ("wait", "does nothing"),
    /// The growth that a reward is meant for.
    HonestGrowth => ("honest_growth", "grows a helpful seed in one slot after another, holds it briefly, commits it"),
    /// Not an exploit by definition: it may earn what its committed accuracy is worth.
    CommitAtOnce => ("commit_at_once", "commits helpful seeds as soon as it may"),
    /// Paid for being there.
    HoldFull => ("hold_full", "blends a helpful seed to full amplitude and never commits it"),
    /// Held where no timeout counts.
    HoldHalf => ("hold_half", "blends a helpful seed to half amplitude and lets it rest there"),
    /// Paid for planting or for removing.
    GerminatePrune => ("germinate_prune", "germinates and prunes as soon as it may, over and over"),
    /// Paid for moving.
    Toggle => ("toggle", "ramps a helpful seed between half and full amplitude for ever"),
    /// Paid until time is up, and again.
    TimeoutRegrow => ("timeout_regrow", "holds a helpful seed until it is lost, grows the next, never commits"),
    /// Paid for repairing its own damage.
    DegradeRecover => ("degrade_recover", "blends a harmful seed in and prunes it, over and over"),
    /// It is paid for a gain that is only missing because of it.
    Ransom => ("ransom", "commits two seeds that are each worth much with the other and nothing together"),
    /// Paid for the last step.
    LateSeed => ("late_seed", "keeps a helpful seed at full amplitude in the last step, uncommitted"),
}

impl Strategy {
    /// The strategies that must not pay.
    pub const EXPLOITERS: &[Self] = &[
        Self::CommitAtOnce,
        Self::HoldFull,
        Self::HoldHalf,
        Self::GerminatePrune,
        Self::Toggle,
        Self::TimeoutRegrow,
        Self::DegradeRecover,
        Self::Ransom,
        Self::LateSeed,
    ];

    /// Slots that it needs.
    pub const fn slots(self) -> usize {
        match self {
            Self::Ransom => 2,
            _ => 1,
        }
    }

    /// The strategy's order for the next step.
    pub(super) fn order(self, world: &World) -> Order {
        match self {
            Self::Wait => Order::WAIT,
            Self::HonestGrowth => one_after_another(world, world.slots(), Nature::Helpful, HELD),
            Self::CommitAtOnce => one_after_another(world, world.slots(), Nature::Helpful, 1),
            Self::HoldFull => once(world, AlphaTarget::Full),
            Self::HoldHalf => once(world, AlphaTarget::Half),
            Self::TimeoutRegrow => grow(world, 0, Nature::Helpful, AlphaTarget::Full),
            Self::LateSeed => match world.step() + LATE >= world.max_steps() {
                true => grow(world, 0, Nature::Helpful, AlphaTarget::Full),
                false => Order::WAIT,
            },
            Self::GerminatePrune => {
                removal(world, 0).unwrap_or_else(|| grow(world, 0, Nature::Helpful, AlphaTarget::Full))
            }
            Self::DegradeRecover => match removal(world, 0).filter(|_| stands_at(world, 0, AlphaTarget::Full)) {
                Some(order) => order,
                None => grow(world, 0, Nature::Harmful, AlphaTarget::Full),
            },
            Self::Toggle => toggle(world),
            // Commits one, then the one that it makes valuable.
            Self::Ransom => one_after_another(world, 2, Nature::Hostage, 1),
        }
    }
}

/// Germinates in an empty slot and moves the seed on as far as an order is needed for it.
fn grow(world: &World, slot: usize, nature: Nature, target: AlphaTarget) -> Order {
    let command = match world.seed(slot).map(|seed| seed.stage) {
        None => LifecycleCommand::Germinate {
            slot,
            blueprint: 0,
            style: GerminationStyle::LinearAdd,
            tempo: Tempo::Fast,
            target,
        },
        Some(_) => LifecycleCommand::Advance { slot },
    };
    match world.allows(&command) {
        true => Order { command, nature },
        false => Order::WAIT,
    }
}

/// The same, except that a lost seed is not grown again.
fn once(world: &World, target: AlphaTarget) -> Order {
    match world.seed(0) {
        None if world.step() > 1 => Order::WAIT,
        _ => grow(world, 0, Nature::Helpful, target),
    }
}

/// Grows and commits in one of the first `slots` after the other; each seed is held for `held` steps.
fn one_after_another(world: &World, slots: usize, nature: Nature, held: u32) -> Order {
    let is_committed = |slot: &usize| world.seed(*slot).is_some_and(|seed| seed.stage == SeedStage::Committed);
    let Some(slot) = (0..slots).find(|slot| !is_committed(slot)) else {
        return Order::WAIT;
    };
    commit(world, slot, held).unwrap_or_else(|| grow(world, slot, nature, AlphaTarget::Full))
}

/// Commits a seed that has been held for `held` steps.
fn commit(world: &World, slot: usize, held: u32) -> Option<Order> {
    let command = LifecycleCommand::Commit { slot };
    let seed = world.seed(slot)?;
    (seed.steps_in_stage >= held && world.allows(&command)).then_some(Order::of(command))
}

fn removal(world: &World, slot: usize) -> Option<Order> {
    let (speed, curve) = AT_ONCE;
    let command = LifecycleCommand::Prune { slot, speed, curve };
    world.allows(&command).then_some(Order::of(command))
}

fn stands_at(world: &World, slot: usize, target: AlphaTarget) -> bool {
    let seed = world.seed(slot);
    seed.is_some_and(|seed| seed.alpha.is_holding() && (seed.alpha.alpha() - target.value()).abs() < 1e-9)
}

fn toggle(world: &World) -> Order {
    let target = match stands_at(world, 0, AlphaTarget::Full) {
        true => AlphaTarget::Half,
        false => AlphaTarget::Full,
    };
    let (speed, curve) = AT_ONCE;
    let command = LifecycleCommand::SetAlphaTarget {
        slot: 0,
        style: GerminationStyle::LinearAdd,
        target,
        speed,
        curve,
    };
    let stands = stands_at(world, 0, AlphaTarget::Full) || stands_at(world, 0, AlphaTarget::Half);
    match stands && world.allows(&command) {
        true => Order::of(command),
        false => grow(world, 0, Nature::Helpful, AlphaTarget::Full),
    }
}

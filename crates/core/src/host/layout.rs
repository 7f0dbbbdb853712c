//! The policy's slot order.

use crate::growth::{InjectionSpec, SlotId};

/// The enabled slots in the policy's order: the position in this list is the *policy slot index*.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotLayout {
    slots: Vec<InjectionSpec>,
}

impl SlotLayout {
    /// The enabled slots among a host's injection points; a checked scenario enables at least one of these, and no others.
    pub fn new(injections: &[InjectionSpec], enabled: &[SlotId]) -> Self {
        let is_enabled = |spec: &&InjectionSpec| enabled.contains(&spec.slot);
        let mut slots: Vec<_> = injections.iter().filter(is_enabled).copied().collect();
        slots.sort_by_key(|spec| spec.order);
        Self { slots }
    }

    /// In policy order.
    pub fn slots(&self) -> &[InjectionSpec] {
        &self.slots
    }

    /// At least 1.
    #[expect(clippy::len_without_is_empty, reason = "a layout is never empty")]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Policy slot index of a slot.
    pub fn index_of(&self, slot: SlotId) -> Option<usize> {
        self.slots.iter().position(|spec| spec.slot == slot)
    }
}

#[cfg(test)]
mod tests;

//! The policy's slot order.

use crate::growth::{InjectionSpec, SlotId};

/// Why a list of slots does not fit a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum LayoutError {
    #[error("no slot is enabled; enable at least one of {}", list(.available))]
    Empty { available: Vec<SlotId> },
    #[error("slot `{0}` is enabled twice; name it once")]
    Duplicate(SlotId),
    #[error("slot `{slot}` is enabled, but the host has no such slot; it has {}", list(.available))]
    Unknown { slot: SlotId, available: Vec<SlotId> },
}

fn list(slots: &[SlotId]) -> String {
    let names: Vec<String> = slots.iter().map(|slot| format!("`{slot}`")).collect();
    names.join(", ")
}

/// The enabled slots in the policy's order: the position in this list is the *policy slot index*.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotLayout {
    slots: Vec<InjectionSpec>,
}

impl SlotLayout {
    /// Picks the enabled slots out of a host's injection points.
    ///
    /// # Errors
    /// [`LayoutError`] if none is enabled, or one is enabled twice or unknown.
    pub fn new(injections: &[InjectionSpec], enabled: &[SlotId]) -> Result<Self, LayoutError> {
        let available = || injections.iter().map(|spec| spec.slot).collect();
        if enabled.is_empty() {
            return Err(LayoutError::Empty { available: available() });
        }
        for (position, slot) in enabled.iter().enumerate() {
            if enabled[..position].contains(slot) {
                return Err(LayoutError::Duplicate(*slot));
            }
        }
        let mut slots = enabled
            .iter()
            .map(|&slot| {
                let spec = injections.iter().find(|spec| spec.slot == slot);
                spec.copied().ok_or_else(|| LayoutError::Unknown {
                    slot,
                    available: available(),
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        slots.sort_by_key(|spec| spec.order);
        Ok(Self { slots })
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

    /// The slot with a policy slot index.
    pub fn id_at(&self, index: usize) -> Option<SlotId> {
        self.slots.get(index).map(|spec| spec.slot)
    }
}

#[cfg(test)]
mod tests;

//! Where a host can grow: injection points and the policy's slot order (spec 01 §1.1, §2.2).

use serde::Serialize;

use crate::growth::SlotId;

/// Where on a block a slot sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Surface {
    PrePool = 1,
    PostPool = 2,
}

/// One place where a host can grow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InjectionSpec {
    pub slot: SlotId,
    pub channels: i64,
    /// Number of host ops already executed when the slot is applied: execution order.
    pub boundary: usize,
    pub surface: Surface,
    /// Row-major index: the policy's action order.
    pub order: u32,
    /// Relative depth in [0, 1], for display only.
    pub position: f32,
}

/// Why a list of slots does not fit a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("no slot is enabled; enable at least one of {}", list(.available))]
    Empty { available: Vec<SlotId> },
    #[error("slot `{0}` is enabled twice; name it once")]
    Duplicate(SlotId),
    #[error("slot `{slot}` is enabled, but the host lacks it; it has {}", list(.available))]
    Unknown { slot: SlotId, available: Vec<SlotId> },
    #[error("slots `{0}` and `{1}` have the same order or boundary; give each injection point its own")]
    Clash(SlotId, SlotId),
}

fn list(slots: &[SlotId]) -> String {
    let names: Vec<String> = slots.iter().map(|slot| format!("`{slot}`")).collect();
    names.join(", ")
}

/// The enabled slots in the policy's order: the position in this list is the *policy slot index* (spec 01 §2.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlotLayout {
    slots: Vec<InjectionSpec>,
}

impl SlotLayout {
    /// Picks the enabled slots out of a host's injection points.
    ///
    /// # Errors
    /// [`LayoutError`] if none is enabled, one is enabled twice or unknown, or two points clash.
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
        for (position, spec) in slots.iter().enumerate() {
            let clash = |other: &&InjectionSpec| other.order == spec.order || other.boundary == spec.boundary;
            if let Some(other) = slots[..position].iter().find(clash) {
                return Err(LayoutError::Clash(other.slot, spec.slot));
            }
        }
        Ok(Self { slots })
    }

    /// A full grid without a host, row-major, one channel a slot: for code that only needs slot indices.
    ///
    /// # Errors
    /// [`LayoutError::Empty`] if the grid has no cell.
    pub fn grid(rows: u16, cols: u16) -> Result<Self, LayoutError> {
        let cells = (0..rows).flat_map(|row| (0..cols).map(move |col| SlotId::new(row, col)));
        let count = f32::from(rows) * f32::from(cols);
        let injections: Vec<InjectionSpec> = cells
            .enumerate()
            .map(|(index, slot)| InjectionSpec {
                slot,
                channels: 1,
                boundary: index + 1,
                surface: Surface::PrePool,
                order: index as u32,
                position: (index as f32 + 0.5) / count,
            })
            .collect();
        let enabled: Vec<SlotId> = injections.iter().map(|spec| spec.slot).collect();
        Self::new(&injections, &enabled)
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

    pub fn index_of(&self, slot: SlotId) -> Option<usize> {
        self.slots.iter().position(|spec| spec.slot == slot)
    }

    pub fn id_at(&self, index: usize) -> Option<SlotId> {
        self.slots.get(index).map(|spec| spec.slot)
    }

    pub fn channels_of(&self, slot: SlotId) -> Option<i64> {
        self.index_of(slot).map(|index| self.slots[index].channels)
    }

    /// Policy slot indices in the order in which a forward pass meets them.
    pub fn execution_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.slots.len()).collect();
        order.sort_by_key(|&index| self.slots[index].boundary);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(names: &[&str]) -> Vec<SlotId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn injections() -> Vec<InjectionSpec> {
        let spec = crate::scenario::CnnSpec {
            in_channels: 3,
            base_channels: 8,
            n_blocks: 3,
            kernel_size: 3,
            pool_layers: 3,
            input_hw: 32,
        };
        crate::host::injection_specs(&spec).unwrap()
    }

    #[test]
    fn policy_order_is_row_major_whatever_the_order_of_enabling() {
        let layout = SlotLayout::new(&injections(), &slots(&["r1c0", "r0c2", "r0c0"])).unwrap();

        let order: Vec<SlotId> = layout.slots().iter().map(|spec| spec.slot).collect();
        assert_eq!(order, slots(&["r0c0", "r0c2", "r1c0"]));
        assert_eq!(layout.execution_order(), [0, 2, 1]);
        assert_eq!(layout.index_of(SlotId::new(1, 0)), Some(2));
        assert_eq!(layout.id_at(1), Some(SlotId::new(0, 2)));
        assert_eq!(layout.channels_of(SlotId::new(0, 2)), Some(32));
        assert_eq!(layout.channels_of(SlotId::new(0, 1)), None);
        assert_eq!(layout.id_at(3), None);
    }

    #[test]
    fn mistakes_name_the_slot_and_what_there_is() {
        let error = |names: &[&str]| SlotLayout::new(&injections(), &slots(names)).unwrap_err().to_string();

        assert_eq!(error(&["r0c0", "r0c0"]), "slot `r0c0` is enabled twice; name it once");
        assert_eq!(
            error(&["r2c0"]),
            "slot `r2c0` is enabled, but the host lacks it; it has `r0c0`, `r0c1`, `r0c2`, `r1c0`, `r1c1`, `r1c2`"
        );
        assert!(error(&[]).starts_with("no slot is enabled"));
    }

    #[test]
    fn a_grid_numbers_its_cells_row_by_row() {
        let grid = SlotLayout::grid(2, 11).unwrap();

        assert_eq!((grid.len(), grid.id_at(10)), (22, Some(SlotId::new(0, 10))));
        assert_eq!(grid.index_of(SlotId::new(1, 0)), Some(11));
    }

    /// The scenario names the slots of a host before there is one; both lists are the same.
    #[test]
    fn a_host_has_the_slots_that_its_scenario_promises() {
        for preset in crate::scenario::task_presets() {
            let spec = preset.spec.host;
            let built: Vec<SlotId> = crate::host::injection_specs(&spec)
                .unwrap()
                .iter()
                .map(|injection| injection.slot)
                .collect();
            assert_eq!(built, spec.slots(), "{}", preset.spec.name);
            let channels: Vec<i64> = spec.channels().collect();
            let layout = SlotLayout::new(&crate::host::injection_specs(&spec).unwrap(), &built).unwrap();
            for injection in layout.slots() {
                assert_eq!(injection.channels, channels[usize::from(injection.slot.col)]);
            }
        }
    }
}

//! The lives of a round's seeds, drawn together from the events about them: the rows of the table `seeds`, each the event of its
//! germination with what followed.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use crate::growth::SlotId;
use crate::telemetry::{Event, Payload};

/// The seeds of the round that is read.
#[derive(Default)]
pub(super) struct SeedLives {
    by_id: HashMap<String, (u64, Value)>,
    /// The seed that was planted last in a slot of an env.
    held: BTreeMap<(u32, SlotId), String>,
}

impl SeedLives {
    /// The seed in a slot.
    pub(super) fn holder(&self, env: Option<u32>, slot: SlotId) -> Option<&String> {
        self.held.get(&(env?, slot))
    }

    /// Takes what an event says of seeds; `row` is the event as a file has it.
    pub(super) fn take(&mut self, event: &Event, row: &Value) {
        match (&event.payload, &event.seed_id, event.env.zip(event.slot)) {
            (Payload::SeedGerminated(_), Some(id), Some(place)) => {
                self.held.insert(place, id.clone());
                let mut life = row.clone();
                (life["entered"], life["last_stage"]) = (json!({}), "GERMINATED".into());
                self.by_id.insert(id.clone(), (event.seq, life));
            }
            (Payload::SeedStageChanged(change), Some(id), _) => self.change(id, |life| {
                let entered = &mut life["entered"][change.to.to_string()];
                if entered.is_null() {
                    *entered = row["step"].clone();
                }
                // What follows a prune is the slot's, not the seed's.
                if life["pruned"].is_null() {
                    life["last_stage"] = change.to.to_string().into();
                }
            }),
            (Payload::SeedCommitted(_), Some(id), _) => self.change(id, |life| life["end"] = row["data"].clone()),
            (Payload::SeedPruned(pruned), Some(id), _) => self.change(id, |life| {
                (life["end"], life["pruned"]) = (row["data"].clone(), row.clone());
                life["last_stage"] = pruned.stage.to_string().into();
            }),
            (Payload::CounterfactualMatrix(matrix), ..) => {
                for (player, id) in matrix.seed_ids.iter().enumerate() {
                    let measured =
                        json!({ "points": matrix.contribution(player), "error": matrix.contribution_error(player) });
                    self.change(id, |life| life["contribution"] = measured);
                }
            }
            (Payload::Shapley(shapley), ..) => {
                for (id, value) in shapley.seed_ids.iter().zip(&shapley.values) {
                    self.change(id, |life| life["shapley"] = json!(value.mean));
                }
            }
            _ => {}
        }
    }

    /// All of them, in the order in which they germinated; the next round begins.
    pub(super) fn close(&mut self) -> impl Iterator<Item = Value> + use<> {
        self.held.clear();
        let mut lives: Vec<_> = self.by_id.drain().map(|(_, life)| life).collect();
        lives.sort_by_key(|(seq, _)| *seq);
        lives.into_iter().map(|(_, life)| life)
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Value)) {
        if let Some((_, life)) = self.by_id.get_mut(id) {
            change(life);
        }
    }
}

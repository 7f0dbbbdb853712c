//! Stored actions under the current weights, on the device and with gradient.
//!
//! The same distributions as the host sampler's, written for whole batches of sequences: masks are rebuilt from their
//! stored rows, the branch of each head is that of the stored op, and nothing is read back.

use tch::{Device, Kind, Tensor};

use super::distribution::Floor;
use super::layout::{LogitLayout, ops_of};
use crate::actions::{HEADS, Head, OPS, RELEVANCE};
use crate::growth::LifecycleOp;

/// Logit of a member that is not valid: representable in half precision, and its exponential is 0 in single.
const FILL: f64 = -1.0e4;

/// What evaluation looks up by op, on the policy's device.
#[derive(Debug)]
pub struct OpTables {
    /// `bool [6, 8]`: the head matters to the op.
    relevance: Tensor,
    /// By head, `i64 [6]`: place of the op among those that the head matters to.
    branch: Vec<Tensor>,
    /// By head, `i64 [K]`: codes of the ops that the head matters to.
    ops: Vec<Tensor>,
}

impl OpTables {
    /// On `device`.
    pub fn new(device: Device) -> Self {
        let relevance: Vec<i64> = RELEVANCE.as_flattened().iter().map(|&is| i64::from(is)).collect();
        let upload = |values: &[i64]| Tensor::from_slice(values).to_device(device);
        let branch = |head: Head| {
            let place = |op: &LifecycleOp| ops_of(head).position(|known| known == *op).unwrap_or(0) as i64;
            let places: Vec<i64> = LifecycleOp::ALL.iter().map(place).collect();
            upload(&places)
        };
        let ops = |head: Head| {
            let codes: Vec<i64> = ops_of(head).map(|op| op.code() as i64).collect();
            upload(&codes)
        };
        Self {
            relevance: upload(&relevance).view([OPS as i64, HEADS as i64]).to_kind(Kind::Bool),
            branch: Head::ALL.map(branch).into(),
            ops: Head::ALL.map(ops).into(),
        }
    }

    /// A table's entry for each element of `op [B, T]`.
    fn look_up(table: &Tensor, op: &Tensor) -> Tensor {
        let mut shape = op.size();
        shape.extend_from_slice(&table.size()[1..]);
        table.index_select(0, &op.flatten(0, -1)).view(shape.as_slice())
    }
}

/// Stored masks and actions, taken apart. Shapes start with `[B, T]`.
#[derive(Debug)]
pub struct Stored {
    /// `[.., 8]`.
    actions: Tensor,
    /// `bool [.., 8]`: the head matters to the stored op.
    relevant: Tensor,
    /// `bool [.., 6]`.
    ops: Tensor,
    /// `bool [.., 6, S]`.
    slot_by_op: Tensor,
    /// `bool [.., S, NB]`.
    blueprint_by_slot: Tensor,
    /// By head: `bool [.., n]`, the members that were valid given the stored op and slot.
    chosen: Vec<Tensor>,
}

impl Stored {
    /// `masks`: rows of [`MaskSet::write_row`](crate::actions::MaskSet::write_row).
    pub fn new(masks: &Tensor, actions: &Tensor, slots: usize, blueprints: usize, tables: &OpTables) -> Self {
        let (ops, slots, blueprints) = (OPS as i64, slots as i64, blueprints as i64);
        let outer = actions.size()[..2].to_vec();
        let shaped = |tail: &[i64]| [&outer, tail].concat();
        let slot_by_op = masks.narrow(-1, 0, ops * slots).reshape(shaped(&[ops, slots]));
        let blueprint_by_slot = masks
            .narrow(-1, ops * slots, slots * blueprints)
            .reshape(shaped(&[slots, blueprints]));
        let op = actions.select(-1, Head::Op as i64);
        let op_mask = slot_by_op.any_dim(-1, false);
        let mut first = ops * slots + slots * blueprints;
        let chosen = Head::ALL.map(|head| match head {
            Head::Op => op_mask.shallow_clone(),
            Head::Slot => pick_row(&slot_by_op, &op),
            Head::Blueprint => pick_row(&blueprint_by_slot, &actions.select(-1, Head::Slot as i64)),
            _ => {
                let size = head.size(0, 0) as i64;
                first += size;
                masks.narrow(-1, first - size, size)
            }
        });
        Self {
            relevant: OpTables::look_up(&tables.relevance, &op),
            actions: actions.shallow_clone(),
            ops: op_mask,
            slot_by_op,
            blueprint_by_slot,
            chosen: chosen.into(),
        }
    }

    /// `[.., 1]`.
    fn action(&self, head: Head) -> Tensor {
        self.actions.narrow(-1, head as i64, 1)
    }

    /// `bool [.., S]`: where something may germinate.
    fn germinating_slots(&self) -> Tensor {
        self.slot_by_op.select(2, LifecycleOp::Germinate.code() as i64)
    }

    /// Members that each of a head's `rows` offers: `[.., rows, n]`, or `[.., 1, n]` where all are alike.
    fn base_mask(&self, head: Head, rows: i64, tables: &OpTables) -> Tensor {
        match head {
            Head::Slot => self.slot_by_op.index_select(2, &tables.ops[head as usize]),
            Head::Blueprint if rows > 1 => self.blueprint_by_slot.shallow_clone(),
            Head::Blueprint => {
                // Of the lowest slot that may germinate.
                let slots = self.germinating_slots();
                let lowest = slots.cumsum(-1, Kind::Int64).eq(1).logical_and(&slots);
                lowest
                    .unsqueeze(-1)
                    .logical_and(&self.blueprint_by_slot)
                    .any_dim(2, true)
            }
            _ => self.chosen[head as usize].unsqueeze(2),
        }
    }
}

/// All heads' terms, `[B, T, 8]` each, in storage order.
#[derive(Debug)]
pub struct HeadTerms {
    pub log_probs: Tensor,
    pub entropy_causal: Tensor,
    pub entropy_available: Tensor,
}

/// `logits`: `[B, T, A]`.
pub fn head_terms(
    logits: &Tensor,
    layout: &LogitLayout,
    stored: &Stored,
    tables: &OpTables,
    floors: &[Floor; HEADS],
) -> HeadTerms {
    let logits = logits.to_kind(Kind::Float);
    let terms = Head::ALL.map(|head| {
        let columns = layout.head(head);
        let mut shape = logits.size();
        shape.truncate(2);
        shape.extend([columns.rows as i64, columns.size as i64]);
        let rows = logits
            .narrow(-1, columns.first as i64, columns.width() as i64)
            .reshape(shape);
        one_head(head, &rows, stored, tables, floors[head as usize])
    });
    let stack = |part: fn(&[Tensor; 3]) -> &Tensor| Tensor::stack(&terms.each_ref().map(part), -1);
    HeadTerms {
        log_probs: stack(|terms| &terms[0]),
        entropy_causal: stack(|terms| &terms[1]),
        entropy_available: stack(|terms| &terms[2]),
    }
}

/// Log-probability, entropy of the chosen branch, mean entropy of the open branches: `[B, T]` each.
fn one_head(head: Head, rows: &Tensor, stored: &Stored, tables: &OpTables, floor: Floor) -> [Tensor; 3] {
    let index = head as usize;
    let has_row_per_slot = head == Head::Blueprint && rows.size()[2] > 1;
    let mask = stored.base_mask(head, rows.size()[2], tables);
    let log_p = masked_log_softmax(rows, &mask);
    let entropy = normalised_entropy(&log_p, &mask);
    let op = stored.actions.select(-1, Head::Op as i64);
    let slot = stored.actions.select(-1, Head::Slot as i64);
    let relevant = stored.relevant.select(-1, head as i64);

    let chosen_mask = &stored.chosen[index];
    let (chosen_log_p, chosen_entropy) = match head {
        _ if has_row_per_slot => {
            let entropy = entropy.gather(-1, &slot.unsqueeze(-1), false).squeeze_dim(-1);
            (pick_row(&log_p, &slot), entropy)
        }
        // The blueprints of the chosen slot, which need not be those of the lowest one.
        Head::Blueprint => {
            let log_p = masked_log_softmax(&rows.select(2, 0), chosen_mask);
            let entropy = normalised_entropy(&log_p, chosen_mask);
            (log_p, entropy)
        }
        _ if log_p.size()[2] == 1 => (log_p.select(2, 0), entropy.select(2, 0)),
        _ => {
            let branch = OpTables::look_up(&tables.branch[index], &op);
            let entropy = entropy.gather(-1, &branch.unsqueeze(-1), false).squeeze_dim(-1);
            (pick_row(&log_p, &branch), entropy)
        }
    };
    let log_prob = floored_log_prob(&chosen_log_p, chosen_mask, &stored.action(head), floor);
    let available = if head == Head::Op {
        entropy.select(2, 0)
    } else {
        let open = if has_row_per_slot {
            stored.germinating_slots()
        } else {
            stored.ops.index_select(-1, &tables.ops[index])
        }
        .to_kind(Kind::Float);
        let sum = (entropy * &open).sum_dim_intlist(-1, false, Kind::Float);
        sum / open.sum_dim_intlist(-1, false, Kind::Float).clamp_min(1.0)
    };
    [
        log_prob.where_scalarother(&relevant, 0.0),
        chosen_entropy.where_scalarother(&relevant, 0.0),
        available,
    ]
}

/// Row `index [B, T]` of `x [B, T, R, n]`.
fn pick_row(x: &Tensor, index: &Tensor) -> Tensor {
    let size = x.size();
    let index = index
        .unsqueeze(-1)
        .unsqueeze(-1)
        .expand([size[0], size[1], 1, size[3]], false);
    x.gather(2, &index, false).squeeze_dim(2)
}

/// Over the last dimension; `mask` broadcasts.
fn masked_log_softmax(logits: &Tensor, mask: &Tensor) -> Tensor {
    logits.where_scalarother(mask, FILL).log_softmax(-1, Kind::Float)
}

/// Entropy over ln(valid members), 0 for fewer than two, without any floor.
fn normalised_entropy(log_p: &Tensor, mask: &Tensor) -> Tensor {
    let terms = (log_p.exp() * log_p).where_scalarother(mask, 0.0);
    let entropy = -terms.sum_dim_intlist(-1, false, Kind::Float);
    let valid = mask.sum_dim_intlist(-1, false, Kind::Float);
    (entropy / valid.clamp_min(2.0).log()).where_scalarother(&valid.ge(2.0), 0.0)
}

/// Log-probability of `action [B, T, 1]` with its floor, `[B, T]`.
fn floored_log_prob(log_p: &Tensor, mask: &Tensor, action: &Tensor, floor: Floor) -> Tensor {
    let of_action = log_p.gather(-1, action, false).squeeze_dim(-1);
    if floor.epsilon == 0.0 {
        return of_action;
    }
    let valid = mask.sum_dim_intlist(-1, false, Kind::Float).clamp_min(1.0);
    let least = floor.for_members_of(&valid);
    let share: Tensor = 1.0 - &valid * &least;
    (share * of_action.exp() + least).log()
}

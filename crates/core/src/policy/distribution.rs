//! One masked categorical distribution with its exploration floor, in f64 on the host, and one action of one env from its logits: op,
//! then slot, then the rest; and stored actions under the current weights, on the device and with gradient.
//!
//! The latter are the same distributions, written for whole batches of sequences: masks are rebuilt from their stored rows, the
//! branch of each head is that of the stored op, and nothing is read back.

use tch::{Device, Kind, Tensor};

use super::layout::{LogitLayout, ops_of};
use crate::actions::{Choices, HEADS, Head, HeadIndices, MaskSet, OPS, RELEVANCE, Sample, relevant};
use crate::growth::LifecycleOp;
use crate::random::Draw;

/// Minimum probability of a valid member, in the storage order of the heads: a choice that is never tried is never learnt.
const FLOORS: [f64; HEADS] = [0.03, 0.03, 0.03, 0.05, 0.03, 0.03, 0.02, 0.01];
/// Share of a head's probability that its floor takes at most, so that there is room for a preference.
const MOST: f64 = 0.5;

/// The probability that every valid member of a head keeps: a uniform distribution is mixed in, which keeps the direction of
/// the gradient. 0: none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// The floor before many valid members cap it.
    pub epsilon: f64,
}

impl Floor {
    /// The floors of all heads, in storage order, each scaled by `scale`.
    pub fn of_heads(scale: f64) -> [Self; HEADS] {
        FLOORS.map(|floor| Self { epsilon: scale * floor })
    }

    /// The minimum probability of each of `valid` members.
    fn for_members(self, valid: usize) -> f64 {
        self.epsilon.min(MOST / valid as f64)
    }

    /// The same for many steps, on their device.
    fn for_members_of(self, valid: &Tensor) -> Tensor {
        (valid.reciprocal() * MOST).clamp_max(self.epsilon)
    }
}

/// Probabilities of a head's members, floored.
#[derive(Clone, Debug)]
pub struct Categorical {
    valid: Choices,
    probabilities: [f64; Choices::CAPACITY],
    log_probabilities: [f64; Choices::CAPACITY],
}

impl Categorical {
    /// `logits`: one per member, finite. `valid` is not empty: the masks' invariant.
    pub fn new(logits: &[f32], valid: Choices, floor: Floor) -> Self {
        let mut probabilities = [0.0; Choices::CAPACITY];
        let mut log_probabilities = [f64::NEG_INFINITY; Choices::CAPACITY];
        let members = || valid.iter().take_while(|&member| member < logits.len());
        let logit = |member: usize| f64::from(logits[member]);
        let highest = members().map(logit).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = members().map(|member| (logit(member) - highest).exp()).sum();
        let log_sum = highest + sum.ln();
        for member in members() {
            let log_probability = logit(member) - log_sum;
            log_probabilities[member] = log_probability;
            probabilities[member] = log_probability.exp();
        }
        let mut distribution = Self {
            valid,
            probabilities,
            log_probabilities,
        };
        distribution.raise_to(floor);
        distribution
    }

    fn raise_to(&mut self, floor: Floor) {
        if floor.epsilon == 0.0 {
            return;
        }
        let count = self.valid.len();
        let least = floor.for_members(count);
        let share = 1.0 - count as f64 * least;
        for member in self.valid.iter() {
            self.probabilities[member] = share * self.probabilities[member] + least;
        }
        for member in self.valid.iter() {
            self.log_probabilities[member] = self.probabilities[member].ln();
        }
    }

    /// 0 for a member that is not valid.
    pub fn probability(&self, member: usize) -> f64 {
        self.probabilities[member]
    }

    /// Natural logarithm; negative infinity for a member that is not valid.
    pub fn log_probability(&self, member: usize) -> f64 {
        self.log_probabilities[member]
    }

    /// The member that `uniform` in (0, 1) falls on, by inverse CDF over ascending members.
    pub fn draw(&self, uniform: f64) -> usize {
        let mut cumulated = 0.0;
        let mut last = 0;
        for member in self.valid.iter() {
            cumulated += self.probabilities[member];
            last = member;
            if uniform < cumulated {
                break;
            }
        }
        last
    }

    /// The likeliest member, the lowest of equals.
    pub fn likeliest(&self) -> usize {
        let mut best = self.valid.lowest().unwrap_or(0);
        for member in self.valid.iter() {
            if self.probabilities[member] > self.probabilities[best] {
                best = member;
            }
        }
        best
    }
}

/// The way in which a learned controller chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecideMode {
    /// Draws from its distribution.
    #[default]
    Sample,
    /// Takes the likeliest member of each head, the lowest of equals.
    Greedy,
}

/// Chooses a member of every head and fills `log_probs` and `op_probabilities` of the sample.
///
/// `uniforms`: one per head, in storage order, whether it is needed or not. The masks' invariants hold.
pub fn choose(
    logits: &[f32],
    layout: &LogitLayout,
    masks: &MaskSet,
    floors: &[Floor; HEADS],
    uniforms: &[f64; HEADS],
    mode: DecideMode,
) -> (HeadIndices, Sample) {
    let mut sample = Sample {
        log_probs: [0.0; HEADS],
        op_probabilities: [0.0; OPS],
        value: f32::NAN,
    };
    let mut pick = |head: Head, op: LifecycleOp, slot: usize| {
        let members = masks.effective(head, op, slot);
        let index = head as usize;
        let logits = &logits[layout.columns(head, op, slot)];
        let distribution = Categorical::new(logits, members, floors[index]);
        let member = match mode {
            DecideMode::Sample => distribution.draw(uniforms[index]),
            DecideMode::Greedy => distribution.likeliest(),
        };
        sample.log_probs[index] = distribution.log_probability(member) as f32;
        if head == Head::Op {
            sample.op_probabilities = std::array::from_fn(|op| distribution.probability(op) as f32);
        }
        member
    };
    // Every op has the op head, so that any op will do here.
    let op = LifecycleOp::from_code(pick(Head::Op, LifecycleOp::Wait, 0)).unwrap_or(LifecycleOp::Wait);
    let mut chosen = Head::ALL.map(Head::placeholder);
    chosen[Head::Op as usize] = op.code();
    if relevant(op, Head::Slot) {
        chosen[Head::Slot as usize] = pick(Head::Slot, op, 0);
    }
    let slot = chosen[Head::Slot as usize];
    for head in Head::ALL {
        if !matches!(head, Head::Op | Head::Slot) && relevant(op, head) {
            chosen[head as usize] = pick(head, op, slot);
        }
    }
    (chosen.map(|member| u8::try_from(member).unwrap_or(u8::MAX)), sample)
}

/// One number in (0, 1) per head, in storage order: eight 32-bit words of the stream, their top 24 bits each.
pub fn head_uniforms(rng: &mut impl Draw) -> [f64; HEADS] {
    let pairs: [u64; HEADS / 2] = std::array::from_fn(|_| rng.next_u64());
    std::array::from_fn(|head| {
        let word = (pairs[head / 2] >> (32 * (head % 2))) as u32;
        (f64::from(word >> 8) + 0.5) / f64::from(1u32 << 24)
    })
}

/// Logit of a member that is not valid: representable in half precision, and its exponential is 0 in single.
const FILL: f64 = -1.0e4;

/// Tables that evaluation looks up by op, on the policy's device.
#[derive(Debug)]
pub struct OpTables {
    /// `bool [6, 8]`: the head matters to the op.
    relevance: Tensor,
    /// The place of the op among those that the head matters to, by head, `i64 [6]`.
    branch: Vec<Tensor>,
    /// Codes of the ops that the head matters to, by head, `i64 [K]`.
    ops: Vec<Tensor>,
}

impl OpTables {
    /// The tables on `device`.
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
    /// The members that were valid given the stored op and slot, by head: `bool [.., n]`.
    chosen: Vec<Tensor>,
}

impl Stored {
    /// `masks`: rows of [`MaskSet::write_row`].
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

    /// Members that each of a head's `rows` offers: `[.., rows, n]`, or `[.., 1, n]` where all rows are equal.
    fn base_mask(&self, head: Head, rows: i64, tables: &OpTables) -> Tensor {
        match head {
            Head::Slot => self.slot_by_op.index_select(2, &tables.ops[head as usize]),
            Head::Blueprint if rows > 1 => self.blueprint_by_slot.shallow_clone(),
            Head::Blueprint => {
                // Blueprints of the lowest slot that may germinate.
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

/// The terms of all heads, `[B, T, 8]` each, in storage order.
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

/// The logarithm of a softmax over the last dimension; `mask` broadcasts.
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

#[cfg(test)]
mod tests;

//! Part `lifecycle.blueprints`: what a scenario may choose about the built-in blueprints that have something to choose.

use crate::schema::section;

/// Largest factor by which a blueprint's waist may be narrower than its slot.
const MOST_REDUCTION: i128 = 1024;
/// Most heads of an attention, as of a host.
const MOST_HEADS: i128 = 256;
/// Most channels between two maps.
const MOST_RANK: i128 = 4096;
/// Largest factor by which an MLP's hidden layer may be wider than its slot.
const MOST_EXPANSION: i128 = 16;

section! {
    /// What is chosen about built-in blueprints; exact parameter counts follow it.
    #[derive(Copy, Eq)]
    pub struct BlueprintsConfig {
        /// Squeeze-and-excite channel gates; in texts causal attention over all positions.
        attention: AttentionOptions;
        /// 1×1, 3×3 and 1×1 convolutions through fewer channels.
        bottleneck: BottleneckOptions;
        /// Two linear maps of texts.
        lora: LoraOptions;
        /// Two linear maps of texts, through more channels.
        lora_large: LoraLargeOptions;
        /// Two linear maps of texts and GELU.
        mlp_small: MlpSmallOptions;
        /// Two linear maps of texts and GELU, through more channels.
        mlp: MlpOptions;
        /// Causal attention over a sliding window of a text.
        flex_attention: FlexAttentionOptions;
    }
}

section! {
    /// Of squeeze-and-excite gates, and of the attention that has their name in texts.
    #[derive(Copy, Eq)]
    pub struct AttentionOptions {
        /// Of images: the slot's channels over the hidden ones, of which there is at least 1.
        reduction: i64 = 4, integer(1, MOST_REDUCTION);
        /// Of texts: heads, a divisor of the slot's channels.
        heads: i64 = 4, integer(1, MOST_HEADS);
    }
}

section! {
    /// Of a bottleneck.
    #[derive(Copy, Eq)]
    pub struct BottleneckOptions {
        /// The slot's channels over those of the waist.
        reduction: i64 = 4, integer(1, MOST_REDUCTION);
        /// Fewest channels of the waist, however narrow the slot is.
        min_waist: i64 = 8, integer(1, 4096);
    }
}

section! {
    /// Of two linear maps.
    #[derive(Copy, Eq)]
    pub struct LoraOptions {
        /// Channels between them.
        rank: i64 = 8, integer(1, MOST_RANK);
    }
}

section! {
    /// Of two linear maps through more channels.
    #[derive(Copy, Eq)]
    pub struct LoraLargeOptions {
        /// Channels between them.
        rank: i64 = 32, integer(1, MOST_RANK);
    }
}

section! {
    /// Of two linear maps and GELU.
    #[derive(Copy, Eq)]
    pub struct MlpSmallOptions {
        /// Channels between them over the slot's.
        expansion: i64 = 2, integer(1, MOST_EXPANSION);
    }
}

section! {
    /// Of two linear maps and GELU through more channels.
    #[derive(Copy, Eq)]
    pub struct MlpOptions {
        /// Channels between them over the slot's.
        expansion: i64 = 4, integer(1, MOST_EXPANSION);
    }
}

section! {
    /// Of causal attention over a sliding window.
    #[derive(Copy, Eq)]
    pub struct FlexAttentionOptions {
        /// Heads, a divisor of the slot's channels.
        heads: i64 = 4, integer(1, MOST_HEADS);
        /// Positions that it sees, its own the last of them.
        window: i64 = 64, integer(1, 65536);
    }
}

//! Part `lifecycle.blueprints`: what a scenario may choose about each built-in blueprint, and how seeds are initialized.

use crate::schema::{choice, section};

choice! {
    /// How a new seed is initialized. It changes nothing at first with any choice; what differs is its first gradient.
    #[derive(Copy, Eq, PartialOrd, Ord)]
    pub enum SeedInit {
        /// random weights behind a last factor or norm that starts at 0
        ZeroGain,
        /// random weights behind a last linear map that starts at 0; no norm follows it
        ZeroOutput,
        /// as zero_gain, and what feeds the zero factor is turned to its largest first gradient (GradMax)
        Gradmax,
        /// as zero_gain, and every linear map is scaled to a mean square of 1 over one batch (LSUV)
        Statistics,
    }
}

impl SeedInit {
    /// In the order of their declaration.
    pub const ALL: [Self; 4] = [Self::ZeroGain, Self::ZeroOutput, Self::Gradmax, Self::Statistics];

    /// Whether a batch of the env's data is needed at birth.
    pub const fn needs_data(self) -> bool {
        matches!(self, Self::Gradmax | Self::Statistics)
    }
}

/// Largest factor by which a blueprint's waist may be narrower than its slot.
const MOST_REDUCTION: i128 = 1024;
/// Most heads of an attention, as of a host.
const MOST_HEADS: i128 = 256;
/// Most channels between two maps.
const MOST_RANK: i128 = 4096;
/// Largest factor by which an MLP's hidden layer may be wider than its slot.
const MOST_EXPANSION: i128 = 16;

section! {
    /// What is chosen about each built-in blueprint; exact parameter counts follow it.
    #[derive(Copy, Eq)]
    pub struct BlueprintsConfig {
        /// One 3×3 convolution.
        conv_light: StackOptions;
        /// Squeeze-and-excite channel gates; in texts causal attention over all positions.
        attention: AttentionOptions;
        /// Group norm, in texts layer norm, blended in by one learned scale.
        norm: NormOptions;
        /// Depthwise 3×3, then pointwise convolution.
        depthwise: StackOptions;
        /// 1×1, 3×3 and 1×1 convolutions through fewer channels.
        bottleneck: BottleneckOptions;
        /// One 1×1 convolution.
        conv_small: StackOptions;
        /// Two 3×3 convolutions.
        conv_heavy: StackOptions;
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
    /// Of a plain stack of convolutions.
    #[derive(Copy, Eq)]
    pub struct StackOptions {
        /// How its seeds are initialized. None: lifecycle.seed_init.
        init: Option<SeedInit>;
    }
}

section! {
    /// Of squeeze-and-excite gates, and of the attention that has their name in texts.
    #[derive(Copy, Eq)]
    pub struct AttentionOptions {
        /// How its seeds are initialized. None: lifecycle.seed_init.
        init: Option<SeedInit>;
        /// Of images: the slot's channels over the hidden ones, of which there is at least 1.
        reduction: i64 = 4, integer(1, MOST_REDUCTION);
        /// Of texts: heads, a divisor of the slot's channels.
        heads: i64 = 4, integer(1, MOST_HEADS);
    }
}

section! {
    /// Of a group norm.
    #[derive(Copy, Eq)]
    pub struct NormOptions {
        /// How its seeds are initialized: it has no linear map, so only zero_gain. None: lifecycle.seed_init.
        init: Option<SeedInit>;
    }
}

section! {
    /// Of a bottleneck.
    #[derive(Copy, Eq)]
    pub struct BottleneckOptions {
        /// How its seeds are initialized. None: lifecycle.seed_init.
        init: Option<SeedInit>;
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

impl BlueprintsConfig {
    /// The init that is written for a blueprint; `None` where `lifecycle.seed_init` decides.
    pub fn init_of(&self, blueprint: &str) -> Option<SeedInit> {
        match blueprint {
            "conv_light" => self.conv_light.init,
            "attention" => self.attention.init,
            "norm" => self.norm.init,
            "depthwise" => self.depthwise.init,
            "bottleneck" => self.bottleneck.init,
            "conv_small" => self.conv_small.init,
            "conv_heavy" => self.conv_heavy.init,
            _ => None,
        }
    }
}

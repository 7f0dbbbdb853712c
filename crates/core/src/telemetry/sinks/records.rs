//! The records of a TensorBoard event file: a protobuf message between its length and two checksums (TFRecord), as far
//! as curves, the layout of charts and hyperparameters need it.

/// What the first record of a file says of its format.
pub const FILE_VERSION: &str = "brain.Event:2";

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Scalar<'a> {
    /// Name of the curve.
    pub tag: &'a str,
    /// Height of the point.
    pub value: f32,
    /// Position of the point.
    pub step: u64,
}

/// A chart that shows the curves of several tags.
#[derive(Clone, Copy, Debug)]
pub struct Chart<'a> {
    /// Above the chart.
    pub title: &'a str,
    /// Regular expressions of the curves in it.
    pub tags: &'a [&'a str],
}

/// Value of a hyperparameter.
#[derive(Clone, Debug, PartialEq)]
pub enum HParam {
    /// A number; sorted and filtered by its range.
    Number(f64),
    /// A flag.
    Flag(bool),
    /// Anything else.
    Text(String),
}

impl HParam {
    /// Of a value as a scenario writes it.
    pub fn of_ron(value: &str) -> Self {
        match value {
            "true" => Self::Flag(true),
            "false" => Self::Flag(false),
            value => value
                .parse()
                .map_or_else(|_| Self::Text(value.trim_matches('"').into()), Self::Number),
        }
    }
}

/// An encoded `Event` message: `wall_time = 1 (double), step = 2 (varint), file_version = 3 (string), summary = 5 { value = 1 }`.
/// A value is `tag = 1 (string)` with `simple_value = 2 (float)`, or with `tensor = 8` and
/// `metadata = 9 { plugin_data = 1 { plugin_name = 1 (string), content = 2 (bytes) } }` for one of TensorBoard's plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(Vec<u8>);

impl Record {
    /// The first record of a file; `wall_time` in seconds since 1970.
    pub fn version(wall_time: f64, version: &str) -> Self {
        Self([double(1, wall_time), text(3, version)].concat())
    }

    /// A point of a curve.
    pub fn scalar(wall_time: f64, scalar: &Scalar) -> Self {
        let value = [text(1, scalar.tag), float(2, scalar.value)].concat();
        Self::summary(wall_time, scalar.step, &value)
    }

    /// Which charts the tab "Custom scalars" shows:
    /// `Layout { category = 2 { title = 1, chart = 2 { title = 1, multiline = 2 { tag = 1 } } } }`.
    pub fn layout(wall_time: f64, categories: &[(&str, &[Chart])]) -> Self {
        let chart = |chart: &Chart| {
            let tags: Vec<u8> = chart.tags.iter().flat_map(|tag| text(1, tag)).collect();
            bytes(2, &[text(1, chart.title), bytes(2, &tags)].concat())
        };
        let layout = categories.iter().flat_map(|(title, charts)| {
            let charts = charts.iter().flat_map(chart).collect();
            bytes(2, &[text(1, title), charts].concat())
        });
        // dtype = 1 (7: string), tensor_shape = 2 (none: a scalar), string_val = 8
        let tensor = [uint(1, 7), bytes(2, &[]), bytes(8, &layout.collect::<Vec<_>>())].concat();
        Self::of_plugin(wall_time, "custom_scalars__config__", ("custom_scalars", &[]), &tensor)
    }

    /// What was set for this run, shown by the tab "HParams":
    /// `HParamsPluginData { session_start_info = 3 { hparams = 1 (map of google.protobuf.Value), start_time_secs = 5 } }`.
    pub fn hparams<'a>(wall_time: f64, hparams: impl IntoIterator<Item = (&'a String, &'a HParam)>) -> Self {
        let entries = hparams.into_iter().flat_map(|(name, value)| {
            let value = match value {
                HParam::Number(number) => double(2, *number),
                HParam::Text(value) => text(3, value),
                HParam::Flag(flag) => uint(4, u64::from(*flag)),
            };
            bytes(1, &[text(1, name), bytes(2, &value)].concat())
        });
        let info = [entries.collect(), double(5, wall_time)].concat();
        // The plugin ignores the tensor, but a value has to have one: dtype = 1 (1: float).
        let tensor = [uint(1, 1), bytes(2, &[]), float(5, 0.0)].concat();
        Self::of_plugin(
            wall_time,
            "_hparams_/session_start_info",
            ("hparams", &bytes(3, &info)),
            &tensor,
        )
    }

    fn of_plugin(wall_time: f64, tag: &str, (plugin, content): (&str, &[u8]), tensor: &[u8]) -> Self {
        let metadata = bytes(1, &[text(1, plugin), bytes(2, content)].concat());
        let value = [text(1, tag), bytes(8, tensor), bytes(9, &metadata)].concat();
        Self::summary(wall_time, 0, &value)
    }

    fn summary(wall_time: f64, step: u64, value: &[u8]) -> Self {
        Self([double(1, wall_time), uint(2, step), bytes(5, &bytes(1, value))].concat())
    }

    /// As it is in a file: `u64 length, u32 checksum of it, message, u32 checksum of it`, little-endian.
    pub fn framed(&self) -> Vec<u8> {
        let length = (self.0.len() as u64).to_le_bytes();
        let (of_length, of_message) = (masked_crc32c(&length), masked_crc32c(&self.0));
        [
            &length[..],
            &of_length.to_le_bytes(),
            &self.0,
            &of_message.to_le_bytes(),
        ]
        .concat()
    }
}

/// How protobuf encodes a field's value.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

fn key(field: u64, wire_type: WireType) -> Vec<u8> {
    varint(field << 3 | wire_type as u64)
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn varint(mut value: u64) -> Vec<u8> {
    let mut encoded = Vec::new();
    while value >= 0x80 {
        encoded.push(value as u8 | 0x80);
        value >>= 7;
    }
    encoded.push(value as u8);
    encoded
}

fn uint(field: u64, value: u64) -> Vec<u8> {
    [key(field, WireType::Varint), varint(value)].concat()
}

fn double(field: u64, value: f64) -> Vec<u8> {
    [key(field, WireType::Fixed64), value.to_le_bytes().to_vec()].concat()
}

fn float(field: u64, value: f32) -> Vec<u8> {
    [key(field, WireType::Fixed32), value.to_le_bytes().to_vec()].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    let length = varint(value.len() as u64);
    [&key(field, WireType::Bytes), &length, value].concat()
}

fn text(field: u64, value: &str) -> Vec<u8> {
    bytes(field, value.as_bytes())
}

/// TFRecord's mask: a checksum of data that holds checksums would be weak.
fn masked_crc32c(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The Castagnoli polynomial, reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

fn crc32c(data: &[u8]) -> u32 {
    let next_bit = |remainder: u32, _| (remainder >> 1) ^ (POLYNOMIAL * (remainder & 1));
    let next_byte = |remainder: u32, &byte: &u8| (0..8).fold(remainder ^ u32::from(byte), next_bit);
    !data.iter().fold(u32::MAX, next_byte)
}

#[cfg(test)]
mod tests;

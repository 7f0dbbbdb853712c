//! Curves for TensorBoard, read back by a reader that shares no code with their writer.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use simic_engine::internals::scenario::TensorBoard;
use simic_engine::internals::telemetry::sinks::TensorBoardSink;
use simic_engine::internals::telemetry::{Event, Num, Payload, RunInfo, Sink};

use crate::events::{EXAMPLES, events};
use crate::harness::fuzz;

/// Takes `count` bytes off the front; `None` where there are fewer.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(front)
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The fields of a protobuf message that are no groups: number and content, of a varint its value in eight bytes.
fn fields(mut message: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = number(&mut message)?;
        let content = match key & 7 {
            0 => number(&mut message)?.to_le_bytes().to_vec(),
            1 => take(&mut message, 8)?.to_vec(),
            2 => {
                let length = number(&mut message)? as usize;
                take(&mut message, length)?.to_vec()
            }
            5 => take(&mut message, 4)?.to_vec(),
            _ => return None,
        };
        fields.push((key >> 3, content));
    }
    Some(fields)
}

/// The CRC of RFC 3720, as TFRecord masks it.
fn masked_crc(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in data {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
        }
    }
    let crc = !crc;
    crc.rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// Messages of a file, each of which has its checksums.
fn messages(mut file: &[u8]) -> Option<Vec<&[u8]>> {
    let mut messages = Vec::new();
    while !file.is_empty() {
        let length = take(&mut file, 8)?;
        let length_crc = take(&mut file, 4)?;
        let message = take(&mut file, u64::from_le_bytes(length.try_into().ok()?) as usize)?;
        let message_crc = take(&mut file, 4)?;
        if length_crc != masked_crc(length).to_le_bytes() || message_crc != masked_crc(message).to_le_bytes() {
            return None;
        }
        messages.push(message);
    }
    Some(messages)
}

fn field(fields: &[(u64, Vec<u8>)], wanted: u64) -> Option<&Vec<u8>> {
    fields
        .iter()
        .find(|(number, _)| *number == wanted)
        .map(|(_, content)| content)
}

/// Name, step and height of a point.
fn point(message: &[u8]) -> Option<(String, u64, u32)> {
    let event = fields(message)?;
    let step = u64::from_le_bytes(field(&event, 2)?[..].try_into().ok()?);
    let value = fields(field(&fields(field(&event, 5)?)?, 1)?)?;
    let height = u32::from_le_bytes(field(&value, 2)?[..].try_into().ok()?);
    Some((String::from_utf8(field(&value, 1)?.clone()).ok()?, step, height))
}

/// The bits of what is plotted; all NaNs are one.
fn plotted(value: Num) -> u32 {
    let value = value.0 as f32;
    if value.is_nan() {
        f32::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

/// Curves that the events are known to have, the newest point where one is told twice.
fn expected(events: &[Arc<Event>]) -> BTreeMap<(&'static str, u64), u32> {
    let mut points = BTreeMap::new();
    for event in events {
        let step = u64::from(event.round.unwrap_or_default()) + 1;
        match &event.payload {
            Payload::RoundFinished(told) => {
                points.insert(("main/accuracy", step), plotted(told.accuracy_mean));
                points.insert(
                    ("detail/round/perf/round_wall_s", step),
                    plotted(told.perf.round_wall_s),
                );
            }
            Payload::LearnerUpdate(told) => {
                points.insert(("detail/policy/updates", step), plotted(Num(told.updates as f64)));
            }
            _ => {}
        }
    }
    points
}

#[test]
fn every_curve_is_read_back_by_an_independent_reader() {
    let begin: Event = serde_json::from_str(EXAMPLES.lines().next().expect("a line")).expect("it begins a run");
    fuzz(vec(events(), 1..30), |mut events| {
        events.insert(0, begin.clone());
        let events: Vec<Arc<Event>> = (0..)
            .zip(events)
            .map(|(seq, event)| Arc::new(Event { seq, ..event }))
            .collect();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut sink = TensorBoardSink::new(TensorBoard::All, BTreeMap::new()).expect("it is on");
        let info = RunInfo {
            run_id: "drawn".into(),
            directory: folder.path().into(),
            earlier: None,
        };
        sink.start(&info).expect("it begins");
        sink.write(&events).expect("it is written");
        sink.flush().expect("it is written");
        let entry = std::fs::read_dir(folder.path().join("tb"))
            .expect("a folder")
            .flatten()
            .next();
        let file = std::fs::read(entry.expect("a file").path()).expect("it is read");

        let messages = messages(&file).expect("every record is whole");
        prop_assert!(fields(messages[0]).is_some_and(|first| field(&first, 3) == Some(&b"brain.Event:2".to_vec())));
        let mut read = BTreeMap::new();
        let layout = b"custom_scalars__config__";
        prop_assert!(messages[1].windows(layout.len()).any(|part| part == layout));
        for message in &messages[2..] {
            let (name, step, height) = point(message).expect("a point");
            let height = if f32::from_bits(height).is_nan() {
                f32::NAN.to_bits()
            } else {
                height
            };
            read.insert((name, step), height);
        }
        for ((name, step), height) in expected(&events) {
            prop_assert_eq!(
                read.get(&(name.to_owned(), step)),
                Some(&height),
                "{} at {}",
                name,
                step
            );
        }
        Ok(())
    });
}

//! Texts and files of tokens.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use simic_engine::internals::data::{TokenSet, load_tokens};
use simic_engine::internals::scenario::{BYTE_VOCABULARY, DataSource, TextFile, TokenFiles, TokenFormat};

use super::found::{Folder, Whole, harms};
use super::harness::{fuzz, in_bounds, task};

const VOCABULARY: i64 = 500;

fn read(classes: i64, data: DataSource, folder: &Path) -> Result<TokenSet, String> {
    let set = load_tokens(&task(classes, data), Some(folder)).map_err(|error| error.to_string())?;
    set.ok_or_else(|| "it isn't text".into())
}

fn tokens_16(tokens: &[u16]) -> Vec<u8> {
    tokens.iter().flat_map(|token| token.to_le_bytes()).collect()
}

/// As llm.c writes tokens of 32 bits.
fn llm_c(tokens: &[u16]) -> Vec<u8> {
    let header = [20_240_801, 7, tokens.len() as u32].into_iter();
    let mut bytes: Vec<u8> = header.flat_map(u32::to_le_bytes).collect();
    bytes.resize(1024, 0);
    bytes.extend(tokens.iter().flat_map(|&token| u32::from(token).to_le_bytes()));
    bytes
}

fn files(format: TokenFormat) -> DataSource {
    DataSource::TokenFiles(TokenFiles {
        train: "train.bin".into(),
        val: Some("val.bin".into()),
        test: Some("test.bin".into()),
        format,
        vocab: VOCABULARY,
        block: 4,
    })
}

#[test]
fn files_of_tokens() {
    let tokens: Vec<u16> = (0..400).collect();
    for (format, bytes) in [
        (TokenFormat::Auto, llm_c(&tokens)),
        (TokenFormat::LlmC, llm_c(&tokens)),
        (TokenFormat::U16, tokens_16(&tokens)),
    ] {
        let names = ["train.bin", "val.bin", "test.bin"];
        let folder = Folder::of(names.iter().map(|name| Whole::packed(*name, bytes.clone())).collect());
        read(VOCABULARY, files(format), folder.path()).expect("the whole files can be read");
        fuzz(harms(), |harm| {
            let damaged = folder.damage(&harm);
            if let Err(message) = in_bounds(damaged.bytes, || read(VOCABULARY, files(format), folder.path()))? {
                prop_assert!(message.contains(&damaged.path.display().to_string()), "{message}");
            }
            Ok(())
        });
    }
}

#[test]
fn any_text_is_read_byte_for_byte() {
    fuzz(vec(any::<u8>(), 0..2000), |bytes| {
        let folder = Folder::of(vec![Whole::new("text.txt", bytes.clone())]);
        let source = DataSource::Text(TextFile {
            path: "text.txt".into(),
            block: 8,
        });
        match in_bounds(bytes.len(), || read(BYTE_VOCABULARY, source, folder.path()))? {
            Ok(set) => {
                let tokens = set.tokens.to_vec().expect("they can be read");
                let (separator, tokens) = tokens.split_last().expect("a text has an end");
                prop_assert_eq!(i64::from(*separator), BYTE_VOCABULARY - 1);
                prop_assert!(tokens.iter().copied().eq(bytes.iter().map(|&byte| i32::from(byte))));
            }
            Err(message) => prop_assert!(message.contains("text.txt"), "{message}"),
        }
        Ok(())
    });
}

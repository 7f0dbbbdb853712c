use std::fmt::Debug;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Optional {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Num>,
}

/// Checks that a value is written so, and is read back unchanged.
#[track_caller]
fn assert_written<T: Serialize + for<'a> Deserialize<'a> + PartialEq + Debug>(value: T, expected: &str) {
    let text = serde_json::to_string(&value).unwrap();
    assert_eq!(text, expected);
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), value);
}

#[test]
fn a_number_is_itself_again_after_json() {
    for (value, expected) in [
        (Some(f64::NAN), r#"{"value":"nan"}"#),
        (Some(f64::INFINITY), r#"{"value":"inf"}"#),
        (Some(f64::NEG_INFINITY), r#"{"value":"-inf"}"#),
        (Some(0.0), r#"{"value":0.0}"#),
        (Some(0.1 + 0.2), r#"{"value":0.30000000000000004}"#),
        (None, "{}"),
    ] {
        let value = value.map(Num);
        assert_written(Optional { value }, expected);
    }
}

#[test]
fn f32_sources_are_written_as_f32() {
    assert_eq!(serde_json::to_string(&Num::from(0.1_f32)).unwrap(), "0.1");
    assert!(Num::from(f32::NAN).0.is_nan());
    assert_eq!(Num::from(f32::NEG_INFINITY).0, f64::NEG_INFINITY);
}

#[test]
fn words_that_arent_numbers_are_refused() {
    let error = serde_json::from_str::<Num>("\"many\"").unwrap_err();

    assert!(error.to_string().contains("many"), "{error}");
}

#[test]
fn integers_beyond_two_to_the_53_are_strings() {
    assert_written(BigInteger(42), "42");
    assert_written(BigInteger(1 << 53), "9007199254740992");
    assert_written(BigInteger((1 << 53) + 1), "\"9007199254740993\"");
    assert_written(BigInteger(u64::MAX), "\"18446744073709551615\"");
}

#[test]
fn timestamps_are_rfc_3339_with_milliseconds() {
    let moment = Timestamp::from_milliseconds(1_700_000_000_005);

    assert_written(moment, "\"2023-11-14T22:13:20.005Z\"");
    assert_eq!(moment.compact(), "20231114-221320");
}

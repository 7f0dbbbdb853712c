use serde::{Deserialize, Serialize};
use tch::Kind;

use super::*;
use crate::telemetry::Num;
use crate::torch::fixtures::{on_device, test_device};

/// Values that are hard to serialize.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Odd {
    numbers: Vec<f64>,
    float: f32,
    nested: Option<Option<u32>>,
    text: String,
    odd_numbers: Vec<Num>,
    pair: (u32, Option<f64>),
}

fn odd() -> Odd {
    Odd {
        numbers: vec![0.1 + 0.2, -0.0, f64::INFINITY, f64::MIN_POSITIVE / 2.0, 1e300],
        float: 0.1,
        nested: Some(None),
        text: "two\nlines: \"quoted\"".into(),
        odd_numbers: vec![Num(f64::NAN), Num(1.0), Num(1.0 / 3.0)],
        pair: (u32::MAX, Some(f64::MAX)),
    }
}

#[test]
fn what_is_written_is_read_back_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let tensor = on_device(Tensor::from_slice(&[f32::NAN, -0.0, 1.0 / 3.0, f32::MIN_POSITIVE])).view([2, 2]);
    let mut round = UnfinishedRound::default();
    round.put("env0.odd", &odd()).unwrap();
    round.put("env0.nan", &f64::NAN).unwrap();
    round.put_tensor("env0.weights", &tensor).unwrap();

    round.write(folder.path()).unwrap();
    let read = UnfinishedRound::read(folder.path()).unwrap();

    let found: Odd = read.get("env0.odd").unwrap();
    assert_eq!(found, odd());
    assert!(found.numbers[1].is_sign_negative());
    assert!(read.get::<f64>("env0.nan").unwrap().is_nan());
    let target = Tensor::zeros([2, 2], (Kind::Float, test_device()));
    read.copy_to("env0.weights", &target).unwrap();
    let bits = |tensor: &Tensor| Vec::<i32>::try_from(tensor.view_dtype(Kind::Int).flatten(0, -1)).unwrap();
    assert_eq!(bits(&target), bits(&tensor));
}

#[test]
fn what_is_missing_or_of_another_form_is_named() {
    let mut round = UnfinishedRound::default();
    round.put("count", &3_u32).unwrap();
    let [weights, target] = [2, 3].map(|count| Tensor::zeros([count], (Kind::Float, test_device())));
    round.put_tensor("weights", &weights).unwrap();

    let errors = [
        round.get::<u32>("other").unwrap_err().to_string(),
        round.get::<bool>("count").unwrap_err().to_string(),
        round.tensor("other").unwrap_err().to_string(),
        round.copy_to("weights", &target).unwrap_err().to_string(),
    ];

    let missing = "`other` is missing in the checkpoint of the unfinished round";
    assert_eq!((errors[0].as_str(), errors[2].as_str()), (missing, missing));
    assert!(errors[1].starts_with("`count` of the unfinished round cannot be read: "));
    let unfit = "tensor `weights` of the unfinished round is F32 [2], expected Float [3]";
    assert_eq!(errors[3], unfit);
}

use std::fs;

use proptest::prelude::*;
use safetensors::tensor::serialize_to_file;

use super::*;

fn write(path: &Path, tensors: &[(&str, Vec<usize>, Vec<f32>)]) {
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|(.., values)| bytes(values)).collect();
    let view = |shape: &[usize], bytes| TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap();
    let views = tensors.iter().zip(&bytes);
    let views = views.map(|((name, shape, _), bytes)| (*name, view(shape, bytes)));
    serialize_to_file(views, None, path).unwrap();
}

#[test]
fn tensors_part_at_an_index_some_steps_away_or_in_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let [left, right] = ["left", "right"].map(|name| folder.path().join(name));
    let one = f32::from_bits(1.0_f32.to_bits() + 3);
    write(
        &left,
        &[
            ("a", vec![2, 2], vec![0.0, 1.0, 1.0, 2.0]),
            ("b", vec![1], vec![1.0]),
            ("c", vec![1], vec![1.0]),
        ],
    );
    write(
        &right,
        &[
            ("a", vec![2, 2], vec![0.0, 1.0, one, 3.0]),
            ("b", vec![1, 1], vec![1.0]),
            ("d", vec![1], vec![1.0]),
        ],
    );

    let found = differing(&[left.clone(), right]).unwrap();

    let fields: Vec<&str> = found.iter().map(|difference| difference.field.as_str()).collect();
    assert_eq!(fields, ["a[1, 0]", "b", "c", "d"]);
    assert_eq!(found[0].ulp, Some(3));
    assert_eq!(found[0].left.value, Some(1.0.into()));
    assert_eq!(found[1].right.value, Some("F32 [1, 1]".into()));
    assert_eq!((&found[2].right.value, &found[3].left.value), (&None, &None));
    assert!(differing(&[left.clone(), left]).unwrap().is_empty());
}

#[test]
fn a_file_that_holds_no_tensors_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    fs::write(&path, "none").unwrap();

    assert!(
        differing(&[path.clone(), path])
            .unwrap_err()
            .to_string()
            .contains("x.safetensors")
    );
}

proptest! {
    #[test]
    fn neighbours_are_one_step_apart_across_zero_too(value in -1e30_f64..1e30) {
        let next = value.next_up();

        prop_assert_eq!(distance(Dtype::F64, &value.to_le_bytes(), &next.to_le_bytes()), Some(1));
        let (zero, negative) = (0.0_f64.to_le_bytes(), (-0.0_f64).to_le_bytes());
        prop_assert_eq!(distance(Dtype::F64, &zero, &negative), Some(0));
    }
}

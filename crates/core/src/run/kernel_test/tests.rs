use super::*;
use crate::kernels::ForcedKernels;

#[test]
fn this_cpu_s_kernels_are_accepted() {
    assert_eq!(refusal(), None);
}

#[test]
fn kernels_that_fail_are_refused_by_name() {
    let _failing = ForcedKernels::failing(40);

    let why = refusal().expect("one fails");

    assert!(why.starts_with("the engine's own kernels for "), "{why}");
    let end = " are not used: they fail: a kernel failed on request";
    assert!(why.ends_with(end), "{why}");
}

#[test]
fn what_is_compared_has_values_that_are_computed_in_two_ways() {
    let found = results(Kernels::Own).unwrap();

    assert!(found.len() > 40, "{}", found.len());
    let is_silent = |tensor: &&Tensor| torch::peek(&tensor.abs().max()).unwrap() == Some(0.0);
    assert!(found.iter().filter(is_silent).count() < 3, "nearly all have a gradient");
    let libtorch = results(Kernels::Libtorch).unwrap();
    let differs = |(own, libtorch): &(&Tensor, &Tensor)| !own.equal(libtorch);
    let different = found.iter().zip(&libtorch).filter(differs).count();
    assert!(different > 20, "two ways of computing: {different}");
}

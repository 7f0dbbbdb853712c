use tch::Kind;

use super::*;
use crate::nn::fixtures::largest;
use crate::random::{Domain, RunRng};
use crate::torch::fixtures::{test_backend, test_device};

#[test]
fn a_1x1_convolution_of_many_positions_is_the_product_over_channels_forward_and_backward() {
    for stride in [1, 2] {
        let mut params = ParamSet::new(test_backend());
        let convolution = Conv2d::new(&mut params, "pointwise".into(), 3, 5, 1, 1).unwrap();
        let convolution = convolution.strided(stride);
        params.initialise(&mut RunRng::new(5, Domain::SeedInit, &[])).unwrap();
        let x = (Tensor::arange(4 * 96 * 96 * 3, (Kind::Float, test_device())) * 0.7).sin();
        let x = x.view([4, 96, 96, 3]).permute([0, 3, 1, 2]);

        let computed = convolution.by_libtorch(&x, None).unwrap();

        let weight = convolution.weight.view([5, 3]);
        let every = x.slice(2, None, None, stride).slice(3, None, None, stride);
        let expected = Tensor::einsum("oi,bihw->bohw", &[&weight, &every], None::<i64>);
        assert_eq!(computed.size(), expected.size());
        assert!(largest(&(&computed - &expected)) < 1e-5, "stride {stride}");
        let [ours, theirs] = [&computed, &expected].map(|output| {
            let mut weight = convolution.weight.shallow_clone();
            weight.zero_grad();
            output.square().mean(Kind::Float).backward();
            weight.grad().copy()
        });
        assert!(largest(&(ours - theirs)) < 1e-4, "stride {stride}");
    }
}

use super::*;

#[test]
fn a_curve_is_linear_between_its_points_and_has_nothing_beyond() {
    let curve = [(0.0, 10.0), (10.0, 20.0), (30.0, 0.0)];

    let at = |x| interpolate(&curve, x);

    assert_eq!(
        [at(0.0), at(5.0), at(20.0), at(30.0)],
        [Some(10.0), Some(15.0), Some(10.0), Some(0.0)]
    );
    assert_eq!([at(-0.1), at(30.1)], [None, None]);
    assert_eq!(interpolate(&[], 1.0), None);
}

#[test]
fn a_grid_lies_where_every_curve_has_a_value() {
    let curves = [vec![(0.0, 1.0), (10.0, 1.0)], vec![(4.0, 1.0), (8.0, 1.0), (20.0, 1.0)]];

    assert_eq!(common_grid(&curves, 4), [4.0, 6.0, 8.0, 10.0]);
    assert_eq!(common_grid(&[vec![(0.0, 1.0)], vec![(1.0, 1.0)]], 4), [0.0; 0]);
    assert_eq!(common_grid(&[vec![]], 4), [0.0; 0]);
}

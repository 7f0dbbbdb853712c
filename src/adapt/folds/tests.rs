use super::*;
use crate::data::DataRegistry;
use crate::scenario::task_presets;

#[test]
fn each_image_is_judged_once_and_classes_are_spread_evenly_and_texts_are_refused() {
    let load = |name: &str| {
        let mut tasks = task_presets().into_iter().map(|preset| preset.spec);
        let task = tasks.find(|task| task.name == name).unwrap();
        Folds::new(&TaskData::load(&task, None, &DataRegistry::default()).unwrap())
    };
    let texts = load("synth_tokens").err().unwrap().to_string();
    assert_eq!(texts, "only networks that read images can be adapted");
    let folds = load("digits_minimal").unwrap();
    let learnt = |fold| match folds.data(fold, None).unwrap() {
        TaskData::Images(set) => set.train,
        TaskData::Tokens(_) => panic!("digits are images"),
    };
    let whole = learnt(None);
    assert_eq!(whole.len(), folds.len());
    let mut judged = 0;
    for fold in 0..FOLDS {
        let (learnt, tested) = (learnt(Some(fold)), folds.chosen(|other| other == fold).unwrap());
        assert_eq!(learnt.len() + tested.len(), folds.len());
        judged += tested.len();
        for class in 0..10 {
            let count = |part: &Part| part.labels.iter().filter(|label| **label == class).count();
            assert!(count(&tested).abs_diff(count(&whole) / FOLDS) <= 1, "{class}");
        }
    }
    assert_eq!(judged, folds.len());
}

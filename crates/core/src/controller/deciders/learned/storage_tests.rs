//! Policies on disk.

use std::fs;

use tempfile::{TempDir, tempdir};

use super::*;
use crate::actions::fixtures::BLUEPRINT_NAMES;
use crate::controller::fixtures::{Crowd, Ground, controller};
use crate::growth::SlotId;
use crate::hash::sha256;
use crate::policy::fixtures::{small, values};

fn ground(change: impl FnOnce(&mut Ground)) -> Ground {
    let mut ground = Ground::default();
    ground.scenario.policy.net_cfg = small();
    change(&mut ground);
    ground
}

fn other(change: impl FnOnce(&mut Ground)) -> ActorCriticController {
    ActorCriticController::new(&ground(change).context()).unwrap()
}

/// The policy in a folder of this name.
fn saved(controller: &ActorCriticController) -> TempDir {
    let root = tempdir().unwrap();
    controller.save(&root.path().join("policy")).unwrap();
    root
}

fn load(controller: &mut ActorCriticController, root: &TempDir) -> Result<(), PolicyError> {
    controller.load(&SavedFolder::read(&root.path().join("policy"))?)
}

fn differences(controller: &mut ActorCriticController, root: &TempDir) -> Vec<String> {
    match load(controller, root) {
        Err(PolicyError::IncompatiblePolicy { diffs, .. }) => diffs,
        other => panic!("{other:?}"),
    }
}

/// One difference begins with each of these.
#[track_caller]
fn assert_named(diffs: &[String], beginnings: &[&str]) {
    for beginning in beginnings {
        let is_named = diffs.iter().any(|diff| diff.starts_with(*beginning));
        assert!(is_named, "{beginning}: {diffs:?}");
    }
}

fn edit_manifest(root: &TempDir, edits: &[(&str, &str)]) {
    let path = root.path().join("policy").join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let edited = edits.iter().fold(text, |text, &(old, new)| text.replacen(old, new, 1));
    fs::write(path, edited).unwrap();
}

fn weights(controller: &ActorCriticController) -> Vec<Vec<f64>> {
    controller.params().iter().map(|param| values(&param.tensor)).collect()
}

#[test]
fn a_saved_policy_continues_with_the_same_bits() {
    let crowd = Crowd::new(8, 1);
    let mut running = controller("lstm");
    running.set_updates(17);
    running.set_floor_scale(0.4);
    let rows = crowd.observations.iter().map(|observation| observation.raw.as_slice());
    running.normaliser_mut().commit(rows).unwrap();
    let root = saved(&running);

    let mut loaded = other(|_| ());
    let addresses = |controller: &ActorCriticController| -> Vec<usize> {
        let params = controller.params().into_iter();
        params.map(|param| param.tensor.data_ptr() as usize).collect()
    };
    let before = addresses(&loaded);
    load(&mut loaded, &root).unwrap();

    assert_eq!(addresses(&loaded), before, "weights are copied in place");
    assert_eq!(loaded.updates, 17);
    assert_eq!(loaded.normaliser(), running.normaliser());
    for step in 1..4 {
        let [expected, found] =
            [&mut running, &mut loaded].map(|policy| crowd.decide(policy, step, &[0, 1, 2, 3, 4, 5, 6, 7]));
        assert_eq!(found, expected);
    }
}

#[test]
fn a_policy_may_be_where_a_run_starts() {
    let policy = controller("lstm");
    let root = saved(&policy);
    let ground = ground(|ground| ground.scenario.policy.init_from = Some("policy".into()));
    let context = BuildContext {
        folder: Some(root.path()),
        ..ground.context()
    };
    let started = ActorCriticController::new(&context).unwrap();
    assert!(weights(&started) == weights(&policy));
}

#[test]
fn every_difference_is_named_at_once_and_nothing_changes() {
    let root = saved(&controller("lstm"));
    let slots = ["slots:", "action space:", "observation schema hash:"];
    let observations = ["weight feature.0.weight", "observation size: saved 116, running 147"];
    let nets = [
        "net: saved \"lstm\", running \"gru\"",
        "weight core.0.gru.bias_hh is not in the file",
    ];
    let running = [
        (other(|ground| ground.slots.swap(0, 2)), &slots[..]),
        (other(|ground| ground.slots.push(SlotId::new(1, 0))), &observations),
        (other(|ground| ground.scenario.policy.net = "gru".into()), &nets),
    ];
    for (mut running, expected) in running {
        let before = weights(&running);
        assert_named(&differences(&mut running, &root), expected);
        assert!(weights(&running) == before);
    }
}

/// An embedding has its row of the empty slot at the end, the blueprint's head one block per slot.
#[test]
fn blueprints_that_were_added_leave_an_old_policy_loadable() {
    let old = controller("lstm");
    let root = saved(&old);
    let ground = ground(|_| ());
    let names = [&BLUEPRINT_NAMES[..], &["moss", "fern"]].concat();
    let known = BLUEPRINT_NAMES.len() as i64;
    let context = BuildContext {
        blueprints: &names,
        ..ground.context()
    };
    let mut grown = ActorCriticController::new(&context).unwrap();
    let fresh: Vec<Tensor> = grown.params().iter().map(|param| param.tensor.copy()).collect();

    load(&mut grown, &root).unwrap();

    let mut changed = 0;
    for ((grown, old), fresh) in grown.params().iter().zip(old.params()).zip(fresh) {
        let [grown, old] = [&grown.tensor, &old.tensor];
        if grown.size() == old.size() {
            assert!(grown.equal(old));
            continue;
        }
        changed += 1;
        let slots = grown.size()[0] / (known + 2);
        let blocks = |tensor: &Tensor, rows: i64| tensor.narrow(0, 0, slots * rows).unflatten(0, [slots, rows]);
        let [all, fresh] = [grown, &fresh].map(|tensor| blocks(tensor, known + 2));
        let learnt = all.narrow(1, 0, known);
        assert!(learnt.equal(&blocks(old, known)), "rows that were learnt");
        let [added, expected] = [all, fresh].map(|tensor| tensor.narrow(1, known, 2));
        assert!(added.equal(&expected), "rows that are new");
        if slots == 1 {
            assert!(grown.get(-1).equal(&old.get(-1)), "the row of the empty slot");
        }
    }
    assert_eq!(changed, 3, "the embedding, and weight and bias of a head");
    // None may be taken away.
    assert_named(&differences(&mut other(|_| ()), &saved(&grown)), &["blueprints:"]);
}

/// Actions that were never allowed were never learnt.
#[test]
fn another_action_space_is_refused_with_what_it_excludes() {
    let narrow = |ground: &mut Ground| {
        ground.scenario.policy.masks.action_space.tempo =
            Some(vec![crate::growth::Tempo::Fast, crate::growth::Tempo::Standard]);
    };
    let root = saved(&other(narrow));
    assert_eq!(load(&mut other(narrow), &root), Ok(()));
    let excluded = "excluded choices: saved [\"tempo:SLOW\"], running []";
    assert_eq!(differences(&mut other(|_| ()), &root), [excluded]);
}

#[test]
fn weights_of_another_save_are_noticed() {
    let [first, second] = [controller("lstm"), other(|_| ())].map(|policy| saved(&policy));
    let [from, to] = [&first, &second].map(|root| root.path().join("policy").join(WEIGHTS_FILE));
    fs::copy(from, to).unwrap();
    let diffs = differences(&mut other(|_| ()), &second);
    assert_eq!(diffs.len(), 1);
    assert_named(&diffs, &["weights file:"]);
}

#[test]
fn numbers_that_are_not_finite_are_refused_and_nothing_changes() {
    let root = saved(&controller("lstm"));
    let path = root.path().join("policy").join(WEIGHTS_FILE);
    let mut bytes = fs::read(&path).unwrap();
    let before = sha256(&bytes);
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(path, &bytes).unwrap();
    let after = sha256(&bytes);
    let edits = [
        (before.as_str(), after.as_str()),
        ("mean: 0.0", "mean: NaN"),
        ("floor_scale: 1.0", "floor_scale: 1.5"),
    ];
    edit_manifest(&root, &edits);
    let mut running = other(|_| ());
    let untouched = weights(&running);

    let diffs = differences(&mut running, &root);

    assert_eq!(diffs.len(), 3, "{diffs:?}");
    assert!(diffs[0].contains("saved 1.5, which is not from 0 to 1"), "{diffs:?}");
    assert!(diffs[1].contains("statistic 0: mean NaN"), "{diffs:?}");
    assert!(diffs[2].ends_with("holds values that are not finite"), "{diffs:?}");
    assert!(weights(&running) == untouched);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = SavedFolder::read(Path::new("/nowhere/policy")).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/policy: "), "{error}");
}

#[test]
fn a_policy_is_read_without_a_run_and_one_of_an_application_s_own_is_refused_by_name() {
    let mut policy = controller("lstm");
    policy.set_floor_scale(0.5);
    let read = |root: &TempDir| SavedPolicy::read(&SavedFolder::read(&root.path().join("policy")).unwrap());

    let found = read(&saved(&policy)).unwrap();

    assert_eq!(found.net.spec(), policy.net().spec());
    assert_eq!(found.scales.len(), policy.schema().len());
    assert_eq!(found.floors, policy.floors.map(|floor| floor.epsilon));
    let hash = policy.schema().hash();
    for (old, new, why) in [
        ("net: \"lstm\"", "net: \"mine\"", "`mine`"),
        (hash.as_str(), "0", "features that an application defines"),
        ("value_head: 1", "value_head: 2", "value head"),
        ("hidden_dim: 32", "hidden_dim: 65536", "too short"),
        ("hidden_dim: 32", "hidden_dim: 40", "weight core"),
    ] {
        let root = saved(&policy);
        edit_manifest(&root, &[(old, new)]);
        let error = read(&root).err().expect(why).to_string();
        assert!(error.contains(why), "{error}");
    }
}

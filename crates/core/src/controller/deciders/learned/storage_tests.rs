//! Policies on disk.

use std::fs;
use std::path::Path;

use super::*;
use crate::actions::PolicyError;
use crate::actions::fixtures::BLUEPRINT_NAMES;
use crate::controller::deciders::Controller;
use crate::controller::deciders::learned::storage::{MANIFEST_FILE, WEIGHTS_FILE};
use crate::controller::fixtures::Ground;
use crate::controller::fixtures::policies::{Crowd, controller};
use crate::controller::saved::SavedFolder;
use crate::growth::SlotId;
use crate::hash::sha256;
use crate::policy::TrainablePolicy;
use crate::policy::fixtures::small;

fn other(change: impl FnOnce(&mut Ground)) -> ActorCriticController {
    let mut ground = Ground::default();
    ground.scenario.policy.net_cfg = small();
    change(&mut ground);
    ActorCriticController::new(&ground.context()).unwrap()
}

fn load(controller: &mut ActorCriticController, folder: &Path) -> Result<(), PolicyError> {
    controller.load(&SavedFolder::read(folder)?)
}

fn differences(controller: &mut ActorCriticController, folder: &Path) -> Vec<String> {
    match load(controller, folder) {
        Err(PolicyError::IncompatiblePolicy { diffs, .. }) => diffs,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_saved_policy_continues_with_the_same_bits() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("policy");
    let crowd = Crowd::new(8, 1);
    let places: Vec<usize> = (0..8).collect();
    let mut saved = controller("lstm");
    saved.set_updates(17);
    saved.set_floor_scale(0.4);
    let rows = crowd.observations.iter().map(|observation| observation.raw.as_slice());
    saved.normaliser_mut().commit(rows).unwrap();
    saved.save(&folder).unwrap();

    let mut loaded = other(|_| ());
    let storage: Vec<_> = loaded
        .params()
        .iter()
        .map(|param| param.tensor.data_ptr() as usize)
        .collect();
    load(&mut loaded, &folder).unwrap();

    let moved: Vec<_> = loaded
        .params()
        .iter()
        .map(|param| param.tensor.data_ptr() as usize)
        .collect();
    assert_eq!(storage, moved, "weights are copied in place");
    assert_eq!(loaded.updates, 17);
    assert_eq!(loaded.normaliser(), saved.normaliser());
    for step in 1..4 {
        let expected = crowd.decide(&mut saved, step, &places);
        assert_eq!(crowd.decide(&mut loaded, step, &places), expected);
    }
}

#[test]
fn a_policy_may_be_where_a_run_starts() {
    let root = tempfile::tempdir().unwrap();
    let saved = controller("lstm");
    saved.save(&root.path().join("policy")).unwrap();
    let mut ground = Ground::default();
    ground.scenario.policy.net_cfg = small();
    ground.scenario.policy.init_from = Some("policy".into());
    let context = crate::controller::BuildContext {
        folder: Some(root.path()),
        ..ground.context()
    };
    let started = ActorCriticController::new(&context).unwrap();
    let pairs = started.params().into_iter().zip(saved.params());
    assert!(
        pairs
            .into_iter()
            .all(|(started, saved)| started.tensor.equal(&saved.tensor))
    );
}

#[test]
fn every_difference_is_named_at_once_and_nothing_changes() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("policy");
    controller("lstm").save(&folder).unwrap();

    let mut reordered = other(|ground| ground.slots.swap(0, 2));
    let before: Vec<_> = reordered.params().iter().map(|param| param.tensor.copy()).collect();
    let diffs = differences(&mut reordered, &folder);
    for what in ["slots:", "action space:", "observation schema hash:"] {
        assert!(diffs.iter().any(|diff| diff.starts_with(what)), "{what} {diffs:?}");
    }
    for (param, before) in reordered.params().iter().zip(before) {
        assert!(param.tensor.equal(&before));
    }

    let mut wider = other(|ground| ground.slots.push(SlotId::new(1, 0)));
    let diffs = differences(&mut wider, &folder);
    assert!(
        diffs.iter().any(|diff| diff.starts_with("weight feature.0.weight")),
        "{diffs:?}"
    );
    assert!(
        diffs
            .iter()
            .any(|diff| diff.starts_with("observation size: saved 116, running 147"))
    );

    let mut gated = other(|ground| ground.scenario.policy.net = "gru".into());
    let diffs = differences(&mut gated, &folder);
    assert!(diffs.iter().any(|diff| diff == "net: saved \"lstm\", running \"gru\""));
    assert!(
        diffs
            .iter()
            .any(|diff| diff == "weight core.0.gru.bias_hh is not in the file")
    );
}

#[test]
fn another_blueprint_list_or_schema_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("policy");
    controller("lstm").save(&folder).unwrap();
    let manifest = folder.join(MANIFEST_FILE);
    let text = fs::read_to_string(&manifest).unwrap();
    let edited = text
        .replace("\"conv_small\"", "\"conv_odd\"")
        .replace("schema_hash: \"", "schema_hash: \"0");
    fs::write(&manifest, edited).unwrap();
    let diffs = differences(&mut other(|_| ()), &folder);
    assert!(diffs.iter().any(|diff| diff.starts_with("blueprints:")));
    assert!(diffs.iter().any(|diff| diff.starts_with("observation schema hash:")));
}

/// An embedding has its row of the empty slot at the end, the blueprint's head a block a slot.
#[test]
fn blueprints_that_were_added_leave_an_old_policy_loadable() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("policy");
    let saved = controller("lstm");
    saved.save(&folder).unwrap();
    let mut ground = Ground::default();
    ground.scenario.policy.net_cfg = small();
    let names = [&BLUEPRINT_NAMES[..], &["moss", "fern"]].concat();
    let known = BLUEPRINT_NAMES.len() as i64;
    let context = crate::controller::BuildContext {
        blueprints: &names,
        ..ground.context()
    };
    let mut grown = ActorCriticController::new(&context).unwrap();
    let fresh: Vec<Tensor> = grown.params().iter().map(|param| param.tensor.copy()).collect();

    load(&mut grown, &folder).unwrap();

    let mut changed = 0;
    for ((grown, saved), fresh) in grown.params().iter().zip(saved.params()).zip(fresh) {
        let [grown, saved] = [&grown.tensor, &saved.tensor];
        if grown.size() == saved.size() {
            assert!(grown.equal(saved));
            continue;
        }
        changed += 1;
        let slots = grown.size()[0] / (known + 2);
        let blocks = |tensor: &Tensor, rows: i64| tensor.narrow(0, 0, slots * rows).unflatten(0, [slots, rows]);
        let (all, old) = (blocks(grown, known + 2), blocks(saved, known));
        assert!(all.narrow(1, 0, known).equal(&old), "rows that were learnt");
        assert!(
            all.narrow(1, known, 2)
                .equal(&blocks(&fresh, known + 2).narrow(1, known, 2)),
            "rows that are new"
        );
        if slots == 1 {
            assert!(grown.get(-1).equal(&saved.get(-1)), "the row of the empty slot");
        }
    }
    assert_eq!(changed, 3, "the embedding, and weight and bias of a head");
    let moved = root.path().join("moved");
    grown.save(&moved).unwrap();
    let diffs = differences(&mut other(|_| ()), &moved);
    assert!(
        diffs.iter().any(|diff| diff.starts_with("blueprints:")),
        "none may be taken away: {diffs:?}"
    );
}

/// What was never allowed was never learnt.
#[test]
fn another_action_space_is_refused_with_what_it_excludes() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("policy");
    let narrow = |ground: &mut Ground| {
        ground.scenario.policy.masks.action_space.tempo =
            Some(vec![crate::growth::Tempo::Fast, crate::growth::Tempo::Standard]);
    };
    other(narrow).save(&folder).unwrap();
    assert_eq!(load(&mut other(narrow), &folder), Ok(()));
    assert_eq!(
        differences(&mut other(|_| ()), &folder),
        ["excluded choices: saved [\"tempo:SLOW\"], running []"]
    );
}

#[test]
fn weights_of_another_save_are_noticed() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (root.path().join("a"), root.path().join("b"));
    controller("lstm").save(&first).unwrap();
    other(|_| ()).save(&second).unwrap();
    fs::copy(first.join(WEIGHTS_FILE), second.join(WEIGHTS_FILE)).unwrap();
    let diffs = differences(&mut other(|_| ()), &second);
    assert_eq!(diffs.len(), 1);
    assert!(diffs[0].starts_with("weights file:"));
}

#[test]
fn numbers_that_are_not_finite_are_refused_and_nothing_changes() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("policy");
    controller("lstm").save(&folder).unwrap();
    let weights = folder.join(WEIGHTS_FILE);
    let mut bytes = fs::read(&weights).unwrap();
    let before = sha256(&bytes);
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&weights, &bytes).unwrap();
    let manifest = folder.join(MANIFEST_FILE);
    let text = fs::read_to_string(&manifest).unwrap();
    let edited = text
        .replace(&before, &sha256(&bytes))
        .replacen("mean: 0.0", "mean: NaN", 1);
    fs::write(&manifest, edited).unwrap();
    let mut running = other(|_| ());
    let untouched: Vec<_> = running.params().iter().map(|param| param.tensor.copy()).collect();

    let diffs = differences(&mut running, &folder);

    assert_eq!(diffs.len(), 2, "{diffs:?}");
    assert!(diffs[0].contains("statistic 0: mean NaN"), "{diffs:?}");
    assert!(diffs[1].ends_with("holds values that are not finite"), "{diffs:?}");
    let params = running.params();
    assert!(
        params
            .iter()
            .zip(&untouched)
            .all(|(param, before)| param.tensor.equal(before))
    );
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = load(&mut controller("mlp"), Path::new("/nowhere/policy")).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/policy: "), "{error}");
}

#[test]
fn a_policy_is_read_without_a_run_and_one_of_an_application_s_own_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("policy");
    let mut saved = controller("lstm");
    saved.set_floor_scale(0.5);
    saved.save(&folder).unwrap();
    let read = |folder: &Path| SavedPolicy::read(&SavedFolder::read(folder).unwrap());

    let policy = read(&folder).unwrap();

    assert_eq!(policy.net.spec(), saved.net().spec());
    assert_eq!(policy.scales.len(), saved.schema().len());
    assert_eq!(policy.floors, saved.floors.map(|floor| floor.epsilon));
    let manifest = fs::read_to_string(folder.join(MANIFEST_FILE)).unwrap();
    let hash = saved.schema().hash();
    for (old, new, why) in [
        ("net: \"lstm\"", "net: \"mine\"", "`mine`"),
        (hash.as_str(), "0", "features of an application's own"),
        ("feature_dim: 24", "feature_dim: 65536", "too short"),
        ("hidden_dim: 32", "hidden_dim: 40", "weight core"),
    ] {
        fs::write(folder.join(MANIFEST_FILE), manifest.replace(old, new)).unwrap();
        let error = read(&folder).err().expect(why).to_string();
        assert!(error.contains(why), "{error}");
    }
}

use super::*;
use crate::sweep::{SweepFile, fixtures};

fn plan(trials: usize) -> Plan {
    fixtures::plan("lr", trials, SweepFile::default())
}

fn launch<'a>(folder: &'a SweepFolder, plan: &'a Plan) -> Launch<'a> {
    Launch {
        folder,
        plan,
        program: "/opt/simic's/simic-engine".into(),
        workers: None,
        parallel: 1,
        threads: None,
        gpus: 0,
        address: None,
    }
}

#[test]
fn a_job_array_has_a_task_for_each_trial_and_asks_for_nothing_that_was_not_given() {
    let folder = SweepFolder::of("lr", Some(Path::new("/shared/runs")));
    let plan = plan(6);

    insta::assert_snapshot!(launch(&folder, &plan).slurm_script(), @r##"
    #!/bin/sh
    # Workers of a sweep. Each takes free trials, and ends when none is free. When all have ended, submit this file
    # again to run what is left.
    #SBATCH --job-name=lr
    #SBATCH --array=1-6
    #SBATCH --output="/shared/runs/sweeps/lr/logs/slurm-%A_%a.log"
    exec '/opt/simic'\''s/simic-engine' sweep work '/shared/runs/sweeps/lr' --shard "$SLURM_ARRAY_TASK_ID/6" --leave --parallel 1
    "##);
}

#[test]
fn a_job_array_asks_for_what_its_trials_may_use() {
    let folder = SweepFolder::of("lr", Some(Path::new("/shared/50%")));
    let mut plan = plan(100);
    plan.sweep.budget.memory_mib = Some(2000);
    plan.sweep.budget.time_limit_s = Some(90);
    let launch = Launch {
        workers: Some(8),
        parallel: 2,
        threads: Some(4),
        gpus: 1,
        ..launch(&folder, &plan)
    };

    // 13 trials a task, 2 at once: 7 times 90 s.
    insta::assert_snapshot!(launch.slurm_script(), @r##"
    #!/bin/sh
    # Workers of a sweep. Each takes free trials, and ends when none is free. When all have ended, submit this file
    # again to run what is left.
    #SBATCH --job-name=lr
    #SBATCH --array=1-8
    #SBATCH --output="/shared/50%%/sweeps/lr/logs/slurm-%A_%a.log"
    #SBATCH --cpus-per-task=8
    #SBATCH --gres=gpu:1
    #SBATCH --mem=4256M
    #SBATCH --time=12
    exec '/opt/simic'\''s/simic-engine' sweep work '/shared/50%/sweeps/lr' --shard "$SLURM_ARRAY_TASK_ID/8" --leave --parallel 2 --threads 4
    "##);
}

#[test]
fn a_job_array_is_at_most_as_large_as_slurm_takes() {
    let plan = plan(10_000);

    assert_eq!(launch(&SweepFolder::of("lr", None), &plan).tasks(), 1000);
}

#[test]
fn a_driver_learns_what_a_trial_needs() {
    let folder = SweepFolder::of("lr", Some(Path::new("/shared/runs")));
    let mut plan = plan(2);
    plan.sweep.budget.memory_mib = Some(2000);
    let few = launch(&folder, &plan);
    let many = Launch {
        workers: Some(8),
        threads: Some(4),
        gpus: 1,
        address: Some("10.0.0.1:6379".into()),
        ..few.clone()
    };
    let command = |launch: &Launch, cluster| launch.driver_command(cluster).map(|words| words.join(" "));

    assert_eq!(command(&few, Cluster::Slurm), None);
    assert_eq!(
        command(&few, Cluster::Hyperqueue).unwrap(),
        "/shared/runs/sweeps/lr/hyperqueue_driver.py --program /opt/simic's/simic-engine --sweep /shared/runs/sweeps/lr \
         --threads 1 --memory-mib 2000"
    );
    assert_eq!(
        command(&many, Cluster::Ray).unwrap(),
        "/shared/runs/sweeps/lr/ray_driver.py --program /opt/simic's/simic-engine --sweep /shared/runs/sweeps/lr \
         --threads 4 --gpus 1 --memory-mib 2000 --workers 8 --address 10.0.0.1:6379"
    );
}

#[test]
fn a_program_that_is_missing_is_named_with_what_installs_it() {
    let outcome = Command::new("a-program-that-is-not-there").status();

    let error = started(outcome, "sbatch", "apt-get install slurm-client").unwrap_err();

    let expected =
        "sbatch isn't on the PATH; apt-get install slurm-client; the sweep is planned, but nothing was submitted";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_path_that_an_engine_would_take_for_something_else_is_refused_by_name() {
    let refusal = |folder: &str, cluster: Cluster| cluster.takes(Path::new(folder)).err();

    for odd in ["/shared/p\ntouch PWNED #", "/shared/a\"b", "/shared/\u{1b}[2J"] {
        let said = refusal(odd, Cluster::Slurm).expect("it is refused").to_string();
        assert!(
            said.contains("Slurm cannot take a path") && !said.contains('\n'),
            "{said}"
        );
    }
    assert!(refusal("/shared/%{CWD}", Cluster::Hyperqueue).is_some());
    for sound in ["/shared/simic's $(x) `y` {z} 50%", "/shared/ä"] {
        for cluster in [Cluster::Slurm, Cluster::Hyperqueue, Cluster::Ray] {
            assert!(refusal(sound, cluster).is_none(), "{sound}");
        }
    }
}

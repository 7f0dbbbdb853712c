//! A sweep that is handed to an engine for many machines.

use super::{begin_folder, collect};
use crate::cli::options::PlayOptions;
use crate::cli::rejection::Rejection;
use crate::cli::{Context, Outcome};
use crate::files::counted;
use crate::sweep::{Cluster, Launch, Planned, SweepFolder, WorkOptions};

/// Hands the sweep to an engine for many machines. With `--dry-run` shows the files and commands.
pub(super) fn launch(
    options: &PlayOptions,
    cluster: Cluster,
    planned: &Planned,
    work: &WorkOptions,
    context: &Context,
) -> Result<Outcome, Rejection> {
    let (printer, program) = (context.printer, context.surroundings.program.clone());
    let folder = SweepFolder::of(&planned.plan.name, options.out.as_deref());
    let folder = folder.absolute()?;
    for path in [folder.path(), &program] {
        cluster.takes(path)?;
    }
    let (folder, plan) = match options.dry_run {
        true => (folder, planned.plan.clone()),
        false => begin_folder(options, planned)?,
    };
    let said = context.global.threads.map(usize::from);
    let launch = Launch {
        folder: &folder,
        plan: &plan,
        program,
        workers: options.launch.workers.map(|workers| workers as usize),
        parallel: work.parallel,
        threads: said.or(plan.sweep.budget.threads),
        gpus: planned.gpus,
        address: options.launch.address.clone(),
    };
    let command = launch.driver_command(cluster);
    if options.dry_run {
        let driver = command.map(|words| format!("python3 {}\n", words.join(" ")));
        return Ok(printer.show(driver.unwrap_or_else(|| launch.slurm_script())));
    }
    if !context.global.quiet {
        printer.note(format_args!(
            "{}: {} in {}",
            plan.name,
            counted(plan.trials.len(), "trial"),
            folder.path().display()
        ));
    }
    if command.is_some() {
        launch.drive(cluster).map_err(Rejection::failed)?;
        return collect(&folder, &plan, context);
    }
    let job = launch
        .submit(&options.launch.sbatch_options)
        .map_err(Rejection::failed)?;
    let sweep = folder.path().display();
    let script = launch.slurm_path();
    printer.note(format_args!(
        "submitted as job {job}, {}\n\
         progress:     simic-engine sweep status {sweep}\n\
         workers:      squeue --job {job}\n\
         output:       {sweep}/logs/slurm-{job}_*.log\n\
         to continue:  sbatch {}\n\
         tables:       simic-engine sweep collect {sweep}",
        counted(launch.tasks(), "worker"),
        script.display(),
    ));
    Ok(printer.show(format_args!("{job}\n")))
}

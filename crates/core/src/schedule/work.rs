//! The way in which systems take up their works, and the consequence of a failure.

use std::borrow::BorrowMut;

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;
use bevy_ecs::system::ScheduleSystem;

use super::Work;
use crate::clock::RunClock;
use crate::health::{Failure, RunHealth};

/// Registers systems as pieces of [`Work`].
///
/// A system returns nothing, or a `Result` with the error of its subject. A failure stops the run: it is noted in
/// [`RunHealth`] with the work's [phase](Work::phase), the clock's position and, if the system named one, the env.
pub trait AddWork: BorrowMut<App> {
    /// `schedule` must list `work`.
    fn add_work<M, R: WorkResult>(
        &mut self,
        schedule: impl ScheduleLabel,
        work: Work,
        system: impl IntoSystem<(), R, M>,
    ) -> &mut Self {
        self.add_work_if(schedule, work, system, || true)
    }

    /// Work that is left out while `condition` is false.
    fn add_work_if<M, C, R: WorkResult>(
        &mut self,
        schedule: impl ScheduleLabel,
        work: Work,
        system: impl IntoSystem<(), R, M>,
        condition: impl SystemCondition<C>,
    ) -> &mut Self {
        let system = system.pipe(record_failure_of(work)).with_first_name().in_set(work);
        let app: &mut App = self.borrow_mut();
        app.add_systems(schedule, system.run_if(condition));
        self
    }

    /// Work that may read anything, left out while `condition` is false: a system that changes what it reads says whether it comes
    /// before.
    fn add_unordered_work<M, C>(
        &mut self,
        schedule: impl ScheduleLabel,
        work: Work,
        system: impl IntoScheduleConfigs<ScheduleSystem, M>,
        condition: impl SystemCondition<C>,
    ) -> &mut Self {
        let app: &mut App = self.borrow_mut();
        app.add_systems(schedule, system.in_set(work).ambiguous_with_all().run_if(condition));
        self
    }
}

impl AddWork for App {}

/// Return value of a system that does [`Work`].
pub trait WorkResult: 'static {
    /// The failure that stops the run, if there is one.
    fn failure(self) -> Option<Failure>;
}

impl WorkResult for () {
    fn failure(self) -> Option<Failure> {
        None
    }
}

impl<E: Into<Failure> + 'static> WorkResult for Result<(), E> {
    fn failure(self) -> Option<Failure> {
        self.err().map(E::into)
    }
}

fn record_failure_of<R: WorkResult>(work: Work) -> impl Fn(In<R>, ResMut<RunHealth>, Option<Res<RunClock>>) {
    move |In(result), mut health, clock| {
        if let Some(failure) = result.failure() {
            let position = clock.map(|clock| clock.position()).unwrap_or_default();
            health.record(failure.during(work.phase(), position));
        }
    }
}

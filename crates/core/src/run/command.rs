//! Commands to a run that another process plays: a file in its folder with one word, which the run takes when a step has ended.

use std::io::Read;
use std::path::{Path, PathBuf};

use bevy_ecs::prelude::*;

use super::{StopRequest, StopSignal};
use crate::env::EpisodeStats;
use crate::health::{AtPath, FileError};
use crate::storage;
use crate::telemetry::{Event, Note, TelemetryHub, TelemetryOutbox};
use crate::unfinished::UnfinishedRound;

/// The file of commands in the folder of a run.
pub const COMMAND_FILE: &str = "command";
/// Longer than any word: a file that another program has put there is not read whole.
const LONGEST: u64 = 64;

/// Requests of a person to a run that is being played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Waits after the current step.
    Pause,
    /// Plays on after a pause.
    Continue,
    /// Writes a checkpoint after the current step.
    Checkpoint,
    /// Stops, as Ctrl-C does once.
    Stop,
}

impl Command {
    /// All commands.
    pub const ALL: [Self; 4] = [Self::Pause, Self::Continue, Self::Checkpoint, Self::Stop];

    /// The word that the file holds.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Continue => "continue",
            Self::Checkpoint => "checkpoint",
            Self::Stop => "stop",
        }
    }

    /// The command of a `word`; `None` if it isn't one.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.word() == word)
    }
}

/// Sends a command to the run in `folder`, in the place of an earlier one that it has not taken yet. A run that no
/// process plays never takes it: the next process that plays it throws it away.
///
/// # Errors
/// A file that cannot be written.
pub fn send_command(folder: &Path, command: Command) -> Result<(), FileError> {
    let path = folder.join(COMMAND_FILE);
    storage::replace_synced(&path, command.word().as_bytes()).at(&path)
}

/// The source of the commands to a run, and the command that is still to be done.
#[derive(Resource, Debug)]
pub struct CommandInbox {
    file: PathBuf,
    /// True if the run waits.
    pub(super) is_paused: bool,
    /// A checkpoint was asked for after the last step of a round, where there is none.
    is_checkpoint_owed: bool,
}

impl CommandInbox {
    /// The inbox of the run in `folder`. What was sent to a process that has ended is thrown away.
    pub fn open(folder: &Path) -> Self {
        let inbox = Self {
            file: folder.join(COMMAND_FILE),
            is_paused: false,
            is_checkpoint_owed: false,
        };
        inbox.take();
        inbox
    }

    /// The word that was sent, if any. It is gone then, a command or not.
    fn take(&self) -> Option<String> {
        // This is the whole cost of a step without a command.
        if !self.file.exists() {
            return None;
        }
        // One that is sent in this moment is not removed unread.
        let taken = self.file.with_extension("taken");
        let read = storage::rename(&self.file, &taken).and_then(|()| {
            let mut word = Vec::new();
            crate::files::open(&taken)?.take(LONGEST).read_to_end(&mut word)?;
            storage::remove_file(&taken)?;
            Ok(String::from_utf8_lossy(&word).trim().to_owned())
        });
        read.inspect_err(|error| tracing::warn!(%error, file = %self.file.display(), "a command was not taken"))
            .ok()
    }
}

/// Obeys the command that was sent, if any.
pub(crate) fn take_command(
    mut commands: Commands,
    envs: Query<&EpisodeStats>,
    mut inbox: ResMut<CommandInbox>,
    stop: Res<StopSignal>,
    mut outbox: ResMut<TelemetryOutbox>,
    mut hub: ResMut<TelemetryHub>,
) {
    let word = inbox.take();
    let mut wants_checkpoint = std::mem::take(&mut inbox.is_checkpoint_owed);
    let said = word.as_deref().and_then(|word| match Command::of_word(word) {
        Some(Command::Pause) => (!std::mem::replace(&mut inbox.is_paused, true)).then(|| "paused by a command".into()),
        Some(Command::Continue) => std::mem::take(&mut inbox.is_paused).then(|| "continued by a command".into()),
        Some(Command::Checkpoint) => {
            wants_checkpoint = true;
            Some("checkpoint requested by a command".into())
        }
        Some(Command::Stop) => {
            stop.request(StopRequest::Interrupt);
            Some("stopped by a command".into())
        }
        None => Some(format!(
            "{word:?} in the file `{COMMAND_FILE}` isn't a command; commands are pause, continue, checkpoint and stop"
        )),
    });
    if let Some(text) = said {
        tracing::info!("{text}");
        outbox.push(Event::run(Note {
            command: word,
            ..Note::of_engine(text)
        }));
        // The run may wait now.
        hub.flush(&mut outbox);
    }
    if wants_checkpoint {
        match envs.iter().any(|stats| stats.end.is_none()) {
            true => commands.insert_resource(UnfinishedRound::default()),
            false => inbox.is_checkpoint_owed = true,
        }
    }
}

#[cfg(test)]
mod tests;

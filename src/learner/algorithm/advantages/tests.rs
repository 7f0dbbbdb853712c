mod gae;
mod targets;

//! `lectern backup` and `lectern restore`: an embedded installation as a folder, and made of it again.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::Args;
use lectern_runtime::{self as runtime, process::FatalError};
use lectern_shared::config::Settings;

use super::BackupManifest;
use crate::{
    doctor::NAMED,
    jobs::{counted, say},
};

/// What is backed up, and where to.
#[derive(Args)]
pub(crate) struct BackupArgs {
    /// The folder of the backup, which must not exist.
    folder: PathBuf,
    /// Leave out the file of the secret key: keep it apart. Without it nothing that is encrypted can be read.
    #[arg(long)]
    without_key: bool,
}

/// What is restored.
#[derive(Args)]
pub(crate) struct RestoreArgs {
    /// The folder of the backup.
    folder: PathBuf,
    /// Only read all of the backup, and see whether it is whole.
    #[arg(long)]
    verify: bool,
}

/// Makes a backup; the service may run.
///
/// # Errors
/// Why there is none.
pub(crate) async fn make(settings: &Settings, args: &BackupArgs) -> Result<(), FatalError> {
    runtime::make_private();
    let manifest = super::make(settings, &args.folder, !args.without_key).await?;
    let BackupManifest { database, blobs, .. } = &manifest;
    say(&format!(
        "the backup is made: {}, with a database of {} and {} of {}",
        args.folder.display(),
        ByteSize(database.bytes),
        counted(blobs.count, "file", "files"),
        ByteSize(blobs.bytes)
    ))?;
    besides(&manifest)
}

/// Makes an installation of a backup, or only reads it.
///
/// # Errors
/// Why that cannot be done.
pub(crate) async fn restore(settings: &Settings, args: &RestoreArgs) -> Result<(), FatalError> {
    runtime::make_private();
    let manifest = if args.verify {
        super::verify(&args.folder).await?
    } else {
        super::restore(settings, &args.folder).await?
    };
    let BackupManifest { program, created_at, blobs, .. } = &manifest;
    let end = if args.verify { "whole" } else { "restored" };
    let files = counted(blobs.count, "file", "files");
    say(&format!("the backup is {end}: of {created_at}, by Lectern {program}, with {files}"))?;
    besides(&manifest)?;
    if args.verify {
        return Ok(());
    }
    if manifest.key.is_none() && settings.secret_key.is_none() {
        let file = runtime::secret_file(&settings.data_dir);
        let file = file.display();
        say(&format!("before the first start, put its key into {file}, or set LECTERN_SECRET_KEY to it"))?;
    }
    if settings.qdrant.is_some() {
        say("run `lectern reindex` before the first start, which fills Qdrant again")?;
    }
    say("start it with `lectern`; `lectern doctor` tells whether all is well")
}

/// What an installation needs that is not in the backup.
fn besides(manifest: &BackupManifest) -> Result<(), FatalError> {
    manifest.not_included.iter().try_for_each(|what| say(&format!("not in the backup: {what}")))?;
    let missing = &manifest.blobs.missing;
    if missing.is_empty() {
        return Ok(());
    }
    let mut documents: Vec<String> = missing.iter().take(NAMED).map(ToString::to_string).collect();
    if missing.len() > NAMED {
        documents.push(format!("and {} more, which are in backup.json", missing.len() - NAMED));
    }
    say(&format!(
        "not in the backup: {} missing or damaged when it was made, of these documents: {}",
        counted(missing.len(), "file", "files"),
        documents.join(", ")
    ))
}

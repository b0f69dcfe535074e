//! `lectern backup` and `lectern restore`: an embedded installation as a folder, and made of it again.

use std::path::PathBuf;

use clap::Args;
use lectern_runtime::process::FatalError;
use lectern_shared::config::Settings;

use super::BackupManifest;

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
    let manifest = super::make(settings, &args.folder, !args.without_key).await?;
    tracing::info!(
        folder = %args.folder.display(),
        database_bytes = manifest.database.bytes,
        files = manifest.blobs.count,
        file_bytes = manifest.blobs.bytes,
        "the backup is made"
    );
    besides(&manifest);
    if !manifest.blobs.missing.is_empty() {
        let documents = manifest.blobs.missing.len();
        tracing::warn!(
            documents,
            "the files of some documents were missing or damaged, and are not in the backup: `lectern doctor` names them"
        );
    }
    Ok(())
}

/// Makes an installation of a backup, or only reads it.
///
/// # Errors
/// Why that cannot be done.
pub(crate) async fn restore(settings: &Settings, args: &RestoreArgs) -> Result<(), FatalError> {
    let manifest = if args.verify {
        super::verify(&args.folder).await?
    } else {
        super::restore(settings, &args.folder).await?
    };
    let BackupManifest { program, created_at, blobs, .. } = &manifest;
    let files = blobs.count;
    if args.verify {
        tracing::info!(program, created_at, files, "the backup is whole");
        besides(&manifest);
        return Ok(());
    }
    tracing::info!(program, created_at, files, "the backup is restored");
    besides(&manifest);
    if settings.qdrant.is_some() {
        tracing::info!("run `lectern reindex` before the first start, which fills Qdrant again");
    }
    tracing::info!("start it with `lectern`; `lectern doctor` tells whether all is well");
    Ok(())
}

/// What an installation needs that is not in the backup.
fn besides(manifest: &BackupManifest) {
    for what in &manifest.not_included {
        tracing::info!("not in the backup: {what}");
    }
}

//! The key that everything secret is encrypted under.

use std::os::unix::fs::PermissionsExt as _;

use lectern_db::{Db, checkup, sealed::KeyUsage, singletons};
use lectern_runtime as runtime;
use lectern_shared::{
    config::DatabaseLocation,
    secrets::{CANARY, Keyring, unhex},
};

use super::{DoctorContext, DoctorError, DoctorFinding, DoctorReport, InstallationPart, Severity};

const RIGHT_KEY: &str = "set LECTERN_SECRET_KEY to the right key, or put its file back from a backup; when the key was changed, give the old one as LECTERN_SECRET_KEY_PREVIOUS";

/// What others than the owner may do with a file.
const OTHERS: u32 = 0o077;

pub(super) async fn look(look: &DoctorContext<'_>, report: &mut DoctorReport) -> Result<(), DoctorError> {
    let DoctorContext { settings, db, .. } = look;
    let canary = singletons::get(db, CANARY).await?;
    let secret = match (&settings.secret_key, &settings.database) {
        (Some(secret), _) => secret.clone(),
        (None, DatabaseLocation::Postgres(_)) => {
            report
                .add(error("not_set", "LECTERN_SECRET_KEY is not set").todo("set it as the service has it"));
            return Ok(());
        }
        (None, DatabaseLocation::Sqlite(_)) => {
            let file = runtime::secret_file(&settings.data_dir);
            match runtime::stored_secret(&settings.data_dir) {
                Ok(Some(secret)) => {
                    if std::fs::metadata(&file).is_ok_and(|there| there.permissions().mode() & OTHERS != 0) {
                        let what = format!("others than its owner may read {}", file.display());
                        let todo = format!("run `chmod 600 {}`", file.display());
                        let finding =
                            DoctorFinding::new(InstallationPart::Secret, Severity::Warning, "readable", what);
                        report.add(finding.todo(todo));
                    }
                    secret
                }
                Ok(None) if canary.is_none() => {
                    report.ok(InstallationPart::Secret, "no key yet; the first start makes one");
                    return Ok(());
                }
                Ok(None) => {
                    let what =
                        format!("{} is gone, so nothing that is encrypted can be read", file.display());
                    let todo = "put it back from a backup, or set LECTERN_SECRET_KEY to what it held; without it, restore the last backup that has it";
                    report.add(error("lost", what).todo(todo));
                    return Ok(());
                }
                Err(failure) => {
                    let what = format!("{} cannot be read: {failure}", file.display());
                    report.add(error("unreadable", what).todo("let the service's account read it"));
                    return Ok(());
                }
            }
        }
    };
    let place = match &settings.secret_key {
        Some(_) => "LECTERN_SECRET_KEY".to_owned(),
        None => runtime::secret_file(&settings.data_dir).display().to_string(),
    };
    // The settings have looked at theirs, so that what is wrong now is the first key.
    let keyring = match Keyring::new(&secret, settings.secret_key_previous.as_ref()) {
        Ok(keyring) => keyring,
        Err(failure) => {
            let what = format!("the key in {place} cannot be used: {failure}");
            report.add(error("unusable", what).todo(RIGHT_KEY));
            return Ok(());
        }
    };
    if canary.as_ref().is_some_and(|canary| !runtime::opens_canary(&keyring, canary)) {
        let what = format!("the key in {place} is not the one that this database was filled under");
        report.add(error("wrong", what).todo(RIGHT_KEY));
        return Ok(());
    }
    sealed(look, &keyring, canary.as_deref(), report).await
}

fn error(code: &'static str, what: impl Into<String>) -> DoctorFinding {
    DoctorFinding::new(InstallationPart::Secret, Severity::Error, code, what)
}

/// Counts what is encrypted under which key, with the canary, which one of the keys opens.
async fn usage(db: &Db, keyring: &Keyring, canary: Option<&str>) -> Result<KeyUsage, DoctorError> {
    let current = keyring.current_id();
    let previous = keyring.previous_id();
    let mut found = checkup::sealed(db, current, previous.unwrap_or(current)).await?;
    if previous.is_none() {
        // Nothing is counted twice.
        found.previous = 0;
    }
    if let Some(canary) = canary.and_then(unhex) {
        let is_current = canary.starts_with(&keyring.head());
        found.total += 1;
        found.current += i64::from(is_current);
        found.previous += i64::from(!is_current);
    }
    Ok(found)
}

/// Which keys are needed still.
async fn sealed(
    look: &DoctorContext<'_>,
    keyring: &Keyring,
    canary: Option<&str>,
    report: &mut DoctorReport,
) -> Result<(), DoctorError> {
    let found = usage(look.db, keyring, canary).await?;
    let old = found.previous;
    let foreign = found.total - found.current - old;
    if foreign > 0 {
        let what = format!("{foreign} of {} secrets are encrypted under a key that is not set", found.total);
        let todo = "give that key as LECTERN_SECRET_KEY_PREVIOUS; or have those tokens, keys and credentials set anew";
        report.add(error("key_missing", what).todo(todo));
    } else if old > 0 {
        let what = format!(
            "the key is right; {old} of {} secrets need LECTERN_SECRET_KEY_PREVIOUS still: `lectern reencrypt` ends that",
            found.total
        );
        report.ok(InstallationPart::Secret, what);
    } else {
        report.ok(InstallationPart::Secret, "the key is right");
    }
    Ok(())
}

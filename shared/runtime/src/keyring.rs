//! The key that is encrypted under, and the file that holds it where the settings do not.

use std::{
    fs::File,
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use lectern_db::{Db, singletons};
use lectern_shared::{
    config::{DatabaseLocation, Settings},
    secrets::{CANARY, CiphertextLocation, Keyring, hex, unhex},
};
use secrecy::SecretString;

use crate::RuntimeStartError;

/// The keys from the settings; embedded, from a file that is made at the first start.
pub(crate) async fn open(settings: &Settings, db: &Db) -> Result<Keyring, RuntimeStartError> {
    let canary = singletons::get(db, CANARY).await?;
    // What is told of a key says where it is from.
    let (secret, file) = match (&settings.secret_key, &settings.database) {
        (Some(secret), _) => (secret.clone(), None),
        (None, DatabaseLocation::Postgres(_)) => return Err(RuntimeStartError::SecretMissing),
        (None, DatabaseLocation::Sqlite(_)) => {
            let file = secret_file(&settings.data_dir).display().to_string();
            let fail = |source| RuntimeStartError::DataDir { path: file.clone(), source };
            let secret = match stored_secret(&settings.data_dir).map_err(fail)? {
                Some(secret) => secret,
                // A fresh key would only hide what is wrong.
                None if canary.is_some() => return Err(RuntimeStartError::SecretLost(file)),
                None => fresh_secret(&settings.data_dir).map_err(fail)?,
            };
            (secret, Some(file))
        }
    };
    // The settings have looked at theirs: what is too short now is the file's.
    let keyring = match (Keyring::new(&secret, settings.secret_key_previous.as_ref()), &file) {
        (Err(source), Some(file)) => {
            return Err(RuntimeStartError::SecretFile { file: file.clone(), source });
        }
        (keyring, _) => keyring?,
    };
    match canary {
        Some(stored) if opens_canary(&keyring, &stored) => {}
        Some(_) => {
            return Err(file.map_or(RuntimeStartError::WrongSecret, RuntimeStartError::WrongSecretFile));
        }
        None => leave_canary(&keyring, db).await?,
    }
    Ok(keyring)
}

/// Where the secret of an embedded installation is, unless the settings have it.
pub fn secret_file(data_dir: &Path) -> PathBuf {
    data_dir.join("secret.key")
}

/// The secret of an embedded installation; none when there is no file.
pub fn stored_secret(data_dir: &Path) -> io::Result<Option<SecretString>> {
    match std::fs::read_to_string(secret_file(data_dir)) {
        Ok(secret) => Ok(Some(SecretString::from(secret.trim()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn fresh_secret(data_dir: &Path) -> io::Result<SecretString> {
    let secret = hex(&rand::random::<[u8; 32]>());
    // Written aside and renamed, so that a crash leaves no half of a key.
    let fresh = data_dir.join("secret.key.new");
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
    io::Write::write_all(&mut file, secret.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&fresh, secret_file(data_dir))?;
    File::open(data_dir)?.sync_all()?;
    Ok(SecretString::from(secret))
}

/// Records by what these keys are known, unless another process has been quicker, which must have the same.
async fn leave_canary(keyring: &Keyring, db: &Db) -> Result<(), RuntimeStartError> {
    let sealed = hex(&keyring.encrypt(CiphertextLocation::canary(), CANARY.as_bytes())?);
    let mut tx = db.begin_essential().await?;
    let first = singletons::claim(&mut tx, CANARY, &sealed).await?;
    tx.commit().await?;
    if first {
        return Ok(());
    }
    let stored = singletons::get(db, CANARY).await?.ok_or(RuntimeStartError::WrongSecret)?;
    if opens_canary(keyring, &stored) { Ok(()) } else { Err(RuntimeStartError::WrongSecret) }
}

/// Whether these keys are those of the database with this canary.
pub fn opens_canary(keyring: &Keyring, stored: &str) -> bool {
    unhex(stored).is_some_and(|sealed| keyring.decrypt(CiphertextLocation::canary(), &sealed).is_ok())
}

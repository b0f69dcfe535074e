//! The relational store, and the disk under it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use bytesize::ByteSize;
use lectern_db::{
    self as db, Db, checkup,
    migrate::{self, SchemaStatus},
};
use lectern_runtime as runtime;
use lectern_shared::{
    blobs::BlobLocation,
    config::{DatabaseLocation, Settings},
};
use rustix::{
    fs::{Access, access},
    io::Errno,
};

use super::{DoctorFinding, DoctorOptions, DoctorReport, InstallationPart, Severity};

/// An installation over PostgreSQL in which nobody kept the house for so long has no worker.
pub(super) const HOUSEKEEPER_SILENT: Duration = Duration::from_mins(2);
/// Free room, in bytes, below which somebody should know, and below which writes are about to fail.
const LITTLE_ROOM: u64 = 1 << 30;
const NO_ROOM: u64 = 64 << 20;
const MORE_CONNECTIONS: &str = "let it have more, 20 for each process and some for commands and backups: `max_connections` of the server, and `CONNECTION LIMIT` of the role and of the database (`ALTER ROLE`, `ALTER DATABASE`)";
const OTHER_ENCODING: &str = "stop the service, and restore a dump (`pg_dump`, `pg_restore`) into a database that was made with ENCODING 'UTF8' TEMPLATE template0";
const BACKUP: &str = "stop the service and restore a backup (`lectern restore`)";

/// Opens the store; none when nothing more can be asked of it.
pub(super) async fn open(
    settings: &Settings,
    options: DoctorOptions,
    report: &mut DoctorReport,
) -> Option<Db> {
    room(settings, report);
    if let DatabaseLocation::Sqlite(file) = &settings.database
        && let Err(finding) = check_rights(file)
    {
        report.add(finding);
        return None;
    }
    let kind = match &settings.database {
        DatabaseLocation::Sqlite(file) if !file.exists() => {
            let what = format!("there is no database at {}", runtime::whole_path(file));
            report.add(error("no_database", what).todo(
                "set LECTERN_DATA_DIR (or DATABASE_URL) to the service's; a new installation is made by its first start",
            ));
            return None;
        }
        DatabaseLocation::Sqlite(_) => "SQLite",
        DatabaseLocation::Postgres(_) => "PostgreSQL",
    };
    let db = match db::open_for_command(&settings.database).await {
        Ok(db) => db,
        Err(failure) => {
            let todo = match &settings.database {
                DatabaseLocation::Sqlite(_) => BACKUP,
                DatabaseLocation::Postgres(_) if failure.is_too_many_connections() => MORE_CONNECTIONS,
                DatabaseLocation::Postgres(_) => "start PostgreSQL, or correct DATABASE_URL",
            };
            report.add(error("unreachable", format!("it cannot be opened: {failure}")).todo(todo));
            return None;
        }
    };
    let damaged = damage(&db, options, report).await;
    match migrate::standing(&db).await {
        Ok(SchemaStatus::Current) => {
            if !damaged {
                report.ok(InstallationPart::Database, format!("{kind}, schema {}", migrate::version()));
            }
            encoding(&db, report).await;
            return Some(db);
        }
        Ok(standing) => report.add(schema(standing)),
        Err(failure) => {
            let todo = if damaged { BACKUP } else { "see the database's own log" };
            report.add(error("unreadable", format!("its schema cannot be read: {failure}")).todo(todo));
        }
    }
    db.close().await;
    None
}

/// Whether every text can be stored.
async fn encoding(db: &Db, report: &mut DoctorReport) {
    if let Ok(Some(encoding)) = migrate::incomplete_encoding(db).await {
        let what = format!("its encoding is {encoding}: texts with characters that this lacks are refused");
        report.add(error("encoding", what).todo(OTHER_ENCODING));
    }
}

/// Whether this account may work with a SQLite file and what SQLite keeps beside it. Looked at before the file is opened, since opening
/// one that may only be read leaves more such files.
fn check_rights(file: &Path) -> Result<(), DoctorFinding> {
    let refused = |path: &Path, failure: Errno| {
        error(
            "not_writable",
            format!("{} cannot be read and written by this account: {failure}", path.display()),
        )
        .todo(remedy(failure))
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    let beside = |ending: &str| {
        let mut path = file.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    };
    match access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        // That there is none is said elsewhere.
        Err(Errno::NOENT) => return Ok(()),
        looked => looked.map_err(|failure| refused(folder, failure))?,
    }
    for path in [file.to_owned(), beside("-wal"), beside("-shm")] {
        match access(&path, Access::READ_OK | Access::WRITE_OK) {
            Err(Errno::NOENT) => {}
            looked => looked.map_err(|failure| refused(&path, failure))?,
        }
    }
    Ok(())
}

/// What lets the service work with a file that it cannot read and write.
fn remedy(failure: Errno) -> &'static str {
    match failure {
        Errno::ROFS => {
            "it is on a file system that is mounted read-only: mount it so that it can be written (`mount -o remount,rw`, a volume without `:ro`), or set LECTERN_DATA_DIR to where the data directory can be. A file system that became read-only by itself has met an error of its disk: look at the system's log first"
        }
        _ => {
            "run this as the account of the service, or give that account the data directory and all in it (`chown`, `chmod -R u+rwX`)"
        }
    }
}

fn error(code: &'static str, what: impl Into<String>) -> DoctorFinding {
    DoctorFinding::new(InstallationPart::Database, Severity::Error, code, what)
}

fn schema(standing: SchemaStatus) -> DoctorFinding {
    let ours = migrate::version();
    match standing {
        SchemaStatus::Empty | SchemaStatus::Current => error("no_schema", "the database is empty")
            .todo("start the service, or run `lectern migrate`; or correct DATABASE_URL"),
        SchemaStatus::Older(version) => {
            error("schema_older", format!("the schema is version {version}, and this program's is {ours}"))
                .todo("back up, then run `lectern migrate`")
        }
        SchemaStatus::Newer(version) => {
            error("schema_newer", format!("the schema is version {version}, and this program's is {ours}"))
                .todo("use the newer program, which made it; to go back, restore a backup of that time")
        }
        SchemaStatus::Altered(version) => error(
            "schema_altered",
            format!(
                "version {version} of the schema was made by another program than this, or not to its end"
            ),
        )
        .todo("use the program that made it, or restore a backup"),
    }
}

/// What SQLite finds wrong with its file; true when it is anything.
async fn damage(db: &Db, options: DoctorOptions, report: &mut DoctorReport) -> bool {
    let found = match checkup::damage(db, options.deep).await {
        Ok(found) => found,
        Err(failure) => vec![failure.to_string()],
    };
    if let Some(first) = found.first() {
        let what = format!("SQLite finds its file damaged: {first}");
        report.add(error("damaged", what).todo(BACKUP));
        return true;
    }
    match checkup::dangling(db).await {
        Ok(rows @ 1..) => {
            let what = format!("{rows} rows point to rows that do not exist");
            report.add(error("dangling_rows", what).todo(BACKUP));
            true
        }
        Ok(_) | Err(_) => false,
    }
}

/// How much room there is where this machine writes.
fn room(settings: &Settings, report: &mut DoctorReport) {
    let mut places: Vec<(&str, &Path)> = Vec::new();
    if matches!(settings.database, DatabaseLocation::Sqlite(_)) {
        places.push(("the data directory", &settings.data_dir));
    }
    if let BlobLocation::Folder(folder) = &settings.blobs
        && !folder.starts_with(&settings.data_dir)
    {
        places.push(("the folder of blobs", folder));
    }
    for (name, path) in places {
        let Ok(there) = rustix::fs::statvfs(path) else { continue };
        let free = there.f_bavail.saturating_mul(there.f_frsize);
        let what = format!("{name} has {} of room left", ByteSize::b(free));
        let todo = "make room: documents that are accepted need it";
        if free < NO_ROOM {
            report.add(error("no_room", what).todo(todo));
        } else if free < LITTLE_ROOM {
            report.add(
                DoctorFinding::new(InstallationPart::Database, Severity::Warning, "little_room", what)
                    .todo(todo),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_change_the_rights_on_a_file_system_that_is_read_only() {
        assert!(remedy(Errno::ACCESS).contains("chown"));
        let read_only = remedy(Errno::ROFS);
        assert!(read_only.contains("read-only") && !read_only.contains("chown"), "{read_only}");
    }
}

//! The folders that the operator has opened to sources.

use lectern_shared::config::SyncSettings;

use super::{DoctorFinding, DoctorReport, InstallationPart, Severity};

pub(super) fn look(settings: &SyncSettings, report: &mut DoctorReport) {
    let missing = settings.missing_folders();
    if missing.is_empty() && !settings.folders.is_empty() {
        report.ok(InstallationPart::Sources, "the folders that sources may read are there");
    }
    for folder in missing {
        let what = format!("the folder {}, which sources may read, is not there", folder.display());
        let finding =
            DoctorFinding::new(InstallationPart::Sources, Severity::Warning, "folder_missing", what);
        report.add(finding.todo(
            "make or mount it where the workers run, or correct LECTERN_SOURCE_FOLDERS; sources in it fail until it is there",
        ));
    }
}

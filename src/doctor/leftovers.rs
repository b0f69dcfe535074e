//! What nobody owns any more.

use lectern_db::{checkup, vectors};

use super::{DoctorContext, DoctorError, DoctorFinding, DoctorReport, InstallationPart, Severity};

pub(super) async fn look(look: &DoctorContext<'_>, report: &mut DoctorReport) -> Result<(), DoctorError> {
    let found = checkup::leftovers(look.db).await?;
    if found.is_none() {
        return Ok(());
    }
    if look.options.repair {
        let mut tx = look.db.begin().await?;
        checkup::retire_unnamed(&mut tx, look.now).await?;
        checkup::adopt_leftovers(&mut tx, look.now).await?;
        tx.commit().await?;
        loop {
            let documents = checkup::vectors_of_nobody(look.db).await?;
            if documents.is_empty() {
                break;
            }
            for document in documents {
                vectors::remove(look.db, document, None).await?;
            }
        }
    }
    let parts = [
        (found.chunks, "passages"),
        (found.segments, "parts of the index"),
        (found.generations, "generations"),
        (found.vectors, "vectors"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let what = format!("{} belong to nothing and only take room", parts.join(", "));
    let finding = DoctorFinding::new(InstallationPart::Index, Severity::Warning, "leftovers", what);
    report.add(
        finding
            .repairable(look.options.repair)
            .todo("run `lectern doctor --repair`: the service removes them when it next keeps the house"),
    );
    Ok(())
}

//! The models. Without an embedding model everything works, and is found by words only; without a reranker what is found keeps its
//! order.

use lectern_db::{self as db, Db, checkup};
use lectern_embed::{self as embed, Embedder};
use lectern_shared::config::{EmbedderKind, EmbeddingSettings, RerankSettings, RerankerKind, Settings};

use super::{DoctorFinding, DoctorOptions, DoctorReport, InstallationPart, Severity};
use crate::jobs::counted;

pub(super) async fn look(
    settings: &Settings,
    options: DoctorOptions,
    db: Option<&Db>,
    report: &mut DoctorReport,
) {
    look_at_reranker(&settings.rerank, report).await;
    let embedding = &settings.embedding;
    if embedding.kind == EmbedderKind::None {
        report.ok(InstallationPart::Model, "none is set; documents are found by words");
        return;
    }
    if options.deep && !sound(embedding, report).await {
        return;
    }
    match embed::at_hand(embedding).await {
        Ok(Some(embedder)) => {
            let space = embedder.space();
            report.ok(InstallationPart::Model, format!("{}, {} dimensions", space.model, space.dimensions));
            if let Some(db) = db
                && let Err(failure) = documents(db, embedder.as_ref(), report).await
            {
                let what = format!("the documents' vectors could not be looked at: {failure}");
                report.add(DoctorFinding::new(InstallationPart::Model, Severity::Error, "unreadable", what));
            }
        }
        Ok(None) => {
            let what =
                format!("{} is not on this machine yet: documents are found by words", embedding.model);
            let finding = DoctorFinding::new(InstallationPart::Model, Severity::Warning, "not_here", what);
            report.add(
                finding.todo("the service downloads it when it starts; `lectern model pull` does it now"),
            );
        }
        Err(failure) => {
            let todo = match embedding.kind {
                EmbedderKind::OpenAiCompatible => {
                    "make the server answer, or correct the LECTERN_EMBEDDING_ settings; documents are found by words meanwhile"
                }
                _ => {
                    "correct the LECTERN_EMBEDDING_ settings, or delete the model's folder and run `lectern model pull`"
                }
            };
            // The service does its work without it.
            let severity =
                if embedding.kind == EmbedderKind::Auto { Severity::Warning } else { Severity::Error };
            let finding =
                DoctorFinding::new(InstallationPart::Model, severity, "unusable", failure.to_string());
            report.add(finding.todo(todo));
        }
    }
}

/// The reranker, where one is set.
async fn look_at_reranker(settings: &RerankSettings, report: &mut DoctorReport) {
    if settings.kind == RerankerKind::None {
        return;
    }
    let finding = |severity, code, what| DoctorFinding::new(InstallationPart::Model, severity, code, what);
    match embed::reranker_at_hand(settings).await {
        Ok(Some(reranker)) => report.ok(InstallationPart::Model, format!("reranker {}", reranker.name())),
        Ok(None) => {
            let what = format!("the reranker {} is not on this machine yet", settings.model);
            report.add(finding(Severity::Warning, "reranker_not_here", what).todo(
                "the service downloads it when it starts; `lectern model pull --reranker` does it now",
            ));
        }
        Err(failure) => report.add(
            finding(Severity::Error, "reranker_unusable", failure.to_string())
                .todo("correct the LECTERN_RERANK_ settings; what is found keeps its order meanwhile"),
        ),
    }
}

/// Whether the model's files are what they were when they came.
async fn sound(embedding: &EmbeddingSettings, report: &mut DoctorReport) -> bool {
    let (code, what) = match embed::altered(embedding).await {
        Ok(altered) if altered.is_empty() => return true,
        Ok(altered) => ("altered", format!("its files are not what they were: {}", altered.join(", "))),
        Err(failure) => ("unreadable", format!("its files cannot be read: {failure}")),
    };
    let finding = DoctorFinding::new(InstallationPart::Model, Severity::Error, code, what);
    report.add(
        finding
            .todo("delete the model's folder (`lectern model list` shows it), and run `lectern model pull`"),
    );
    false
}

/// Documents whose vectors are not this model's.
async fn documents(db: &Db, embedder: &dyn Embedder, report: &mut DoctorReport) -> db::Result<()> {
    let (_, outside) = db::vectors::documents_in_space(db, embedder.space()).await?;
    let without = checkup::without_vectors(db).await?;
    let other = outside - without;
    if without > 0 {
        let what = format!("{} no vectors yet", counted(without, "document has", "documents have"));
        let finding = DoctorFinding::new(InstallationPart::Model, Severity::Warning, "without_vectors", what);
        report.add(
            finding.todo("nothing: the service embeds them by itself; `lectern reembed` does it at once"),
        );
    }
    if other > 0 {
        let what = format!("{} embedded by another model", counted(other, "document is", "documents are"));
        let finding = DoctorFinding::new(InstallationPart::Model, Severity::Warning, "other_model", what);
        report.add(finding.todo("run `lectern reembed`, so that they are compared by this one"));
    }
    Ok(())
}

//! Documents as OpenAI's clients see files.

use lectern_shared::{
    ids::DocumentId,
    model::{Json, document::DocumentFile, job::JobState},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::paging::ListedObject;

/// A file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiFile)]
pub(super) struct FileObject {
    /// Its id, which is that of its document.
    #[schema(value_type = String)]
    id: DocumentId,
    /// Always `file`.
    object: &'static str,
    /// Its size in bytes.
    bytes: i64,
    /// When it came, in seconds since 1970.
    created_at: i64,
    /// Always null: it is kept until it is deleted.
    #[schema(required = true)]
    expires_at: Option<i64>,
    /// What it is called: like the file that was uploaded, else like the document.
    filename: String,
    /// Always `assistants`, also of what was uploaded as `user_data`: they are the same here.
    purpose: &'static str,
    /// Whether it waits to be read (`uploaded`), was read (`processed`), or was not (`error`): it could not be, or its ingestion was cancelled.
    #[schema(pattern = "^(uploaded|processed|error)$")]
    status: &'static str,
    /// Why it was not read.
    #[schema(required = true)]
    status_details: Option<String>,
}

impl From<DocumentFile> for FileObject {
    fn from(file: DocumentFile) -> Self {
        let (status, status_details) = match file.state {
            JobState::Queued | JobState::Running => ("uploaded", None),
            JobState::Done => ("processed", None),
            // Clients wait as long as it is `uploaded`, and there is no other word for what has ended.
            JobState::Cancelled => ("error", Some("Its ingestion was cancelled.".to_owned())),
            JobState::Dead => ("error", file.last_error.as_ref().map(|Json(error)| error.message.clone())),
        };
        Self {
            id: file.id,
            object: "file",
            bytes: file.stored_bytes,
            created_at: file.created_at.as_secs(),
            expires_at: None,
            filename: file.file_name().to_owned(),
            purpose: "assistants",
            status,
            status_details,
        }
    }
}

impl ListedObject for FileObject {
    fn object_id(&self) -> String {
        self.id.to_string()
    }
}

/// That a file is gone.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiFileDeleted)]
pub(super) struct DeletedFile {
    /// The id that it had.
    #[schema(value_type = String)]
    pub(super) id: DocumentId,
    /// Always `file`.
    pub(super) object: &'static str,
    /// Always true.
    pub(super) deleted: bool,
}

pub(super) fn example() -> Value {
    json!({
        "id": "019a8f44-7d20-7b61-a0c5-2f8e6d914b37",
        "object": "file",
        "bytes": 120_000,
        "created_at": 1_769_846_700,
        "expires_at": null,
        "filename": "handbook.pdf",
        "purpose": "assistants",
        "status": "processed",
        "status_details": null,
    })
}

#[cfg(test)]
mod tests {
    use lectern_shared::{clock::Timestamp, model::job::IngestionError};

    use super::*;

    fn shown(state: JobState, source_name: Option<&str>) -> Value {
        let file = DocumentFile {
            id: DocumentId::generate(),
            name: "Handbook".to_owned(),
            source_name: source_name.map(str::to_owned),
            stored_bytes: 12,
            created_at: Timestamp::from_micros(7_900_000),
            state,
            last_error: Some(Json(IngestionError::interrupted())),
        };
        json!(FileObject::from(file))
    }

    #[test]
    fn every_state_is_one_of_the_three_that_clients_know() {
        for (state, status) in [
            (JobState::Queued, "uploaded"),
            (JobState::Running, "uploaded"),
            (JobState::Cancelled, "error"),
            (JobState::Done, "processed"),
            (JobState::Dead, "error"),
        ] {
            let file = shown(state, None);
            assert_eq!(file["status"], status);
            assert_eq!(file["status_details"].is_string(), status == "error", "{state}");
        }
    }

    #[test]
    fn a_file_is_called_as_it_was_uploaded_and_else_like_its_document() {
        assert_eq!(shown(JobState::Done, Some("a.pdf"))["filename"], "a.pdf");
        let file = shown(JobState::Done, None);
        assert_eq!(
            (&file["filename"], &file["created_at"], &file["bytes"]),
            (&json!("Handbook"), &json!(7), &json!(12))
        );
        let mut names: Vec<&String> = file.as_object().unwrap().keys().collect();
        let example = example();
        let mut described: Vec<&String> = example.as_object().unwrap().keys().collect();
        names.sort();
        described.sort();
        assert_eq!(names, described);
    }
}

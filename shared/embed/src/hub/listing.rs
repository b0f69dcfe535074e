//! Which commit is meant, and what its files are.

use serde::Deserialize;

use super::{HubError, ModelId, client::HubClient, model_id::is_commit};

const MIB: u64 = 1024 * 1024;
/// The files that an encoder reads: path, whether there is no encoder without it, and the most bytes that are plausible.
const WANTED: [(&str, bool, u64); 7] = [
    ("config.json", true, MIB),
    ("tokenizer.json", true, 256 * MIB),
    ("modules.json", false, MIB),
    ("1_Pooling/config.json", false, MIB),
    ("sentence_bert_config.json", false, MIB),
    ("config_sentence_transformers.json", false, MIB),
    // Last, so that what is small and may be missing shows first.
    ("model.safetensors", true, 64 * 1024 * MIB),
];
/// Pages of a list of files that are read.
const MAX_PAGES: usize = 20;

/// How the content of a file is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IntegrityCheck {
    /// The SHA-256 of its bytes, in hexadecimal digits.
    Sha256(String),
    /// The SHA-1 that git names the file by, in hexadecimal digits.
    GitBlob(String),
    /// The hub does not say.
    Size,
}

/// A file to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemoteFile {
    /// Its path in the model's repository, one of those wanted.
    pub(super) path: &'static str,
    /// Its length in bytes.
    pub(super) size: u64,
    pub(super) check: IntegrityCheck,
}

/// What is compiled in about a model: the revision that is used, and what its largest file must be.
#[derive(Clone, Debug)]
pub(super) struct PinnedModel {
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) commit: String,
    pub(super) files: Vec<(&'static str, u64, String)>,
}

impl PinnedModel {
    /// The pins of this version.
    pub(super) fn built_in() -> Vec<Self> {
        vec![Self {
            owner: "sentence-transformers".to_owned(),
            name: "all-MiniLM-L6-v2".to_owned(),
            commit: "c9745ed1d9f207416be6d2e6f8de32d1f16199bf".to_owned(),
            files: vec![(
                "model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db".to_owned(),
            )],
        }]
    }

    pub(super) fn is_of(&self, model: &ModelId) -> bool {
        self.owner == model.owner() && self.name == model.name()
    }
}

#[derive(Deserialize)]
struct HubRevision {
    sha: String,
}

#[derive(Deserialize)]
struct TreeEntry {
    r#type: String,
    path: String,
    #[serde(default)]
    size: u64,
    oid: Option<String>,
    lfs: Option<LfsPointer>,
}

#[derive(Deserialize)]
struct LfsPointer {
    oid: String,
    size: u64,
}

/// The commit that a revision stands for now.
pub(super) async fn commit(client: &HubClient, model: &ModelId, revision: &str) -> Result<String, HubError> {
    if is_commit(revision) {
        return Ok(revision.to_owned());
    }
    let url = client.url(["api", "models", model.owner(), model.name(), "revision", revision]);
    let (HubRevision { sha }, _) = client.json(model, &url).await?;
    // It becomes part of addresses and paths.
    if is_commit(&sha) { Ok(sha) } else { Err(client.not_a_hub("it names a revision that is no commit")) }
}

/// The files of a commit that are wanted.
pub(super) async fn files(
    client: &HubClient,
    model: &ModelId,
    commit: &str,
    pin: Option<&PinnedModel>,
) -> Result<Vec<RemoteFile>, HubError> {
    let mut url = client.url(["api", "models", model.owner(), model.name(), "tree", commit]);
    url.set_query(Some("recursive=true"));
    let (mut found, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..MAX_PAGES {
        let (entries, next) = client.json::<Vec<TreeEntry>>(model, &url).await?;
        for entry in entries.into_iter().filter(|entry| entry.r#type == "file") {
            if let Some(&(path, _, most)) = WANTED.iter().find(|(path, ..)| *path == entry.path) {
                found.push(remote_file(client, model, path, most, entry, pin)?);
            } else if is_weights(&entry.path) {
                seen.push(entry.path);
            }
        }
        match next {
            Some(next) => url = next,
            None => return in_order(model, found, &seen),
        }
    }
    Err(client.not_a_hub("its list of files does not end"))
}

fn remote_file(
    client: &HubClient,
    model: &ModelId,
    path: &'static str,
    most: u64,
    entry: TreeEntry,
    pin: Option<&PinnedModel>,
) -> Result<RemoteFile, HubError> {
    let (size, check) = match (entry.lfs, entry.oid) {
        (Some(LfsPointer { oid, size }), _) => (size, IntegrityCheck::Sha256(digits(client, &oid, 64)?)),
        (None, Some(oid)) => (entry.size, IntegrityCheck::GitBlob(digits(client, &oid, 40)?)),
        (None, None) => (entry.size, IntegrityCheck::Size),
    };
    if size > most {
        let problem = format!("its {path} has {size} bytes, more than the {most} that are accepted");
        return Err(HubError::Unusable { model: model.clone(), problem });
    }
    let pinned = pin.and_then(|pin| pin.files.iter().find(|(pinned, ..)| *pinned == path));
    if let Some((_, pinned_size, hash)) = pinned {
        let wanted = IntegrityCheck::Sha256(hash.clone());
        let differs = size != *pinned_size || (matches!(check, IntegrityCheck::Sha256(_)) && check != wanted);
        if differs {
            return Err(HubError::Damaged {
                model: model.clone(),
                file: path.to_owned(),
                problem: "the hub lists another file than the one that this version was made for",
            });
        }
        return Ok(RemoteFile { path, size, check: wanted });
    }
    Ok(RemoteFile { path, size, check })
}

fn digits(client: &HubClient, text: &str, length: usize) -> Result<String, HubError> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    if digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(digits)
    } else {
        Err(client.not_a_hub("its list has a hash that is none"))
    }
}

/// Weights in a form that is not read here.
fn is_weights(path: &str) -> bool {
    !path.contains('/')
        && [".bin", ".pt", ".ckpt", ".h5", ".msgpack", ".gguf", ".onnx", ".safetensors"]
            .iter()
            .any(|end| path.ends_with(end))
}

/// The files in the order of [`WANTED`], complete.
fn in_order(
    model: &ModelId,
    mut found: Vec<RemoteFile>,
    weights: &[String],
) -> Result<Vec<RemoteFile>, HubError> {
    let place = |file: &RemoteFile| WANTED.iter().position(|(path, ..)| *path == file.path);
    found.sort_by_key(place);
    found.dedup_by(|a, b| a.path == b.path);
    let missing =
        WANTED.iter().find(|(path, required, _)| *required && !found.iter().any(|file| file.path == *path));
    let Some((path, ..)) = missing else { return Ok(found) };
    let instead = if *path == "model.safetensors" && !weights.is_empty() {
        "its weights are published in other forms only"
    } else {
        "it is no sentence encoder that can be read here"
    };
    let problem = format!(
        "it has no {path}; {instead}. Choose a model of the BERT family that publishes config.json, tokenizer.json and model.safetensors"
    );
    Err(HubError::Unusable { model: model.clone(), problem })
}

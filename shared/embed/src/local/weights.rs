//! Reads a model's weights, and what identifies them.

use std::{
    fs::File,
    io::{self, ErrorKind, Read as _, Seek as _},
    path::Path,
};

use lectern_encoder::WeightsError;
use lectern_shared::{
    scratch_file,
    secrets::{Sha256Hasher, hex},
};

use super::ModelError;

/// What `load` makes of the weights, and the SHA-256 of the file in hexadecimal digits.
pub(super) fn read<T>(
    dir: &Path,
    load: impl FnOnce(&mut File) -> Result<T, WeightsError>,
) -> Result<(T, String), ModelError> {
    let path = dir.join("model.safetensors");
    let failed = |error| ModelError::Read { path: path.clone(), error };
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(ModelError::Missing { path, hint: instead(dir).to_owned() });
        }
        opened => opened.map_err(failed)?,
    };
    let hash = hash(&mut file).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let model = load(&mut file).map_err(|error| ModelError::Weights { path: path.clone(), error })?;
    Ok((model, hash))
}

/// Has a model keep its token embeddings in an unnamed file in this folder, if it can be.
pub(super) fn keep_words(
    scratch_dir: Option<&Path>,
    move_to: impl FnOnce(&dyn Fn(u64) -> io::Result<File>) -> io::Result<()>,
) {
    let Some(folder) = scratch_dir else { return };
    if let Err(error) = move_to(&|bytes| scratch_file::create(folder, bytes)) {
        let folder = folder.display();
        tracing::info!(%error, %folder, "the model's token embeddings are kept in memory: no file can be made for them");
    }
}

/// What to do about missing weights, by what is there.
fn instead(dir: &Path) -> &'static str {
    let exists = |name: &str| dir.join(name).exists();
    if exists("model.safetensors.index.json") {
        "weights in several files are not read; choose a model that is published with one model.safetensors"
    } else if exists("pytorch_model.bin") {
        "weights in pytorch_model.bin are not read; choose a model that is published with model.safetensors, or convert it"
    } else if exists("onnx") || exists("model.onnx") || exists("openvino") {
        "only weights converted for another program are there; the published model.safetensors is needed"
    } else {
        "download the model's model.safetensors into the folder"
    }
}

fn hash(file: &mut File) -> io::Result<String> {
    let mut hasher = Sha256Hasher::default();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hex(&hasher.finish())),
            Ok(length) => hasher.update(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

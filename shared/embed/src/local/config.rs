//! What a model's files of settings say: its shape, how long its texts may be, how an encoder's vectors are pooled.

use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    path::Path,
};

use lectern_encoder::{ActivationFunction, ModelFamily, ModelShape, PoolingMode};
use serde::{Deserialize, de::DeserializeOwned};

use super::ModelError;

/// More than any such file has.
const MOST_BYTES: u64 = 1 << 20;

/// A model, as its files of settings describe it.
#[derive(Debug)]
pub(super) struct LocalModelConfig {
    pub(super) shape: ModelShape,
    /// Texts are put in lower case before anything else.
    pub(super) lower_case: bool,
    /// The most tokens of a text, with those that the tokenizer adds.
    pub(super) max_tokens: usize,
    /// What the model was called where it was made, or nothing.
    pub(super) original_name: String,
}

/// `config.json`. `DistilBERT` has names of its own for some.
#[derive(Deserialize)]
struct TransformerFile {
    #[serde(default)]
    model_type: String,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    #[serde(default, rename = "_name_or_path")]
    name: Option<String>,
    #[serde(alias = "dim")]
    hidden_size: Option<usize>,
    #[serde(alias = "n_layers")]
    num_hidden_layers: Option<usize>,
    #[serde(alias = "n_heads")]
    num_attention_heads: Option<usize>,
    #[serde(alias = "hidden_dim")]
    intermediate_size: Option<usize>,
    #[serde(alias = "activation")]
    hidden_act: Option<String>,
    vocab_size: Option<usize>,
    max_position_embeddings: Option<usize>,
    pad_token_id: Option<usize>,
    layer_norm_eps: Option<f32>,
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
    auto_map: Option<serde_json::Value>,
    quantization_config: Option<serde_json::Value>,
}

/// A line of `modules.json`.
#[derive(Deserialize)]
struct ModuleEntry {
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The `config.json` of a pooling module. Newer ones name the mode, older ones have a switch for each.
#[derive(Deserialize, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the file has them")]
struct PoolingFile {
    pooling_mode: Option<serde_json::Value>,
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_weightedmean_tokens: bool,
    #[serde(default)]
    pooling_mode_lasttoken: bool,
    include_prompt: Option<bool>,
}

/// `sentence_bert_config.json`.
#[derive(Deserialize, Default)]
struct SentenceFile {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

/// `tokenizer_config.json`. The length may be absurd, for "no limit".
#[derive(Deserialize, Default)]
struct TokenizerFile {
    model_max_length: Option<f64>,
}

impl LocalModelConfig {
    /// Reads the files of a model's folder.
    pub(super) fn read(dir: &Path) -> Result<Self, ModelError> {
        let path = dir.join("config.json");
        let transformer: TransformerFile = read_json(&path)?.ok_or_else(|| ModelError::Missing {
            path: path.clone(),
            hint: "the folder must hold a model's published files (config.json, tokenizer.json, \
                   model.safetensors)"
                .to_owned(),
        })?;
        let shape = shape(&path, &transformer)?;
        let sentence: SentenceFile = read_json(&dir.join("sentence_bert_config.json"))?.unwrap_or_default();
        let tokenizer: TokenizerFile = read_json(&dir.join("tokenizer_config.json"))?.unwrap_or_default();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "cut at the ends by the cast"
        )]
        let limits = [sentence.max_seq_length, tokenizer.model_max_length.map(|length| length as usize)];
        let max_tokens = limits.into_iter().flatten().fold(shape.max_tokens(), usize::min);
        let original_name = transformer.name.unwrap_or_default();
        Ok(Self { shape, lower_case: sentence.do_lower_case, max_tokens, original_name })
    }
}

fn shape(path: &Path, file: &TransformerFile) -> Result<ModelShape, ModelError> {
    let kind = match (&*file.model_type, file.architectures.as_deref()) {
        ("", Some([architecture, ..])) => architecture.to_lowercase(),
        (kind, _) => kind.to_lowercase().replace('-', ""),
    };
    let (family, offset) = match &*kind {
        "bert" | "bertmodel" => (ModelFamily::Bert, false),
        "roberta" | "xlmroberta" | "camembert" | "robertamodel" | "xlmrobertamodel" | "camembertmodel" => {
            (ModelFamily::Bert, true)
        }
        "distilbert" | "distilbertmodel" => (ModelFamily::DistilBert, false),
        other => {
            return Err(ModelError::unsupported(
                path,
                format!("models of the type \"{other}\" are not known"),
            ));
        }
    };
    let refused = if file.auto_map.is_some() {
        Some("the model needs program code of its own".to_owned())
    } else if file.quantization_config.is_some() {
        Some("the weights are quantised".to_owned())
    } else if file.is_decoder {
        Some("the model is a decoder".to_owned())
    } else {
        let kind = file.position_embedding_type.as_deref().unwrap_or("absolute");
        (kind != "absolute").then(|| format!("positions of the type \"{kind}\" are not known"))
    };
    if let Some(reason) = refused {
        return Err(ModelError::unsupported(path, reason));
    }
    let activation = match file.hidden_act.as_deref().unwrap_or("gelu") {
        "gelu" | "gelu_python" => ActivationFunction::Gelu,
        "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => ActivationFunction::GeluTanh,
        "relu" => ActivationFunction::Relu,
        other => {
            return Err(ModelError::unsupported(path, format!("the activation \"{other}\" is not known")));
        }
    };
    let need = |value: Option<usize>, key: &str| match value {
        // More than any such model has, and few enough that no product of two overflows.
        Some(value @ 1..=100_000_000) => Ok(value),
        Some(value) => Err(ModelError::damaged(path, format!("{key} cannot be {value}"))),
        None => Err(ModelError::damaged(path, format!("it lacks {key}"))),
    };
    let shape = ModelShape {
        family,
        hidden: need(file.hidden_size, "hidden_size")?,
        layers: need(file.num_hidden_layers, "num_hidden_layers")?,
        heads: need(file.num_attention_heads, "num_attention_heads")?,
        inner: need(file.intermediate_size, "intermediate_size")?,
        vocabulary: need(file.vocab_size, "vocab_size")?,
        positions: need(file.max_position_embeddings, "max_position_embeddings")?,
        // The padding token's position, which is its number, and all before it are never a token's.
        first_position: if offset { file.pad_token_id.unwrap_or(1).saturating_add(1) } else { 0 },
        epsilon: file.layer_norm_eps.unwrap_or(1e-12),
        activation,
    };
    if !shape.hidden.is_multiple_of(shape.heads) {
        return Err(ModelError::damaged(path, "num_attention_heads does not divide hidden_size"));
    }
    if shape.max_tokens() == 0 {
        return Err(ModelError::damaged(path, "max_position_embeddings leaves no position for a token"));
    }
    if !(shape.epsilon.is_finite() && shape.epsilon >= 0.0) {
        return Err(ModelError::damaged(path, "layer_norm_eps is no small number"));
    }
    Ok(shape)
}

/// How an encoder's states become a vector. Without a list of modules it is the mean, as everywhere else.
pub(super) fn pooling(dir: &Path) -> Result<PoolingMode, ModelError> {
    let path = dir.join("modules.json");
    let Some(modules) = read_json::<Vec<ModuleEntry>>(&path)? else {
        return pooling_mode(&dir.join("1_Pooling").join("config.json"));
    };
    let mut mode = PoolingMode::Mean;
    for module in &modules {
        // The name of a class, with the packages that it is in.
        match module.kind.rsplit('.').next().unwrap_or_default() {
            "Transformer" if module.path.is_empty() => {}
            "Transformer" => {
                let reason = format!("the transformer is in the folder {} of its own", module.path);
                return Err(ModelError::unsupported(&path, reason));
            }
            "Pooling" => mode = pooling_mode(&dir.join(inside(&path, &module.path)?).join("config.json"))?,
            // Vectors are brought to unit length in any case.
            "Normalize" => {}
            other => {
                let reason = format!("the module \"{other}\" after the transformer is not known");
                return Err(ModelError::unsupported(&path, reason));
            }
        }
    }
    Ok(mode)
}

/// A folder of the model, by its plain name.
fn inside<'a>(path: &Path, folder: &'a str) -> Result<&'a str, ModelError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if folder.chars().all(plain) {
        Ok(folder)
    } else {
        Err(ModelError::damaged(path, format!("{folder:?} is no folder of the model")))
    }
}

fn pooling_mode(path: &Path) -> Result<PoolingMode, ModelError> {
    let Some(file) = read_json::<PoolingFile>(path)? else { return Ok(PoolingMode::Mean) };
    if file.include_prompt == Some(false) {
        return Err(ModelError::unsupported(path, "prefixes that are left out of the mean are not known"));
    }
    let switches = [
        ("cls", file.pooling_mode_cls_token),
        ("mean", file.pooling_mode_mean_tokens),
        ("mean_sqrt_len_tokens", file.pooling_mode_mean_sqrt_len_tokens),
        ("max", file.pooling_mode_max_tokens),
        ("weightedmean", file.pooling_mode_weightedmean_tokens),
        ("lasttoken", file.pooling_mode_lasttoken),
    ];
    let named = match &file.pooling_mode {
        Some(serde_json::Value::String(name)) => vec![name.as_str()],
        Some(serde_json::Value::Array(names)) => {
            names.iter().map(|name| name.as_str().unwrap_or("?")).collect()
        }
        _ => switches.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect(),
    };
    match named.as_slice() {
        // The last differs from the mean in its length only.
        [] | ["mean" | "mean_sqrt_len_tokens"] => Ok(PoolingMode::Mean),
        ["cls"] => Ok(PoolingMode::FirstToken),
        other => {
            Err(ModelError::unsupported(path, format!("pooling by {} is not known", other.join(" and "))))
        }
    }
}

/// A file of settings. None when it is not there.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ModelError> {
    let Some(bytes) = read_file(path, MOST_BYTES)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| ModelError::damaged(path, error))
}

/// A file of at most so many bytes. None when it is not there.
pub(super) fn read_file(path: &Path, most: u64) -> Result<Option<Vec<u8>>, ModelError> {
    let read = |error| ModelError::Read { path: path.to_owned(), error };
    let file = match File::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        opened => opened.map_err(read)?,
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(read)?;
    if bytes.len() as u64 > most {
        return Err(ModelError::damaged(path, format!("it has more than {most} bytes")));
    }
    Ok(Some(bytes))
}

//! The weights of a model, as they are published: a `safetensors` file.

use std::io::{self, Read, Seek, SeekFrom};

use safetensors::{Dtype, tensor::Metadata};

use crate::{
    ModelFamily, ModelShape,
    kernel::LayerNorm,
    linear::{LinearLayer, LinearLayout, WordTable},
};

/// The longest list of tensors that is read, in bytes. Real ones have some hundred kilobytes.
const MOST_HEADER: u64 = 16 << 20;
/// How much of a tensor is read at once, in bytes, unless a row is longer.
const PART: usize = 256 << 10;

/// Why a file of weights cannot be used. Names tensors and shapes, never numbers of the file.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// It could not be read.
    #[error("it could not be read: {0}")]
    Read(#[from] io::Error),
    /// It is no such file, or one that was cut off.
    #[error("it is damaged or was not downloaded completely ({0})")]
    Damaged(String),
    /// A tensor that such a model must have is not there.
    #[error("it lacks the tensor {0}: this is not the kind of model that its config.json says")]
    Missing(String),
    /// A tensor has another shape than the configuration says.
    #[error("its tensor {name} has the shape {found:?} where config.json asks for {wanted:?}")]
    Tensor {
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// What it should be.
        wanted: Vec<usize>,
    },
    /// A tensor holds something other than f32, f16 or bf16.
    #[error("its tensor {0} holds {1} numbers; weights in f32, f16 or bf16 are needed, not quantised ones")]
    Numbers(String, String),
    /// A tensor holds infinities or what is no number.
    #[error("its tensor {0} holds numbers that are not finite")]
    NotFinite(String),
    /// The configuration makes no sense.
    #[error("config.json describes no model: {0:?}")]
    Shape(ModelShape),
    /// The processor lacks the instructions asked for.
    #[error("this processor lacks the instructions asked for")]
    Instructions,
}

/// The tensors of an open file.
pub(crate) struct TensorFile<'a, F> {
    file: &'a mut F,
    list: Metadata,
    /// Where the numbers begin, and how many bytes of them there are.
    start: u64,
    length: u64,
    family: ModelFamily,
    /// What is before the names that the published layers have.
    prefix: &'static str,
}

/// The tensors of a layer, without `.weight` and `.bias`.
pub(crate) struct LayerNames {
    pub(crate) projections: [String; 3],
    pub(crate) attended: String,
    pub(crate) attended_norm: String,
    pub(crate) inner: String,
    pub(crate) outer: String,
    pub(crate) outer_norm: String,
}

impl<'a, F: Read + Seek> TensorFile<'a, F> {
    /// Reads the list of tensors.
    pub(crate) fn open(file: &'a mut F, family: ModelFamily) -> Result<Self, WeightsError> {
        let size = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        let mut header = [0; 8];
        file.read_exact(&mut header).map_err(|_| WeightsError::Damaged("it is empty".to_owned()))?;
        let header = u64::from_le_bytes(header);
        let length = size.checked_sub(8).and_then(|rest| rest.checked_sub(header));
        let (Some(length), true) = (length, header <= MOST_HEADER) else {
            return Err(WeightsError::Damaged("it is no safetensors file".to_owned()));
        };
        let mut json = Vec::new();
        (&mut *file).take(header).read_to_end(&mut json)?;
        let list: Metadata =
            serde_json::from_slice(&json).map_err(|error| WeightsError::Damaged(error.to_string()))?;
        let prefixes = ["", "bert.", "roberta.", "distilbert.", "model."];
        let prefix = prefixes
            .into_iter()
            .find(|prefix| list.info(&format!("{prefix}embeddings.word_embeddings.weight")).is_some())
            .unwrap_or_default();
        Ok(Self { file, list, start: 8 + header, length, family, prefix })
    }

    pub(crate) fn positions(&self) -> String {
        self.prefixed("embeddings.position_embeddings.weight")
    }

    /// The segments of a sequence (BERT's "token types"), in families that tell them apart.
    pub(crate) fn segments(&self) -> Option<String> {
        match self.family {
            ModelFamily::Bert => Some(self.prefixed("embeddings.token_type_embeddings.weight")),
            ModelFamily::DistilBert => None,
        }
    }

    pub(crate) fn first_norm(&self) -> String {
        self.prefixed("embeddings.LayerNorm")
    }

    pub(crate) fn layer(&self, number: usize) -> LayerNames {
        let prefix = self.prefix;
        match self.family {
            ModelFamily::Bert => {
                let name = |part: &str| format!("{prefix}encoder.layer.{number}.{part}");
                LayerNames {
                    projections: ["query", "key", "value"]
                        .map(|part| name(&format!("attention.self.{part}"))),
                    attended: name("attention.output.dense"),
                    attended_norm: name("attention.output.LayerNorm"),
                    inner: name("intermediate.dense"),
                    outer: name("output.dense"),
                    outer_norm: name("output.LayerNorm"),
                }
            }
            ModelFamily::DistilBert => {
                let name = |part: &str| format!("{prefix}transformer.layer.{number}.{part}");
                LayerNames {
                    projections: ["q_lin", "k_lin", "v_lin"].map(|part| name(&format!("attention.{part}"))),
                    attended: name("attention.out_lin"),
                    attended_norm: name("sa_layer_norm"),
                    inner: name("ffn.lin1"),
                    outer: name("ffn.lin2"),
                    outer_norm: name("output_layer_norm"),
                }
            }
        }
    }

    /// The words of a vocabulary, each with a row of `hidden` numbers.
    pub(crate) fn word_table(
        &mut self,
        layout: LinearLayout,
        vocabulary: usize,
        hidden: usize,
    ) -> Result<WordTable, WeightsError> {
        let place = self.place(&self.prefixed("embeddings.word_embeddings.weight"), &[vocabulary, hidden])?;
        let mut table = WordTable::with_capacity(layout, vocabulary, hidden);
        self.read_rows(&place, |_, rows| table.extend(rows))?;
        Ok(table)
    }

    /// A matrix, row by row.
    pub(crate) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Vec<f32>, WeightsError> {
        self.tensor(name, &[rows, columns])
    }

    /// A matrix of any number of rows, but at least one.
    pub(crate) fn rows(&mut self, name: &str, columns: usize) -> Result<Vec<f32>, WeightsError> {
        let rows = self.list.info(name).and_then(|info| info.shape.first().copied());
        self.tensor(name, &[rows.unwrap_or(1).max(1), columns])
    }

    /// Matrices with their biases, the outputs of one after those of the other.
    pub(crate) fn linear<const M: usize>(
        &mut self,
        layout: LinearLayout,
        names: &[String],
        inputs: usize,
        outputs: usize,
    ) -> Result<LinearLayer<M>, WeightsError> {
        let mut linear = None;
        for (number, name) in names.iter().enumerate() {
            let bias = self.tensor(&format!("{name}.bias"), &[outputs])?;
            let weights = self.place(&format!("{name}.weight"), &[outputs, inputs])?;
            // Made only now: the file has been seen to hold as much.
            let linear =
                linear.get_or_insert_with(|| LinearLayer::zeroed(layout, inputs, names.len() * outputs));
            self.read_rows(&weights, |first, rows| {
                linear.set(number * outputs + first, rows, bias.get(first..).unwrap_or_default());
            })?;
        }
        Ok(linear.unwrap_or_else(|| LinearLayer::zeroed(layout, inputs, 0)))
    }

    /// A normalisation. Older files call its scale `gamma` and its shift `beta`.
    pub(crate) fn norm(&mut self, name: &str, width: usize, epsilon: f32) -> Result<LayerNorm, WeightsError> {
        let old = self.list.info(&format!("{name}.gamma")).is_some();
        let [scale, shift] = if old { ["gamma", "beta"] } else { ["weight", "bias"] };
        Ok(LayerNorm {
            scale: self.tensor(&format!("{name}.{scale}"), &[width])?,
            shift: self.tensor(&format!("{name}.{shift}"), &[width])?,
            epsilon,
        })
    }

    /// Whether the file has a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.list.info(name).is_some()
    }

    /// The name that a tensor outside of the layers has, after the prefix of the file.
    pub(crate) fn prefixed(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A matrix `[outputs, inputs]`, row by row, and its bias.
    pub(crate) fn dense(
        &mut self,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<(Vec<f32>, Vec<f32>), WeightsError> {
        let weights = self.tensor(&format!("{name}.weight"), &[outputs, inputs])?;
        Ok((weights, self.tensor(&format!("{name}.bias"), &[outputs])?))
    }

    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, WeightsError> {
        let place = self.place(name, shape)?;
        let mut numbers = Vec::with_capacity(place.size / place.bytes_each());
        self.read_rows(&place, |_, rows| numbers.extend_from_slice(rows))?;
        Ok(numbers)
    }

    /// Where a tensor of this shape is, all of which the file holds.
    fn place(&self, name: &str, shape: &[usize]) -> Result<TensorPlace, WeightsError> {
        let info = self.list.info(name).ok_or_else(|| WeightsError::Missing(name.to_owned()))?;
        if info.shape != shape {
            let (name, found) = (name.to_owned(), info.shape.clone());
            return Err(WeightsError::Tensor { name, found, wanted: shape.to_vec() });
        }
        let dtype = info.dtype;
        if !matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16) {
            return Err(WeightsError::Numbers(name.to_owned(), format!("{dtype:?}")));
        }
        let (from, to) = info.data_offsets;
        let width = shape.last().copied().unwrap_or(1);
        let mut place = TensorPlace { name: name.to_owned(), dtype, from, size: 0, width };
        let size = shape.iter().try_fold(place.bytes_each(), |size: usize, side| size.checked_mul(*side));
        // Nothing is reserved for numbers that the file does not hold.
        place.size = match size {
            Some(size) if to.checked_sub(from) == Some(size) && to as u64 <= self.length => size,
            _ => return Err(WeightsError::Damaged(format!("the tensor {name} is not all there"))),
        };
        Ok(place)
    }

    /// Reads a tensor, some rows at a time so that it is never in memory a second time. `take` gets the number of the first of them, and
    /// the rows.
    fn read_rows(
        &mut self,
        place: &TensorPlace,
        mut take: impl FnMut(usize, &[f32]),
    ) -> Result<(), WeightsError> {
        let row = (place.width * place.bytes_each()).max(1);
        let mut bytes = vec![0; (PART / row).max(1).saturating_mul(row).min(place.size)];
        let mut numbers: Vec<f32> = Vec::with_capacity(bytes.len() / place.bytes_each());
        self.file.seek(SeekFrom::Start(self.start + place.from as u64))?;
        let mut read = 0;
        while read < place.size {
            let length = bytes.len().min(place.size - read);
            let bytes = &mut bytes[..length];
            self.file.read_exact(bytes)?;
            numbers.clear();
            match place.dtype {
                Dtype::F16 => {
                    numbers.extend(pairs(bytes).map(|pair| half::f16::from_le_bytes(pair).to_f32()));
                }
                Dtype::BF16 => {
                    numbers.extend(pairs(bytes).map(|pair| half::bf16::from_le_bytes(pair).to_f32()));
                }
                _ => numbers.extend(bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four))),
            }
            // All of them are looked at, because that is faster than stopping at the first.
            if !numbers.iter().fold(true, |finite, number| finite & number.is_finite()) {
                return Err(WeightsError::NotFinite(place.name.clone()));
            }
            take(read / row, &numbers);
            read += length;
        }
        Ok(())
    }
}

/// Where a tensor is in a file that holds all of it.
struct TensorPlace {
    name: String,
    dtype: Dtype,
    /// From where the numbers begin, and how far, in bytes.
    from: usize,
    size: usize,
    /// Numbers in a row.
    width: usize,
}

impl TensorPlace {
    fn bytes_each(&self) -> usize {
        if self.dtype == Dtype::F32 { 4 } else { 2 }
    }
}

fn pairs(bytes: &[u8]) -> impl Iterator<Item = [u8; 2]> {
    bytes.as_chunks().0.iter().copied()
}

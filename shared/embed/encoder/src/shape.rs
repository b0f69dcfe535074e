//! What a model is made of, as its configuration says.

/// How the tensors of a file are named and where positions begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFamily {
    /// BERT, `RoBERTa`, XLM-`RoBERTa` and others that name their tensors alike.
    Bert,
    /// `DistilBERT`: the same arithmetic under other names, without kinds of tokens.
    DistilBert,
}

/// What is done to the inner numbers of a feed-forward part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivationFunction {
    /// The Gaussian error linear unit.
    Gelu,
    /// The same by its approximation with a hyperbolic tangent.
    GeluTanh,
    /// Cut off below zero.
    Relu,
}

/// How the states of all tokens become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolingMode {
    /// Their mean.
    Mean,
    /// The first token's.
    FirstToken,
}

/// The shape of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelShape {
    /// How its tensors are named.
    pub family: ModelFamily,
    /// Numbers in the state of a token, and in a vector.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Attention heads; they divide `hidden`.
    pub heads: usize,
    /// Inner numbers of a feed-forward part.
    pub inner: usize,
    /// Tokens that it knows.
    pub vocabulary: usize,
    /// Rows of its table of positions.
    pub positions: usize,
    /// The row of the first token's position.
    pub first_position: usize,
    /// What keeps normalisations from dividing by zero.
    pub epsilon: f32,
    /// Of its feed-forward parts.
    pub activation: ActivationFunction,
}

impl ModelShape {
    /// The most tokens that it has positions for.
    pub const fn max_tokens(&self) -> usize {
        self.positions.saturating_sub(self.first_position)
    }
}

//! Prompts.

use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::PromptId,
    model::{Json, workspace::RowOwner},
};

/// What an agent's model is told, with places in it for values.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Prompt {
    /// Its id.
    pub id: PromptId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// How its owner calls it.
    pub name: String,
    /// The text of a template: `{name}` stands for a variable.
    pub template: String,
    /// The names of the template's variables, in the order in which its owner gave them.
    pub input_variables: Json<Vec<String>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its owner last changed it.
    pub updated_at: Timestamp,
}

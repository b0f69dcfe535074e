//! The fields of the interface's answers: those that it names, and those that are added to them.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::shapes::is_timestamp;

/// What a value has to be.
pub enum Kind {
    Id,
    Text,
    Boolean,
    Number,
    Timestamp,
    Null,
    /// `{}`.
    Empty,
    /// An object whose contents are nobody's promise.
    Object,
    /// One of these words.
    Word(&'static [&'static str]),
    /// `#RRGGBB`.
    Color,
    ListOf(&'static Kind),
    OrNull(&'static Kind),
    Thing(&'static Shape),
}

pub type Fields = &'static [(&'static str, Kind)];

/// The fields of an object: those that the interface names, and those that are added to them. It has no others.
pub struct Shape {
    pub documented: Fields,
    pub added: Fields,
}

pub const USER: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("email", Kind::Text),
        ("name", Kind::Text),
        ("createdAt", Kind::Timestamp),
        ("updatedAt", Kind::Timestamp),
        ("deletedAt", Kind::Null),
        ("profile", Kind::Null),
        ("Agent", Kind::Null),
        ("ApiToken", Kind::Null),
        ("Document", Kind::Null),
    ],
    added: &[("isAdmin", Kind::Boolean)],
};
pub const SESSION: Shape =
    Shape { documented: &[("token", Kind::Text), ("user", Kind::Thing(&USER))], added: &[] };
pub const API_TOKEN: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("userId", Kind::Id),
        ("user", Kind::Thing(&USER)),
        ("description", Kind::Text),
        ("token", Kind::Text),
    ],
    added: &[
        ("workspaceId", Kind::Id),
        ("role", Kind::Word(&["asker", "editor", "builder", "owner"])),
        ("agentId", Kind::OrNull(&Kind::Id)),
        ("origins", Kind::OrNull(&Kind::ListOf(&Kind::Text))),
        ("expiresAt", Kind::OrNull(&Kind::Timestamp)),
        ("ratePerMinute", Kind::OrNull(&Kind::Number)),
        ("createdAt", Kind::Timestamp),
        ("updatedAt", Kind::Timestamp),
        ("lastUsedAt", Kind::OrNull(&Kind::Timestamp)),
    ],
};
pub const DOCUMENT: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("userId", Kind::Id),
        ("user", Kind::Empty),
        ("type", Kind::Word(&["TXT", "PDF", "VIDEO", "CSV", "URL"])),
        ("url", Kind::Text),
        ("createdAt", Kind::Timestamp),
        ("updatedAt", Kind::Timestamp),
        ("index", Kind::Null),
        ("Agent", Kind::Null),
    ],
    added: &[
        ("collectionIds", Kind::ListOf(&Kind::Id)),
        ("name", Kind::Text),
        ("description", Kind::Text),
        ("hasAuthorization", Kind::Boolean),
        ("metadata", Kind::OrNull(&Kind::Object)),
        ("splitter", Kind::OrNull(&Kind::Object)),
        ("from_page", Kind::OrNull(&Kind::Number)),
        ("to_page", Kind::OrNull(&Kind::Number)),
        ("ingestion", Kind::Object),
    ],
};
pub const LLM: Shape = Shape { documented: &[("model", Kind::Text), ("provider", Kind::Text)], added: &[] };
pub const AGENT_TYPES: Kind = Kind::Word(&["CHATVENDOR", "REACT"]);
pub const AGENT_ADDED: Fields = &[
    ("description", Kind::Text),
    ("rerank", Kind::Boolean),
    ("promptId", Kind::OrNull(&Kind::Id)),
    ("createdAt", Kind::Timestamp),
    ("updatedAt", Kind::Timestamp),
];
pub const NEW_AGENT: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("userId", Kind::Id),
        ("user", Kind::Empty),
        ("name", Kind::Text),
        ("type", AGENT_TYPES),
        ("tags", Kind::ListOf(&Kind::Thing(&TAG))),
        ("llm", Kind::Thing(&LLM)),
        ("hasMemory", Kind::Boolean),
        ("AgentMemory", Kind::Null),
    ],
    added: AGENT_ADDED,
};
pub const AGENT: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("userId", Kind::Id),
        ("user", Kind::Empty),
        ("name", Kind::Text),
        ("type", AGENT_TYPES),
        ("tags", Kind::ListOf(&Kind::Thing(&TAG))),
        ("llm", Kind::Thing(&LLM)),
        ("hasMemory", Kind::Boolean),
        ("AgentMemory", Kind::Null),
        ("document", Kind::Empty),
        ("documentId", Kind::Id),
    ],
    added: AGENT_ADDED,
};
pub const TOOL: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("name", Kind::Text),
        (
            "type",
            Kind::Word(&[
                "SEARCH",
                "COMPUTE_ALPHA",
                "MODELHOST",
                "AUTOMATION_NLA",
                "AGENT",
                "OPENAPI",
                "MCP",
            ]),
        ),
    ],
    added: &[
        ("userId", Kind::Id),
        ("description", Kind::Text),
        ("metadata", Kind::Object),
        ("returnDirect", Kind::Boolean),
        ("createdAt", Kind::Timestamp),
        ("updatedAt", Kind::Timestamp),
    ],
};
pub const LINK_ADDED: Fields = &[("userId", Kind::Id), ("createdAt", Kind::Timestamp)];
pub const NEW_AGENT_DOCUMENT: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("agentId", Kind::Id),
        ("agent", Kind::Empty),
        ("documentId", Kind::Id),
        ("document", Kind::Empty),
        ("user", Kind::Empty),
    ],
    added: LINK_ADDED,
};
pub const AGENT_DOCUMENT: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("agentId", Kind::Id),
        ("agent", Kind::Empty),
        ("documentId", Kind::Id),
        ("document", Kind::Empty),
    ],
    added: LINK_ADDED,
};
pub const AGENT_TOOL: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("agentId", Kind::Id),
        ("agent", Kind::Empty),
        ("toolId", Kind::Id),
        ("tool", Kind::Empty),
    ],
    added: LINK_ADDED,
};
pub const TAG: Shape = Shape {
    documented: &[("id", Kind::Id), ("name", Kind::Text), ("color", Kind::Color), ("userId", Kind::Id)],
    added: &[("createdAt", Kind::Timestamp), ("updatedAt", Kind::Timestamp)],
};
pub const PROMPT: Shape = Shape {
    documented: &[
        ("id", Kind::Id),
        ("name", Kind::Text),
        ("template", Kind::Text),
        ("input_variables", Kind::ListOf(&Kind::Text)),
    ],
    added: &[("userId", Kind::Id), ("createdAt", Kind::Timestamp), ("updatedAt", Kind::Timestamp)],
};

impl Shape {
    pub fn check(&self, about: &str, value: &Value) {
        let object = value.as_object().unwrap_or_else(|| panic!("{about} is no object: {value}"));
        for (name, kind) in self.documented.iter().chain(self.added) {
            let value = object.get(*name).unwrap_or_else(|| panic!("{about} has no {name}: {value:#}"));
            kind.check(&format!("{about}.{name}"), value);
        }
        for name in object.keys() {
            let known = self.documented.iter().chain(self.added).any(|(known, _)| known == name);
            assert!(known, "{about} has {name}, which nobody knows of: {value:#}");
        }
    }
}

impl Kind {
    pub fn check(&self, about: &str, value: &Value) {
        let text = value.as_str();
        let ok = match self {
            Self::Id => text.is_some_and(|text| {
                let id = Uuid::try_parse(text).ok().filter(|id| id.get_version_num() == 7);
                id.is_some_and(|id| id.hyphenated().to_string() == text)
            }),
            Self::Text => value.is_string(),
            Self::Boolean => value.is_boolean(),
            Self::Number => value.is_u64(),
            Self::Timestamp => is_timestamp(value),
            Self::Null => value.is_null(),
            Self::Empty => value.as_object().is_some_and(Map::is_empty),
            Self::Object => value.is_object(),
            Self::Word(words) => text.is_some_and(|text| words.contains(&text)),
            Self::Color => text.and_then(|text| text.strip_prefix('#')).is_some_and(|digits| {
                digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            }),
            Self::ListOf(kind) => {
                let items = value.as_array().unwrap_or_else(|| panic!("{about} is no array: {value}"));
                items.iter().enumerate().for_each(|(at, item)| kind.check(&format!("{about}[{at}]"), item));
                true
            }
            Self::OrNull(kind) => {
                if !value.is_null() {
                    kind.check(about, value);
                }
                true
            }
            Self::Thing(shape) => {
                shape.check(about, value);
                true
            }
        };
        assert!(ok, "{about} is {value}");
    }
}

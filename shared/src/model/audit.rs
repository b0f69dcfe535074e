//! What the audit log tells.

use std::{collections::BTreeMap, fmt::Display};

use serde::{Deserialize, Serialize};

use super::text_enum;

text_enum! {
    /// Something that is noted for those who own a workspace.
    AuditAction {
        /// An account was made.
        AccountCreated => "account_created",
        /// Somebody signed in.
        SignedIn => "signed_in",
        /// Every sign-in of an account was ended.
        SignedOut => "signed_out",
        /// A password was changed.
        PasswordChanged => "password_changed",
        /// An account got another e-mail.
        EmailChanged => "email_changed",
        /// An account was linked to somebody at the provider of OpenID Connect, who can sign in to it from then on.
        IdentityLinked => "identity_linked",
        /// A workspace was made.
        WorkspaceCreated => "workspace_created",
        /// A workspace was changed.
        WorkspaceChanged => "workspace_changed",
        /// A workspace was deleted.
        WorkspaceDeleted => "workspace_deleted",
        /// Somebody was invited.
        MemberInvited => "member_invited",
        /// An invitation was withdrawn.
        InvitationWithdrawn => "invitation_withdrawn",
        /// Somebody became a member.
        MemberJoined => "member_joined",
        /// A member got another role.
        RoleChanged => "role_changed",
        /// A member was removed, or left.
        MemberRemoved => "member_removed",
        /// An API token was made.
        TokenCreated => "token_created",
        /// An API token was deleted.
        TokenDeleted => "token_deleted",
        /// The secret of an agent, a tool, a document, a source or a webhook was set or taken away.
        SecretChanged => "secret_changed",
        /// A webhook was made, which tells an address of what happens.
        WebhookCreated => "webhook_created",
        /// A webhook was switched on.
        WebhookEnabled => "webhook_enabled",
        /// A webhook was switched off, by somebody or because whoever answered for it may set up none any more.
        WebhookDisabled => "webhook_disabled",
        /// An agent was made, which sends questions and passages to its model.
        AgentCreated => "agent_created",
        /// A tool was made, which sends what agents say to an address.
        ToolCreated => "tool_created",
        /// A source was made, whose documents agents answer from.
        SourceCreated => "source_created",
        /// A webhook, an agent, a tool or a source was pointed to another address.
        AddressChanged => "address_changed",
        /// An agent got a page of its own, or another one.
        Published => "published",
        /// An agent's page was taken away.
        Unpublished => "unpublished",
        /// Something was deleted.
        Deleted => "deleted",
        /// Something was exported.
        Exported => "exported",
    }
}

/// Characters of what a line says of one thing, at most.
const LONGEST: usize = 500;

/// What a line of the audit log says further, by names: words such as roles, and addresses without what may be a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditDetails(BTreeMap<String, String>);

impl AuditDetails {
    /// What something was before, and what it is now, as far as it was and is something.
    pub fn change<T: Display>(from: Option<T>, to: Option<T>) -> Self {
        Self::default().with("from", from).with("to", to)
    }

    /// Where something led before, and where it leads now, which is elsewhere. Where only what is not told differs, it says so: else a
    /// line would name the same place twice.
    pub fn moved(from: Option<String>, to: Option<String>) -> Self {
        let differs = (from == to).then_some("only what is not shown");
        Self::change(from, to).with("differs", differs)
    }

    /// The same, and what a setting was and is, if it is another one than before: `.from` and `.to` behind its name, `none` where it was
    /// or is not set.
    #[must_use]
    pub fn with_setting<T: Display + PartialEq>(self, name: &str, from: Option<T>, to: Option<T>) -> Self {
        if from == to {
            return self;
        }
        let told = |value: Option<T>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
        self.with(&format!("{name}.from"), Some(told(from))).with(&format!("{name}.to"), Some(told(to)))
    }

    /// The same, and this under a name, when there is something.
    #[must_use]
    pub fn with<T: Display>(mut self, name: &str, value: Option<T>) -> Self {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.to_string().chars().take(LONGEST).collect());
        }
        self
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is said, by names.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_there_is_to_say_and_no_more_than_can_be_read() {
        assert!(AuditDetails::change::<&str>(None, None).is_empty());
        let joined = AuditDetails::change(None, Some("editor"));
        assert_eq!(joined.pairs().collect::<Vec<_>>(), [("to", "editor")]);
        let long = "x".repeat(9_000);
        let changed = AuditDetails::change(Some(long.as_str()), Some("b"));
        let shown: Vec<usize> = changed.pairs().map(|(_, value)| value.len()).collect();
        assert_eq!(shown, [LONGEST, 1]);
        assert_eq!(serde_json::to_string(&joined).unwrap(), r#"{"to":"editor"}"#);
    }

    #[test]
    fn a_setting_that_stays_is_not_told_and_one_that_is_not_set_is_none() {
        let told = AuditDetails::default()
            .with_setting("bytes", Some(5), Some(5))
            .with_setting("documents", None, Some(10))
            .with_setting("name", Some(1), None);
        let expected =
            [("documents.from", "none"), ("documents.to", "10"), ("name.from", "1"), ("name.to", "none")];
        assert_eq!(told.pairs().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_place_of_which_only_what_is_hidden_differs_is_told_as_another_one() {
        let place = |host: &str| Some(format!("https://{host}"));
        let moved = AuditDetails::moved(place("a.example"), place("b.example"));
        assert_eq!(moved, AuditDetails::change(place("a.example"), place("b.example")));
        let within = AuditDetails::moved(place("a.example"), place("a.example"));
        assert!(within.pairs().any(|pair| pair == ("differs", "only what is not shown")));
    }
}

//! What the audit log tells.

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
        /// A webhook's events are told to another address.
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

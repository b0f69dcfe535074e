//! Why a video has no captions for us, and what its owner can do about it.

use lectern_shared::egress::EgressError;

use crate::failure::IngestFailure;

/// Why the captions of a video could not be had. The texts are for the document's owner; nothing that the site wrote is in them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum VideoError {
    /// What was given cannot be the id of a video.
    #[error("The address names no video: its id must have 11 letters, digits, - or _. Check the address.")]
    MalformedId,
    /// It can be played, and has no captions.
    #[error("The video has no captions. {}", INSTEAD)]
    TranscriptsDisabled,
    /// It does not exist, or not any more.
    #[error("The video does not exist, or has been removed. Check the address.")]
    Gone,
    /// Only its owner, and those whom they named, may see it.
    #[error("The video is private. Make it public or unlisted. {}", OR_INSTEAD)]
    Private,
    /// Only adults who are signed in may see it.
    #[error("The video is restricted by age, and can be watched only by who is signed in. {}", INSTEAD)]
    AgeRestricted,
    /// The site takes this service for a machine that asks too much.
    #[error(
        "The video site refuses requests from this service's address for now. It is tried again by itself; an operator can set LECTERN_VIDEO_PROXY. {}",
        OR_INSTEAD
    )]
    Blocked,
    /// The site asks for consent to cookies, and was not content with it.
    #[error(
        "The video site asks for consent to its cookies, and this service could not give it; an operator can set LECTERN_VIDEO_PROXY to a proxy in another country. {}",
        OR_INSTEAD
    )]
    ConsentRequired,
    /// The captions are given only to players that prove where they run.
    #[error("The video site gives this video's captions to its own players only. {}", INSTEAD)]
    PoTokenRequired,
    /// It exists, and is not played here.
    #[error("{} {}", .0.sentence(), INSTEAD)]
    Unplayable(UnplayableReason),
    /// The site fails.
    #[error("The video site cannot answer now (status {status}).")]
    Failing {
        /// The HTTP status.
        status: u16,
    },
    /// What came is none of the known shapes.
    #[error("The video site's answer could not be understood. {}", OR_INSTEAD)]
    NotUnderstood,
    /// No answer came.
    #[error("The video site could not be asked: {0}.")]
    Egress(EgressError),
}

const INSTEAD: &str =
    "Give the address of a caption file (.vtt or .srt), or add the transcript as a text, instead.";
const OR_INSTEAD: &str =
    "Or give the address of a caption file (.vtt or .srt), or add the transcript as a text, instead.";

/// Why a video that exists is not played here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnplayableReason {
    /// For members of a channel.
    MembersOnly,
    /// To be bought or rented.
    Paid,
    /// Not in this country.
    Region,
    /// Not broadcast yet.
    NotYet,
    /// For who is signed in.
    SignedIn,
    /// Not for the players that were tried.
    Player,
    /// For some other reason.
    Other,
}

impl UnplayableReason {
    fn sentence(self) -> &'static str {
        match self {
            Self::MembersOnly => "The video is for members of its channel only.",
            Self::Paid => "The video has to be bought or rented.",
            Self::Region => {
                "The video is not shown in the country where this service runs; an operator can set LECTERN_VIDEO_PROXY."
            }
            Self::NotYet => "The video has not been broadcast yet; ingest the document again when it has.",
            Self::SignedIn => "The video can be watched only by who is signed in.",
            Self::Player => {
                "The video site does not play this video in the players that this service knows; an operator can set LECTERN_VIDEO_CLIENT to a newer one."
            }
            Self::Other => "The video site does not play this video.",
        }
    }
}

impl VideoError {
    /// The code by which clients of the API know it.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::MalformedId => "not_found",
            Self::TranscriptsDisabled => "transcripts_disabled",
            Self::Gone | Self::Private => "unavailable",
            Self::AgeRestricted => "age_restricted",
            Self::Blocked => "blocked",
            Self::ConsentRequired => "consent_required",
            Self::PoTokenRequired => "po_token_required",
            Self::Unplayable(_) => "unplayable",
            Self::Failing { .. } => "unreachable",
            Self::NotUnderstood => "bad_response",
            Self::Egress(error) => error.code(),
        }
    }

    /// Whether the same may well succeed later.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Blocked | Self::Failing { .. } | Self::NotUnderstood => true,
            Self::Egress(error) => error.is_retryable(),
            _ => false,
        }
    }

    /// How much it tells about the video, whichever player was told so. When every player is refused, what tells most is
    /// reported: that one of them plays the video, and finds no captions, is more than that another is too old.
    pub(super) fn weight(&self) -> u8 {
        match self {
            Self::TranscriptsDisabled => 10,
            Self::AgeRestricted => 9,
            Self::PoTokenRequired => 8,
            Self::Private => 7,
            Self::Blocked => 6,
            Self::Gone => 5,
            Self::Unplayable(UnplayableReason::Player) => 1,
            Self::Unplayable(UnplayableReason::Other | UnplayableReason::SignedIn) => 3,
            Self::Unplayable(_) => 4,
            Self::Egress(_) | Self::Failing { .. } => 2,
            Self::NotUnderstood | Self::MalformedId | Self::ConsentRequired => 0,
        }
    }
}

/// A redirect away from the site: it sends those there whom it takes for machines.
impl From<EgressError> for VideoError {
    fn from(error: EgressError) -> Self {
        match error {
            EgressError::OtherSite { .. } => Self::Blocked,
            error => Self::Egress(error),
        }
    }
}

impl From<VideoError> for IngestFailure {
    fn from(error: VideoError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        if error.is_retryable() { Self::away(code, message, None) } else { Self::permanent(code, message) }
    }
}

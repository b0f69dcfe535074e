//! The parts of a message, as MIME nests them. Headers and encodings are read by `mail-parser`; where parts begin and end is found here,
//! so that their number and depth have a limit, and nothing is decoded that is not read.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
};

use lectern_shared::file_name;
use mail_parser::{Message, MessageParser, MimeHeaders, decoders::base64::base64_decode};

use crate::protocol::ParseError;

/// Most parts in a message, those included that hold others.
pub(super) const MAX_PARTS: usize = 10_000;
/// Most parts around a part.
pub(super) const MAX_DEPTH: usize = 30;
/// Most bytes of headers at the beginning of a message, which may be to thousands. Each costs many times of itself when it is read.
pub(super) const MAX_HEAD: usize = 256 << 10;
/// The same of a message that is attached, of which there may be many.
pub(super) const MAX_INNER_HEAD: usize = 64 << 10;
/// The same of a part within it: the time that the library takes grows faster than the parameters of a header do.
pub(super) const MAX_PART_HEAD: usize = 16 << 10;
/// Most encoded words in the headers that do not end. For each of them the library reads on to the end of its header, and begins again
/// behind it.
const MAX_UNENDED: usize = 8;
/// Most bytes of an encoded word. The standard has 75.
const MAX_WORD: usize = 1_000;
/// Where Chromium tells the address of the page that it saved.
pub(super) const SNAPSHOT: &str = "Snapshot-Content-Location";

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    /// Plain text that belongs to what is read.
    Plain,
    /// A page that belongs to what is read.
    Html,
    /// What only its receiver can open.
    Encrypted,
    /// A message beside the text, or among others.
    Message(MessageFormat),
    /// A file beside the text.
    Attached,
}

/// How an attached message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageFormat {
    /// As mail servers have it.
    Mime,
    /// As Outlook saves it.
    Outlook,
}

impl MessageFormat {
    /// Told by the type of what is attached (in lower case), or else by its name: programs attach saved messages as they do any file.
    pub(super) fn of(media_type: &str, name: Option<&str>) -> Option<Self> {
        match media_type {
            "message/rfc822" | "message/global" => return Some(Self::Mime),
            "application/vnd.ms-outlook" => return Some(Self::Outlook),
            _ => {}
        }
        match name.and_then(file_name::extension)?.as_str() {
            "eml" => Some(Self::Mime),
            "msg" => Some(Self::Outlook),
            _ => None,
        }
    }
}

/// How the bytes of a part are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TransferEncoding {
    #[default]
    Plain,
    QuotedPrintable,
    Base64,
}

/// A part that holds no others.
#[derive(Debug)]
pub(super) struct MailPart<'a> {
    pub(super) kind: PartKind,
    content: &'a [u8],
    headers: PartHeaders,
    /// The choice between alternatives in which it stands; the outermost one.
    pub(super) choice: Option<usize>,
}

impl MailPart<'_> {
    /// Its bytes, as they were before they were written so that mail servers take them.
    pub(super) fn decoded(&self) -> Cow<'_, [u8]> {
        let decoded = match self.headers.encoding {
            TransferEncoding::Plain => None,
            TransferEncoding::QuotedPrintable => Some(from_quoted_printable(self.content)),
            TransferEncoding::Base64 => base64_decode(in_base64(self.content)),
        };
        decoded.map_or(Cow::Borrowed(self.content), Cow::Owned)
    }

    /// The encoding that it names.
    pub(super) fn charset(&self) -> Option<&str> {
        self.headers.charset.as_deref()
    }

    /// Where it was.
    pub(super) fn location(&self) -> Option<&str> {
        self.headers.location.as_deref()
    }

    /// What it is called, or else of what type it is.
    pub(super) fn name(&self) -> &str {
        match &self.headers {
            PartHeaders { name: Some(name), .. } => name,
            // A message among others need not say that it is one.
            PartHeaders { media_type, .. } if media_type.is_empty() => "message/rfc822",
            PartHeaders { media_type, .. } => media_type,
        }
    }

    /// Whether there is nothing in it.
    pub(super) fn is_blank(&self) -> bool {
        self.content.trim_ascii().is_empty()
    }
}

/// What the headers of a part say of it.
#[derive(Debug, Default)]
struct PartHeaders {
    /// In lower case, without parameters; empty when it is not said.
    media_type: String,
    boundary: Option<String>,
    /// The part of a page that is the page itself.
    start: Option<String>,
    charset: Option<String>,
    encoding: TransferEncoding,
    name: Option<String>,
    is_attached: bool,
    id: Option<String>,
    location: Option<String>,
}

impl PartHeaders {
    fn of(message: &Message<'_>) -> Self {
        let content_type = message.content_type();
        let parameter = |name: &str| {
            let value = content_type?.attribute(name)?.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        let media_type = content_type.map(|content_type| {
            let subtype = content_type.subtype().unwrap_or_default();
            format!("{}/{subtype}", content_type.ctype()).to_ascii_lowercase()
        });
        let encoding = message.content_transfer_encoding().unwrap_or_default().trim();
        Self {
            media_type: media_type.unwrap_or_default(),
            boundary: parameter("boundary"),
            start: parameter("start"),
            charset: parameter("charset"),
            encoding: if encoding.eq_ignore_ascii_case("base64") {
                TransferEncoding::Base64
            } else if encoding.eq_ignore_ascii_case("quoted-printable") {
                TransferEncoding::QuotedPrintable
            } else {
                TransferEncoding::Plain
            },
            name: message.attachment_name().map(str::to_owned),
            is_attached: message
                .content_disposition()
                .is_some_and(|disposition| disposition.ctype().eq_ignore_ascii_case("attachment")),
            id: message.content_id().map(str::to_owned),
            location: message.content_location().map(|location| location.trim().to_owned()),
        }
    }

    fn holds_parts(&self) -> bool {
        self.media_type.starts_with("multipart/") && self.media_type != "multipart/encrypted"
    }

    /// Whether it is the part that a page's `start` names.
    fn is_called(&self, start: &str) -> bool {
        let bare = |id: &str| id.trim().trim_start_matches('<').trim_end_matches('>').to_owned();
        self.id.as_deref().is_some_and(|id| bare(id) == bare(start))
    }
}

/// What a part is to the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartRole {
    /// The message itself, or the page among what belongs to it.
    Main,
    /// One of several.
    Member,
    /// A picture, a style or the like that belongs to a page.
    Companion,
    /// A message among others, unless it says otherwise.
    Digested,
}

/// A part that is still to be looked at.
struct OpenPart<'a> {
    bytes: &'a [u8],
    depth: usize,
    role: PartRole,
    choice: Option<usize>,
}

/// A message: its own headers, and the parts that hold no others, in their order.
pub(super) struct MailParts<'a> {
    pub(super) message: Message<'a>,
    pub(super) parts: Vec<MailPart<'a>>,
}

impl<'a> MailParts<'a> {
    /// Finds them, if the message begins with no more bytes of headers than `max_head`. Messages within it are parts like others: they
    /// are not opened here.
    pub(super) fn of(bytes: &'a [u8], max_head: usize) -> Result<Self, ParseError> {
        let reader = HeaderReader::new();
        let message = reader.read(bytes, max_head).0.ok_or(ParseError::Damaged)?;
        let mut open = vec![OpenPart { bytes, depth: 0, role: PartRole::Main, choice: None }];
        let (mut parts, mut seen) = (Vec::new(), 0);
        while let Some(part) = open.pop() {
            seen += 1;
            if seen > MAX_PARTS || part.depth > MAX_DEPTH {
                return Err(ParseError::TooManyParts { limit: MAX_PARTS, depth: MAX_DEPTH });
            }
            let longest = if part.depth == 0 { max_head } else { MAX_PART_HEAD };
            let (mut headers, content) = reader.part(part.bytes, longest);
            let boundary = headers.boundary.take().filter(|_| headers.holds_parts());
            let inside = boundary.map(|boundary| split(content, &boundary)).unwrap_or_default();
            if inside.is_empty() {
                let kind = kind_of(&headers, part.role, part.choice.is_some());
                parts.extend(kind.map(|kind| MailPart { kind, content, headers, choice: part.choice }));
                continue;
            }
            let roles = reader.roles(&inside, &headers, part.role);
            let is_choice = headers.media_type == "multipart/alternative";
            let choice = part.choice.or(is_choice.then_some(seen));
            let depth = part.depth + 1;
            // The last one is looked at first.
            let inside = inside.into_iter().zip(roles).rev();
            open.extend(inside.map(|(bytes, role)| OpenPart { bytes, depth, role, choice }));
        }
        Ok(Self { message, parts })
    }
}

/// What a part that holds no others is; none when it only belongs to a page, vouches for the others, or says once more what they say.
fn kind_of(headers: &PartHeaders, role: PartRole, is_in_choice: bool) -> Option<PartKind> {
    let is_text = match role {
        PartRole::Main => true,
        PartRole::Member | PartRole::Digested => !headers.is_attached && headers.name.is_none(),
        PartRole::Companion if headers.is_attached => false,
        PartRole::Companion => return None,
    };
    Some(match headers.media_type.as_str() {
        "text/html" | "application/xhtml+xml" if is_text => PartKind::Html,
        "" | "text/" | "text/plain" if is_text && role != PartRole::Digested => PartKind::Plain,
        "multipart/encrypted" | "application/pkcs7-mime" | "application/x-pkcs7-mime" => PartKind::Encrypted,
        "application/pkcs7-signature" | "application/x-pkcs7-signature" | "application/pgp-signature" => {
            return None;
        }
        // Without its boundary what it holds cannot be told apart.
        media_type if is_text && media_type.starts_with("multipart/") => PartKind::Plain,
        _ if is_text && is_in_choice => return None,
        "" if role == PartRole::Digested => PartKind::Message(MessageFormat::Mime),
        media_type => MessageFormat::of(media_type, headers.name.as_deref())
            .map_or(PartKind::Attached, PartKind::Message),
    })
}

/// Reads headers.
struct HeaderReader(MessageParser);

impl HeaderReader {
    fn new() -> Self {
        Self(MessageParser::new().with_minimal_headers().header_text(SNAPSHOT).default_header_ignore())
    }

    /// The headers with which a message or a part begins, if it has any, and what follows them.
    fn read<'a>(&self, bytes: &'a [u8], longest: usize) -> (Option<Message<'a>>, &'a [u8]) {
        let mut end = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            end += line.len();
            if end > longest {
                return (None, &[]);
            }
            if line.trim_ascii_end().is_empty() {
                break;
            }
        }
        let (head, content) = bytes.split_at(end);
        if unended_words(head) > MAX_UNENDED {
            return (None, content);
        }
        // A part with headers over which the library stumbles is one without.
        let headers = catch_unwind(AssertUnwindSafe(|| self.0.parse_headers(head))).ok().flatten();
        (headers.filter(|headers| !headers.parts.is_empty()), content)
    }

    /// What the headers of a part say, and what follows them.
    fn part<'a>(&self, bytes: &'a [u8], longest: usize) -> (PartHeaders, &'a [u8]) {
        let (headers, content) = self.read(bytes, longest);
        (headers.as_ref().map(PartHeaders::of).unwrap_or_default(), content)
    }

    /// What the parts within a part are to it.
    fn roles(&self, inside: &[&[u8]], around: &PartHeaders, role: PartRole) -> Vec<PartRole> {
        let (main, others) = match around.media_type.as_str() {
            _ if role == PartRole::Companion => (PartRole::Companion, PartRole::Companion),
            "multipart/related" => (PartRole::Main, PartRole::Companion),
            "multipart/digest" => (PartRole::Digested, PartRole::Digested),
            _ => (PartRole::Member, PartRole::Member),
        };
        let mut roles = vec![others; inside.len()];
        let start = around.start.as_deref().filter(|_| main == PartRole::Main);
        let is_called = |bytes: &&[u8], start: &str| self.part(bytes, MAX_PART_HEAD).0.is_called(start);
        let first = start.and_then(|start| inside.iter().position(|bytes| is_called(bytes, start)));
        if let Some(first) = roles.get_mut(first.unwrap_or_default()) {
            *first = main;
        }
        roles
    }
}

/// How many encoded words of headers begin and do not end where one has to.
fn unended_words(head: &[u8]) -> usize {
    let (mut count, mut end) = (0, None);
    for (at, pair) in head.windows(2).enumerate().rev() {
        match pair {
            b"?=" => end = Some(at),
            b"=?" if end.is_none_or(|end: usize| end - at > MAX_WORD) => count += 1,
            _ => {}
        }
    }
    count
}

/// What stands between the lines with the boundary.
fn split<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let (mut parts, mut begun, mut at) = (Vec::new(), None, 0_usize);
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let end = at;
        at += line.len();
        let behind = line.strip_prefix(b"--").and_then(|line| line.strip_prefix(boundary.as_bytes()));
        let Some(behind) = behind.map(<[u8]>::trim_ascii_end) else { continue };
        let is_last = behind == b"--";
        if !behind.is_empty() && !is_last {
            continue;
        }
        parts.extend(begun.and_then(|begun: usize| body.get(begun..end)));
        begun = (!is_last).then_some(at);
        if is_last || parts.len() > MAX_PARTS {
            break;
        }
    }
    // One that broke off.
    parts.extend(begun.and_then(|begun| body.get(begun..)));
    parts
}

/// The part of a text that is in base64: programs on the way write their notes behind it.
fn in_base64(content: &[u8]) -> &[u8] {
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    let length: usize = lines.take_while(|line| is_base64(line)).map(<[u8]>::len).sum();
    content.get(..length).unwrap_or(content)
}

fn is_base64(line: &[u8]) -> bool {
    line.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/= \t\r\n".contains(byte))
}

/// The bytes that quoted-printable stands for. What is no code stands for itself, since programs write `=` as it is, too.
fn from_quoted_printable(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len());
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        let said = line.trim_ascii_end();
        let goes_on = said.ends_with(b"=");
        let mut said = said.strip_suffix(b"=").unwrap_or(said);
        while let [first, rest @ ..] = said {
            let code = if let [b'=', high, low, behind @ ..] = said {
                byte_of([*high, *low]).map(|byte| (byte, behind))
            } else {
                None
            };
            let (byte, behind) = code.unwrap_or((*first, rest));
            bytes.push(byte);
            said = behind;
        }
        if !goes_on && line.ends_with(b"\n") {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// The byte that two digits of base 16 are.
fn byte_of(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from((high? << 4) | low?).ok()
}

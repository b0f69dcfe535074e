//! E-mails as Outlook saves them (MSG): a compound file with a stream for each text, and one for all that is short.
//!
//! Attachments are named and not read, unless they are e-mails: those that Outlook attached are folders of such streams themselves, and
//! others are files.

use std::{
    collections::HashSet,
    io::{Cursor, Read, Seek},
    iter,
};

use cfb::CompoundFile;
use encoding_rs::UTF_16LE;
use lectern_shared::file_name;
use mail_parser::DateTime;

use super::{
    letter::{LetterText, in_lines, named, somebody},
    part::MessageFormat,
    titled,
};
use crate::{
    charset,
    formats::compound,
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, ParseOptions, SourceMetadata, TextMarkup},
};

/// The stream that every such file has, and no other compound file.
pub(in crate::formats) const PROPERTIES: &str = "__properties_version1.0";
/// How the folders of attachments begin.
const ATTACHMENT: &str = "__attach_version1.0_";
/// What an attached e-mail is in, as Outlook attaches one.
const MESSAGE: &str = "__substg1.0_3701000D/";
/// The bytes of an attached file.
const BYTES: &str = "__substg1.0_37010102";
/// Most bytes that are read of what stands above the text. Files may say of many streams that they have the same content.
const MAX_SHORT: u64 = 256 << 10;
/// What stands before the first short property: of the whole file, and of an e-mail in a folder of it.
const PROPERTIES_HEAD: usize = 32;
const INNER_HEAD: usize = 24;
/// How long a short property is, with its tag and its flags.
const PROPERTY_LEN: usize = 16;

/// Short properties, by number and type: when it was sent and when it came, and the encodings of texts and of the page.
const SENT: u32 = 0x0039_0040;
const RECEIVED: u32 = 0x0e06_0040;
const TEXT_CODEPAGE: u32 = 0x3ffd_0003;
const PAGE_CODEPAGE: u32 = 0x3fde_0003;

/// Short texts, by number. Of several the first that there is.
const KIND: [&str; 1] = ["001A"];
const SUBJECT: [&str; 1] = ["0037"];
const SENDER: [&str; 2] = ["0C1A", "0042"];
const ADDRESS: [&str; 4] = ["5D01", "5D02", "0C1F", "0065"];
const TO: [&str; 1] = ["0E04"];
const CC: [&str; 1] = ["0E03"];
const FILE: [&str; 3] = ["3707", "3704", "3001"];
const CONTENT_ID: [&str; 1] = ["3712"];
const MEDIA_TYPE: [&str; 1] = ["370E"];

/// The text, and the page, as texts.
const PLAIN: &str = "__substg1.0_1000";
const PAGE: &str = "__substg1.0_1013";
/// The page, and the text in RTF, as bytes.
const PAGE_BYTES: &str = "__substg1.0_10130102";
const RTF: &str = "__substg1.0_10090102";

/// 100 nanoseconds in a second, and the seconds from 1601 to 1970.
const TICKS: i64 = 10_000_000;
const UNIX_EPOCH: i64 = 11_644_473_600;

/// Reads such an e-mail, in a file of so many bytes.
pub(in crate::formats) fn parse<F: Read + Seek>(
    file: CompoundFile<F>,
    size: u64,
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    let mut file = OutlookFile { container: file, left: size };
    let mut letter = OutlookLetter::of(&mut file, String::new(), 0);
    let body = letter.body();
    if body.is_none() {
        letter.check_text()?;
    }
    let subject = letter.short("", &SUBJECT);
    let mut read = LetterText::default();
    letter.add_to(&mut read, subject.as_deref(), body)?;
    let title = subject.as_deref().and_then(titled);
    let structure = if read.has_markdown { TextMarkup::Markdown } else { TextMarkup::Plain };
    output.about(SourceMetadata { title, structure, ..SourceMetadata::default() })?;
    read.hand_on(options, output)
}

/// Adds such an e-mail in a file that is attached to an e-mail with so many others `around` it. Whether it could be read.
pub(super) fn add_attached(bytes: &[u8], read: &mut LetterText, around: usize) -> Result<bool, ParseAbort> {
    if compound::check(bytes).is_err() {
        return Ok(false);
    }
    let Ok(container) = CompoundFile::open(Cursor::new(bytes)) else { return Ok(false) };
    if !container.is_stream(PROPERTIES) {
        return Ok(false);
    }
    let mut file = OutlookFile { container, left: bytes.len() as u64 };
    OutlookLetter::of(&mut file, String::new(), around + 1).add_below(read)
}

/// What an e-mail says.
struct OutlookBody {
    bytes: Vec<u8>,
    charset: Option<&'static str>,
    is_page: bool,
}

impl OutlookBody {
    fn of_text(text: String, is_page: bool) -> Self {
        Self { bytes: text.into_bytes(), charset: Some("utf-8"), is_page }
    }
}

/// A file, and what may still be read of it.
struct OutlookFile<F> {
    container: CompoundFile<F>,
    /// How many bytes may be read. Each stream is read once, so that only what many share can come to more than the file has.
    left: u64,
}

impl<F: Read + Seek> OutlookFile<F> {
    /// What is in a stream, at most so many bytes of it, if there is one that can be read.
    fn stream(&mut self, path: &str, longest: u64) -> Option<Vec<u8>> {
        let stream = self.container.open_stream(path).ok()?;
        let left = self.left.checked_sub(stream.len().min(longest));
        self.left = left.unwrap_or_default();
        left?;
        let mut bytes = Vec::new();
        stream.take(longest).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// An e-mail in its file.
struct OutlookLetter<'f, F> {
    file: &'f mut OutlookFile<F>,
    /// The folder that it is in; empty for the whole file.
    folder: String,
    /// How many others are around it.
    around: usize,
    /// All short properties.
    properties: Vec<u8>,
    /// The encoding of texts that are not in UTF-16.
    charset: Option<&'static str>,
}

impl<'f, F: Read + Seek> OutlookLetter<'f, F> {
    fn of(file: &'f mut OutlookFile<F>, folder: String, around: usize) -> Self {
        let mut letter = Self { file, folder, around, properties: Vec::new(), charset: None };
        letter.properties = letter.stream(PROPERTIES, MAX_SHORT).unwrap_or_default();
        letter.charset = letter.charset_in(TEXT_CODEPAGE);
        letter
    }

    /// What is in a stream of its own, at most so many bytes of it, if there is one that can be read.
    fn stream(&mut self, path: &str, longest: u64) -> Option<Vec<u8>> {
        self.file.stream(&format!("{}{path}", self.folder), longest)
    }

    /// A text, if something is in it: in UTF-16, or else in the encoding of the others.
    fn text(&mut self, path: &str, longest: u64) -> Option<String> {
        let text = if let Some(wide) = self.stream(&format!("{path}001F"), longest) {
            UTF_16LE.decode_without_bom_handling(&wide).0.into_owned()
        } else {
            let bytes = self.stream(&format!("{path}001E"), longest)?;
            charset::decode(&bytes, self.charset).0.into_owned()
        };
        let text = text.trim_end_matches('\0');
        (!text.trim().is_empty()).then(|| text.to_owned())
    }

    /// A short text of the e-mail, or of what is in a folder of it.
    fn short(&mut self, folder: &str, properties: &[&str]) -> Option<String> {
        properties
            .iter()
            .find_map(|property| self.text(&format!("{folder}__substg1.0_{property}"), MAX_SHORT))
    }

    /// The value of a short property.
    fn property(&self, tag: u32) -> Option<[u8; 8]> {
        let head = if self.folder.is_empty() { PROPERTIES_HEAD } else { INNER_HEAD };
        let mut entries = self.properties.get(head..)?.chunks_exact(PROPERTY_LEN);
        entries.find(|entry| entry.starts_with(&tag.to_le_bytes()))?.get(8..)?.try_into().ok()
    }

    /// The encoding that a property names.
    fn charset_in(&self, tag: u32) -> Option<&'static str> {
        let [a, b, c, d, ..] = self.property(tag)?;
        charset_of(u32::from_le_bytes([a, b, c, d]))
    }

    /// When it was sent, or else when it came.
    fn date(&self) -> Option<String> {
        let ticks = self.property(SENT).or_else(|| self.property(RECEIVED)).map(i64::from_le_bytes)?;
        let date = DateTime::from_timestamp(ticks / TICKS - UNIX_EPOCH);
        (ticks > 0 && date.is_valid()).then(|| date.to_rfc3339())
    }

    /// What it says: as plain text where there is some, like other e-mails.
    fn body(&mut self) -> Option<OutlookBody> {
        match self.text(PLAIN, u64::MAX) {
            Some(text) => Some(OutlookBody::of_text(text, false)),
            None => self.page(),
        }
    }

    fn page(&mut self) -> Option<OutlookBody> {
        if let Some(bytes) = self.stream(PAGE_BYTES, u64::MAX) {
            return Some(OutlookBody { bytes, charset: self.charset_in(PAGE_CODEPAGE), is_page: true });
        }
        self.text(PAGE, u64::MAX).map(|text| OutlookBody::of_text(text, true))
    }

    /// Refuses an e-mail without a text, if it has one that cannot be read.
    fn check_text(&mut self) -> Result<(), ParseError> {
        let what = if self.file.container.is_stream(format!("{}{RTF}", self.folder)) {
            "an e-mail of Outlook whose text is in RTF alone. Save it as EML, text or PDF and add that"
        } else if self.short("", &KIND).is_some_and(|kind| kind.starts_with("IPM.Note.SMIME")) {
            "an e-mail that is encrypted. Open it, save its text and add that"
        } else {
            return Ok(());
        };
        Err(ParseError::Unsupported(what.to_owned()))
    }

    /// Adds what it says, the e-mails that are attached to it, and above all that who wrote what to whom.
    fn add_to(
        &mut self,
        read: &mut LetterText,
        subject: Option<&str>,
        body: Option<OutlookBody>,
    ) -> Result<(), ParseAbort> {
        let above = read.end();
        let shown = self.shown(body.as_ref());
        if let Some(OutlookBody { bytes, charset, is_page }) = body {
            read.add_body(&bytes, charset, is_page)?;
        }
        let mut unread = Vec::new();
        let (folders, others) = self.attachments(read);
        for folder in folders {
            let id = self.short(&folder, &CONTENT_ID);
            if id.is_some_and(|id| shown.contains(&id)) {
                continue;
            }
            let name = self.short(&folder, &FILE);
            if !self.add_attached(read, &folder, name.as_deref())? {
                let name = name.as_deref().and_then(file_name::in_one_line);
                unread.push(name.unwrap_or_else(|| "attachment".to_owned()));
            }
        }
        unread.extend(iter::repeat_n("attachment".to_owned(), others));
        read.put_head(above, self.head(subject, &unread), unread.len());
        Ok(())
    }

    /// The ids of the pictures that its page shows.
    fn shown(&mut self, body: Option<&OutlookBody>) -> HashSet<String> {
        let ids_in = |page: &OutlookBody| {
            let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '>' | ')' | '&');
            let text = String::from_utf8_lossy(&page.bytes);
            let ids = text.split("cid:").skip(1).filter_map(|rest| rest.split(ends).next());
            ids.map(str::to_owned).collect::<HashSet<String>>()
        };
        match body {
            Some(body) if body.is_page => ids_in(body),
            Some(_) => self.page().as_ref().map(ids_in).unwrap_or_default(),
            None => HashSet::new(),
        }
    }

    /// The folders of its attachments that may be looked at, and how many others there are.
    fn attachments(&self, read: &mut LetterText) -> (Vec<String>, usize) {
        let Ok(entries) = self.file.container.read_storage(&self.folder) else { return (Vec::new(), 0) };
        let folders = entries.filter(|entry| entry.is_storage() && entry.name().starts_with(ATTACHMENT));
        let mut folders = folders.map(|entry| format!("{}/", entry.name()));
        (read.look_at(&mut folders), folders.count())
    }

    /// Adds what is attached in a folder under this name, if that is an e-mail that can be read.
    fn add_attached(
        &mut self,
        read: &mut LetterText,
        folder: &str,
        name: Option<&str>,
    ) -> Result<bool, ParseAbort> {
        let inner = format!("{}{folder}{MESSAGE}", self.folder);
        if !self.file.container.is_stream(format!("{inner}{PROPERTIES}")) {
            return self.add_file(read, folder, name);
        }
        if !read.may_open(self.around) {
            return Ok(false);
        }
        OutlookLetter::of(self.file, inner, self.around + 1).add_below(read)
    }

    /// Adds an attached file, if that is an e-mail.
    fn add_file(
        &mut self,
        read: &mut LetterText,
        folder: &str,
        name: Option<&str>,
    ) -> Result<bool, ParseAbort> {
        let media_type = self.short(folder, &MEDIA_TYPE).unwrap_or_default().to_ascii_lowercase();
        let Some(format) = MessageFormat::of(&media_type, name) else { return Ok(false) };
        match self.stream(&format!("{folder}{BYTES}"), u64::MAX) {
            Some(bytes) => read.add_attached(&bytes, format, self.around),
            None => Ok(false),
        }
    }

    /// Adds it under its subject, as what is attached. Whether it could be read.
    fn add_below(mut self, read: &mut LetterText) -> Result<bool, ParseAbort> {
        let body = self.body();
        let is_sealed = body.is_none() && self.check_text().is_err();
        let subject = self.short("", &SUBJECT);
        if is_sealed || self.file.left == 0 {
            return Ok(false);
        }
        read.begin(subject.as_deref().and_then(titled).as_deref(), self.around - 1);
        self.add_to(read, None, body)?;
        Ok(true)
    }

    /// What stands above its text, line by line.
    fn head(&mut self, subject: Option<&str>, attached: &[String]) -> String {
        let sender = self.short("", &SENDER);
        // Within an organisation an address may be a path in its directory.
        let mut addresses = ADDRESS.iter().filter_map(|property| self.short("", &[*property]));
        let address = addresses.find(|address| address.contains('@'));
        let [to, cc] = [TO, CC].map(|people| self.short("", &people));
        let people = |list: Option<String>| named(list?.split(';').filter_map(file_name::in_one_line));
        let files = attached.iter().cloned();
        in_lines([
            ("Subject", subject.and_then(file_name::in_one_line)),
            ("From", somebody(sender.as_deref(), address.as_deref())),
            ("To", people(to)),
            ("Cc", people(cc)),
            ("Date", self.date()),
            ("Attachments", named(files)),
        ])
    }
}

/// The name of an encoding by its number on Windows.
const fn charset_of(codepage: u32) -> Option<&'static str> {
    Some(match codepage {
        874 => "windows-874",
        932 => "shift_jis",
        936 => "gbk",
        949 | 51_949 => "euc-kr",
        950 => "big5",
        1_250 => "windows-1250",
        1_251 => "windows-1251",
        1_252 | 20_127 | 28_591 => "windows-1252",
        1_253 => "windows-1253",
        1_254 => "windows-1254",
        1_255 => "windows-1255",
        1_256 => "windows-1256",
        1_257 => "windows-1257",
        1_258 => "windows-1258",
        20_866 => "koi8-r",
        21_866 => "koi8-u",
        28_592 => "iso-8859-2",
        28_595 => "iso-8859-5",
        28_605 => "iso-8859-15",
        50_220..=50_222 => "iso-2022-jp",
        51_932 => "euc-jp",
        54_936 => "gb18030",
        65_001 => "utf-8",
        _ => return None,
    })
}

//! What is read of a letter, and of those that are attached to it.

use std::collections::{BTreeMap, BTreeSet};

use lectern_shared::{file_name, model::job::IngestionWarning};
use mail_parser::{Addr, Address, DateTime, Message};

use super::{
    beginning, outlook,
    part::{MAX_INNER_HEAD, MailPart, MailParts, MessageFormat, PartKind},
    title,
};
use crate::{
    charset,
    formats::{html, text},
    output::ParserOutput,
    protocol::{ParseAbort, ParseFrame, ParseOptions},
};

/// Most people, or files, that a line names.
const MAX_NAMED: usize = 200;
/// Most letters that are read with the one that they are attached to.
pub(super) const MAX_LETTERS: usize = 100;
/// Most attachments that are looked at in files of Outlook, all of those together that are attached to each other.
pub(super) const MAX_ATTACHMENTS: usize = 1_000;
/// Most letters around a letter that is read.
pub(super) const MAX_AROUND: usize = 5;
/// Stands above a letter without a subject.
const UNNAMED: &str = "Attached e-mail";

/// The text of a letter, in paragraphs.
#[derive(Debug, Default)]
pub(super) struct LetterText {
    paragraphs: Vec<String>,
    /// Whether it has more than plain paragraphs.
    pub(super) has_markdown: bool,
    /// How many attached letters were opened.
    letters: usize,
    /// How many attachments were looked at in files of Outlook.
    looked_at: usize,
    /// How many attachments were not read.
    unread: usize,
    /// What could not be read is told once for each reason, however many parts have some.
    warnings: BTreeMap<(String, String), u64>,
}

impl LetterText {
    /// Adds what a letter says, with so many others `around` it, and then the letters that are attached to it.
    pub(super) fn add(
        &mut self,
        message: &Message<'_>,
        parts: &[MailPart<'_>],
        around: usize,
    ) -> Result<(), ParseAbort> {
        let above = self.end();
        for part in bodies(parts) {
            self.add_body(&part.decoded(), part.charset(), part.kind == PartKind::Html)?;
        }
        let mut attached = Vec::new();
        for part in parts {
            let is_read = match part.kind {
                PartKind::Message(format) => self.add_attached(&part.decoded(), format, around)?,
                PartKind::Attached => false,
                PartKind::Plain | PartKind::Html | PartKind::Encrypted => continue,
            };
            if !is_read {
                attached.push(part.name());
            }
        }
        self.put_head(above, head(message, &attached, around > 0), attached.len());
        Ok(())
    }

    /// Adds a letter that is attached to one with so many others `around` it, under its subject. Whether it could be read.
    pub(super) fn add_attached(
        &mut self,
        bytes: &[u8],
        format: MessageFormat,
        around: usize,
    ) -> Result<bool, ParseAbort> {
        if !self.may_open(around) {
            return Ok(false);
        }
        match format {
            MessageFormat::Mime => self.add_message(bytes, around),
            MessageFormat::Outlook => outlook::add_attached(bytes, self, around),
        }
    }

    fn add_message(&mut self, bytes: &[u8], around: usize) -> Result<bool, ParseAbort> {
        let Ok(MailParts { message, parts }) = MailParts::of(beginning(bytes), MAX_INNER_HEAD) else {
            return Ok(false);
        };
        if is_sealed(&parts) {
            return Ok(false);
        }
        self.begin(title(&message).as_deref(), around);
        self.add(&message, &parts, around + 1)?;
        Ok(true)
    }

    /// Whether one more attached letter may be opened, with so many others around the one that it is attached to. It counts from then on.
    pub(super) fn may_open(&mut self, around: usize) -> bool {
        let may_open = self.letters < MAX_LETTERS && around < MAX_AROUND;
        self.letters += usize::from(may_open);
        may_open
    }

    /// Those of these attachments in a file of Outlook that may be looked at. They count from then on.
    pub(super) fn look_at(&mut self, folders: impl Iterator<Item = String>) -> Vec<String> {
        let folders: Vec<String> = folders.take(MAX_ATTACHMENTS - self.looked_at).collect();
        self.looked_at += folders.len();
        folders
    }

    /// Begins an attached letter under its subject.
    pub(super) fn begin(&mut self, subject: Option<&str>, around: usize) {
        let level = "#".repeat(around + 1);
        self.paragraphs.push(format!("{level} {}", subject.unwrap_or(UNNAMED)));
        self.has_markdown = true;
    }

    /// The place behind all that was added.
    pub(super) fn end(&self) -> usize {
        self.paragraphs.len()
    }

    /// Puts what stands above a letter where that begins, and counts its attachments that were not read.
    pub(super) fn put_head(&mut self, place: usize, head: String, unread: usize) {
        self.unread += unread;
        self.paragraphs.insert(place, head);
    }

    /// Adds a text, or what a page says.
    pub(super) fn add_body(
        &mut self,
        bytes: &[u8],
        charset: Option<&str>,
        is_page: bool,
    ) -> Result<(), ParseAbort> {
        let warnings = &mut self.warnings;
        let mut note = |frame: ParseFrame| {
            if let ParseFrame::Warning(IngestionWarning { code, message, count }) = frame {
                *warnings.entry((code, message)).or_default() += count;
            }
            Ok(())
        };
        let mut noted = ParserOutput::new(&mut note, u64::MAX);
        let said = if is_page {
            self.has_markdown = true;
            html::markdown_of_bytes(bytes, charset, &mut noted)?
        } else {
            charset::decode_noting(bytes, charset, &mut noted)?.into_owned()
        };
        self.paragraphs.push(said.trim_start_matches(['\u{feff}', '\r', '\n']).trim_end().to_owned());
        Ok(())
    }

    /// Hands on all of it, and what was not read.
    pub(super) fn hand_on(
        mut self,
        options: &ParseOptions,
        output: &mut ParserOutput<'_>,
    ) -> Result<(), ParseAbort> {
        for ((code, message), count) in self.warnings {
            output.warn(&code, &message, count)?;
        }
        self.paragraphs.retain(|paragraph| !paragraph.is_empty());
        let said = text::tidy(&self.paragraphs.join("\n\n"), options.max_chars)?;
        text::in_pieces(&said, Vec::new(), output)?;
        if self.unread > 0 {
            let message = "Attachments of the e-mail were not read. Add them as documents of their own.";
            output.warn("unread_attachments", message, self.unread as u64)?;
        }
        Ok(())
    }
}

/// Whether only its receiver can open what a letter says.
pub(super) fn is_sealed(parts: &[MailPart<'_>]) -> bool {
    bodies(parts).is_empty() && parts.iter().any(|part| part.kind == PartKind::Encrypted)
}

/// The parts that are the text of a letter. Of alternatives it is the plain one, where there is something in it.
fn bodies<'p, 'a>(parts: &'p [MailPart<'a>]) -> Vec<&'p MailPart<'a>> {
    let is_plain = |part: &&MailPart<'_>| part.kind == PartKind::Plain && !part.is_blank();
    let plain: BTreeSet<usize> = parts.iter().filter(is_plain).filter_map(|part| part.choice).collect();
    let is_chosen = |part: &&MailPart<'_>| match part.kind {
        PartKind::Plain => true,
        PartKind::Html => part.choice.is_none_or(|choice| !plain.contains(&choice)),
        PartKind::Encrypted | PartKind::Message(_) | PartKind::Attached => false,
    };
    parts.iter().filter(is_chosen).collect()
}

/// What stands above the text of a letter, line by line: without its subject where that is the heading.
fn head(message: &Message<'_>, attached: &[&str], has_heading: bool) -> String {
    let people = |addresses: Option<&Address<'_>>| {
        named(addresses.into_iter().flat_map(Address::iter).filter_map(person))
    };
    let date = message.date().filter(|date| date.is_valid()).map(DateTime::to_rfc3339);
    let files = attached.iter().filter_map(|name| file_name::in_one_line(name));
    let subject = message.subject().filter(|_| !has_heading);
    in_lines([
        ("Subject", subject.and_then(file_name::in_one_line)),
        ("From", people(message.from())),
        ("To", people(message.to())),
        ("Cc", people(message.cc())),
        ("Date", date),
        ("Attachments", named(files)),
    ])
}

/// Lines with their names, of what there is.
pub(super) fn in_lines(lines: [(&str, Option<String>); 6]) -> String {
    let lines = lines.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A list in one line; none when there is nobody on it.
pub(super) fn named(names: impl Iterator<Item = String>) -> Option<String> {
    let mut names = names.peekable();
    names.peek()?;
    let mut line = names.by_ref().take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    let more = names.count();
    if more > 0 {
        line = format!("{line} and {more} more");
    }
    Some(line)
}

/// Somebody's name and address.
fn person(addr: &Addr<'_>) -> Option<String> {
    somebody(addr.name(), addr.address())
}

/// The same of a name and an address.
pub(super) fn somebody(name: Option<&str>, address: Option<&str>) -> Option<String> {
    let said = match (name, address) {
        (Some(name), Some(address)) if name != address => format!("{name} <{address}>"),
        (_, Some(address)) => address.to_owned(),
        (Some(name), None) => name.to_owned(),
        (None, None) => return None,
    };
    file_name::in_one_line(&said)
}

//! PDFs made to order: good ones with text, and the parts to make bad ones from.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails is a test that fails")]

use std::fmt::Write as _;

use lectern_shared::secrets::unhex;

/// A PDF with one page for each text, in Helvetica, a line of it on a line of the page. Characters outside Latin-1
/// become question marks.
pub(crate) fn pdf_with_pages(pages: &[&str]) -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    let resources = format!("<< /Font << /F1 {font} 0 R >> >>");
    for text in pages {
        let content = text_content(text);
        pdf.add_page(&resources, &content);
    }
    pdf.finish()
}

/// A PDF of so many pages of running text with a title above and a page number below, as a report has them. No two pages
/// say the same, and each line says where it is: "Line 3 of page 7 speaks of".
pub(crate) fn long_pdf(pages: usize, lines: usize) -> Vec<u8> {
    const WORDS: [&str; 11] = [
        "harbour",
        "lighthouse",
        "keeper",
        "storm",
        "ferry",
        "gull",
        "pier",
        "anchor",
        "tide",
        "compass",
        "sail",
    ];
    let mut pdf = PdfBuilder::new();
    pdf.title("The Harbour Report");
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    let resources = format!("<< /Font << /F1 {font} 0 R >> >>");
    for page in 1..=pages {
        let mut text = "The Harbour Report\n\n".to_owned();
        for line in 1..=lines {
            let word = |step: usize| WORDS[(page * 31 + line * 17 + step * (page + line)) % WORDS.len()];
            let _infallible = writeln!(
                text,
                "Line {line} of page {page} speaks of the {} and the {}, and of a {} that the {} had left.",
                word(1),
                word(2),
                word(3),
                word(5)
            );
        }
        let _infallible = write!(text, "\nPage {page} of {pages}");
        pdf.add_page(&resources, &text_content(&text));
    }
    pdf.finish()
}

/// A PDF whose only page draws forms that each draw the next one ten times.
pub(crate) fn fanning_out_pdf(depth: usize) -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    pdf.add_fanning_out_page(depth);
    pdf.finish()
}

/// Builds a PDF object by object and writes a correct cross-reference table.
pub(crate) struct PdfBuilder {
    objects: Vec<Vec<u8>>,
    kids: Vec<usize>,
    /// Further entries of the catalog.
    catalog: String,
    trailer: String,
}

const CATALOG: usize = 1;
const PAGES: usize = 2;

impl PdfBuilder {
    pub(crate) fn new() -> Self {
        Self {
            objects: vec![Vec::new(), Vec::new()],
            kids: Vec::new(),
            catalog: String::new(),
            trailer: String::new(),
        }
    }

    /// Adds an object and returns its number.
    pub(crate) fn add(&mut self, body: impl AsRef<[u8]>) -> usize {
        self.objects.push(body.as_ref().to_vec());
        self.objects.len()
    }

    /// The number that the next object gets, for objects that refer to themselves or to later ones.
    pub(crate) fn next_number(&self) -> usize {
        self.objects.len() + 1
    }

    /// Adds a stream with further dictionary entries, `/Filter` for instance.
    pub(crate) fn add_stream(&mut self, entries: &str, data: &[u8]) -> usize {
        let mut body = format!("<< {entries} /Length {} >>\nstream\n", data.len()).into_bytes();
        body.extend_from_slice(data);
        body.extend_from_slice(b"\nendstream");
        self.add(body)
    }

    /// Adds a page with plain content.
    pub(crate) fn add_page(&mut self, resources: &str, content: &[u8]) {
        let content = self.add_stream("", content);
        self.add_page_with(resources, &format!("{content} 0 R"));
    }

    /// Adds a page whose `/Contents` is what is given.
    pub(crate) fn add_page_with(&mut self, resources: &str, contents: &str) {
        let page = format!(
            "<< /Type /Page /Parent {PAGES} 0 R /MediaBox [0 0 595 842] /Resources {resources} /Contents {contents} >>"
        );
        let page = self.add(page);
        self.kids.push(page);
    }

    /// Adds a page with nothing on it.
    pub(crate) fn add_empty_page(&mut self) {
        let page = self.add(format!("<< /Type /Page /Parent {PAGES} 0 R /MediaBox [0 0 595 842] >>"));
        self.kids.push(page);
    }

    /// Adds a page of forms that each draw the next one ten times, `depth` levels deep.
    pub(crate) fn add_fanning_out_page(&mut self, depth: usize) {
        let entries = "/Type /XObject /Subtype /Form /BBox [0 0 595 842]";
        let font = self.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
        let resources = format!("<< /Font << /F1 {font} 0 R >> >>");
        let text = text_content("ha ha ha");
        let mut form = self.add_stream(&format!("{entries} /Resources {resources}"), &text);
        for _ in 0..depth {
            let resources = format!("<< /XObject << /F {form} 0 R >> >>");
            form = self.add_stream(&format!("{entries} /Resources {resources}"), &b"/F Do ".repeat(10));
        }
        self.add_page(&format!("<< /XObject << /F {form} 0 R >> >>"), b"/F Do");
    }

    /// The numbers of the pages' objects, in order.
    pub(crate) fn page_numbers(&self) -> &[usize] {
        &self.kids
    }

    /// Adds entries to the catalog.
    pub(crate) fn catalog(&mut self, entries: &str) {
        self.catalog.push_str(entries);
    }

    /// Gives the document an outline of so many entries: each has its depth from 0, its title, and what says where it leads.
    pub(crate) fn outline(&mut self, entries: &[(usize, &str, String)]) {
        let (root, first) = (self.next_number(), self.next_number() + 1);
        self.add(format!("<< /Type /Outlines /First {first} 0 R >>"));
        for (at, (depth, title, leads)) in entries.iter().enumerate() {
            let next = entries[at + 1..]
                .iter()
                .take_while(|(other, ..)| other >= depth)
                .position(|(other, ..)| other == depth);
            let next = next.map(|after| format!("/Next {} 0 R", first + at + 1 + after)).unwrap_or_default();
            let has_children = entries.get(at + 1).is_some_and(|(other, ..)| other > depth);
            let child = if has_children { format!("/First {} 0 R", first + at + 1) } else { String::new() };
            let head = format!("<< /Parent {root} 0 R {next} {child} {leads} /Title (").into_bytes();
            self.add([head.as_slice(), &escaped(title), b") >>"].concat());
        }
        self.catalog(&format!("/Outlines {root} 0 R "));
    }

    /// Gives the document a title.
    pub(crate) fn title(&mut self, title: &str) {
        let information = self.add([b"<< /Title (".as_slice(), &escaped(title), b") >>"].concat());
        let _infallible = write!(self.trailer, " /Info {information} 0 R");
    }

    /// The file's bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let kids = self.kids.iter().map(|kid| format!("{kid} 0 R")).collect::<Vec<_>>().join(" ");
        self.objects[CATALOG - 1] =
            format!("<< /Type /Catalog /Pages {PAGES} 0 R {} >>", self.catalog).into_bytes();
        self.objects[PAGES - 1] =
            format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", self.kids.len()).into_bytes();
        let mut file = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
        let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", self.objects.len() + 1);
        for (at, body) in self.objects.iter().enumerate() {
            let _infallible = writeln!(table, "{:010} 00000 n ", file.len());
            file.extend_from_slice(format!("{} 0 obj\n", at + 1).as_bytes());
            file.extend_from_slice(body);
            file.extend_from_slice(b"\nendobj\n");
        }
        let start = file.len();
        let size = self.objects.len() + 1;
        let trailer = format!(
            "trailer\n<< /Size {size} /Root {CATALOG} 0 R{} >>\nstartxref\n{start}\n%%EOF\n",
            self.trailer
        );
        file.extend_from_slice(table.as_bytes());
        file.extend_from_slice(trailer.as_bytes());
        file
    }
}

/// A PDF encrypted with AES-128. Its one page says "The vault is open." to those who get in.
pub(crate) fn encrypted_pdf(opens_with: OpensWith) -> Vec<u8> {
    let (content, owner, user, id) = match opens_with {
        OpensWith::Password => (
            "8398450d55d6d411ec452d0174bcac610ac9aad7de034cf2ae58eaaf20e5a2490f91a5150e646987\
             7868578e1664e56643fc5fefbcc06fff1eef03acc207d8a061105fb28af6b90b3fc8e53abdc9b685",
            "0db5855fc5326569e765906caf64e4429a4c20d6e996fdef963e9b5080f9e083",
            "4745fc28f233d37927673992af6d58dd0021446990b9e4114071a4d9104984c1",
            "dc3ce0a3b79973370c17b1ae762baa88",
        ),
        OpensWith::Nothing => (
            "ba68f42c66d77cfa544d1890230cb16efe27173991abddcf1139f60a4f9135cf10aa5ef8c50cce14\
             5e6eecf9b1bc2f67b19eed4bb02bfc9384f45104a75af2bbefce43f05d06a9f18ae3186707f429e9",
            "566fa873ee33c797cd3b904fdadf814afa34df9a38f6ed41b984e2c6da2aa6f5",
            "aa82fd183243033ae80d31898fec2ff20021446990b9e4114071a4d9104984c1",
            "dc3ce0a3b79973370c17b1ae762baa88",
        ),
    };
    let content = unhex(content).expect("hexadecimal digits");
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    // The key depends on the object's number: the content was encrypted as object 4.
    assert_eq!(pdf.next_number(), 4);
    pdf.add_page(&format!("<< /Font << /F1 {font} 0 R >> >>"), &content);
    let encrypt = pdf.add(format!(
        "<< /Filter /Standard /V 4 /R 4 /Length 128 /P -1028 /O <{owner}> /U <{user}> /StmF /StdCF /StrF /StdCF \
         /CF << /StdCF << /AuthEvent /DocOpen /CFM /AESV2 /Length 16 >> >> >>"
    ));
    let _infallible = write!(pdf.trailer, " /ID [<{id}> <{id}>] /Encrypt {encrypt} 0 R");
    pdf.finish()
}

/// What a reader of an encrypted PDF has to know.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OpensWith {
    /// The user's password.
    Password,
    /// Nothing: only an owner's password is set, against changes.
    Nothing,
}

/// A zlib stream of `count` equal bytes, about 160 times smaller than what it holds.
pub(crate) fn deflated_run(byte: u8, count: usize) -> Vec<u8> {
    let mut bits = Deflate::new();
    bits.literal(byte);
    let mut left = count - 1;
    while left >= LONGEST_MATCH {
        bits.longest_match(0, 0, 0);
        left -= LONGEST_MATCH;
    }
    (0..left).for_each(|_| bits.literal(byte));
    bits.finish(adler_of_run(byte, count))
}

/// A zlib stream of data that repeats itself every 13 bytes, as the output of [`deflated_run`] does.
pub(crate) fn deflated_again(data: &[u8]) -> Vec<u8> {
    const PERIOD: usize = 13;
    let mut bits = Deflate::new();
    let mut at = 0;
    while let Some(&byte) = data.get(at) {
        let repeats = at >= PERIOD
            && data
                .get(at..at + LONGEST_MATCH)
                .is_some_and(|run| run == &data[at - PERIOD..at - PERIOD + LONGEST_MATCH]);
        if repeats {
            // Distance code 7 stands for 13 to 16 and has two extra bits.
            bits.longest_match(7, 0, 2);
            at += LONGEST_MATCH;
        } else {
            bits.literal(byte);
            at += 1;
        }
    }
    bits.finish(adler(data))
}

const LONGEST_MATCH: usize = 258;

const ADLER_PRIME: u32 = 65_521;

/// Writes one deflate block with the fixed codes of RFC 1951.
struct Deflate {
    bytes: Vec<u8>,
    pending: u32,
    filled: u32,
}

impl Deflate {
    fn new() -> Self {
        let mut bits = Self { bytes: vec![0x78, 0x9c], pending: 0, filled: 0 };
        bits.put(0b011, 3);
        bits
    }

    /// Appends bits, the lowest first.
    fn put(&mut self, value: u32, count: u32) {
        self.pending |= value << self.filled;
        self.filled += count;
        while self.filled >= 8 {
            self.bytes.push(self.pending.to_le_bytes()[0]);
            self.pending >>= 8;
            self.filled -= 8;
        }
    }

    /// Appends a Huffman code, the highest bit first.
    fn code(&mut self, code: u32, count: u32) {
        self.put(code.reverse_bits() >> (32 - count), count);
    }

    fn literal(&mut self, byte: u8) {
        let byte = u32::from(byte);
        if byte < 144 { self.code(0x30 + byte, 8) } else { self.code(0x190 + byte - 144, 9) }
    }

    fn longest_match(&mut self, distance_code: u32, extra: u32, extra_bits: u32) {
        self.code(0b1100_0101, 8);
        self.code(distance_code, 5);
        self.put(extra, extra_bits);
    }

    fn finish(mut self, checksum: u32) -> Vec<u8> {
        self.code(0, 7);
        self.put(0, 7);
        self.bytes.extend_from_slice(&checksum.to_be_bytes());
        self.bytes
    }
}

fn adler(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % ADLER_PRIME;
        (a, (b + a) % ADLER_PRIME)
    });
    b << 16 | a
}

/// The same of a run of equal bytes, without walking over it.
fn adler_of_run(byte: u8, count: usize) -> u32 {
    let (byte, count, prime) = (u128::from(byte), count as u128, u128::from(ADLER_PRIME));
    let a = (1 + count * byte) % prime;
    let b = (count + byte * (count * (count + 1) / 2)) % prime;
    u32::try_from(b << 16 | a).expect("both are below 2^16")
}

/// Content that shows a text line by line, as large as fits the page.
pub(crate) fn text_content(text: &str) -> Vec<u8> {
    let lines: Vec<&str> = text.lines().collect();
    let rows = u32::try_from(lines.len().max(1)).expect("a page is not that long");
    let leading = (14.0_f64).min(760.0 / f64::from(rows));
    let mut content = format!("BT /F1 {:.2} Tf {leading:.2} TL 50 790 Td\n", leading * 0.8).into_bytes();
    for line in lines {
        content.push(b'(');
        content.extend(escaped(line));
        content.extend_from_slice(b") Tj T*\n");
    }
    content.extend_from_slice(b"ET");
    content
}

fn escaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '(' | ')' | '\\') {
            bytes.push(b'\\');
        }
        bytes.push(u8::try_from(u32::from(c)).unwrap_or(b'?'));
    }
    bytes
}

/// A tool of scripts that measure: `TEST_PDF=/tmp/long.pdf TEST_PDF_PAGES=500 scripts/test.sh --test e2e -- --ignored
/// --exact support::pdf::a_long_pdf_is_written_for_scripts`.
#[test]
#[ignore = "writes a file for scripts, at TEST_PDF, with TEST_PDF_PAGES pages"]
fn a_long_pdf_is_written_for_scripts() {
    let path = std::env::var_os("TEST_PDF").expect("TEST_PDF says where to");
    let pages =
        std::env::var("TEST_PDF_PAGES").map_or(500, |pages| pages.parse().expect("a number of pages"));
    std::fs::write(path, long_pdf(pages, 45)).expect("the file can be written");
}

//! What comes of whole pages.

use encoding_rs::{SHIFT_JIS, WINDOWS_1251};

use super::*;
use crate::protocol::{MAX_URL, ParseFrame, ParsedPart};

#[derive(Default)]
struct ReadPage {
    about: SourceMetadata,
    text: String,
    parts: usize,
    warnings: Vec<String>,
}

fn read_with(page: &[u8], options: &ParseOptions) -> Result<ReadPage, ParseAbort> {
    let mut read = ReadPage::default();
    let mut emit = |frame| {
        match frame {
            ParseFrame::About(about) => read.about = about,
            ParseFrame::Part(ParsedPart { text, .. }) => {
                read.parts += 1;
                read.text.push_str(&text);
            }
            ParseFrame::Warning(warning) => read.warnings.push(warning.code),
            other => panic!("{other:?}"),
        }
        Ok(())
    };
    parse(page.to_vec(), options, &mut ParserOutput::new(&mut emit, options.max_chars))?;
    Ok(read)
}

fn read(page: &str) -> ReadPage {
    let url = Some("https://example.org/docs/page.html".to_owned());
    read_with(page.as_bytes(), &ParseOptions { url, ..ParseOptions::default() }).unwrap()
}

fn sentences(about: &str) -> String {
    ["first", "second", "third", "fourth"]
        .map(|number| {
            format!(
                "The {number} thing to know of {about} is that it has been made by hand, in a small town, for many years. "
            )
        })
        .concat()
}

#[test]
fn an_article_is_read_without_what_is_around_it() {
    let page = format!(
        r#"<!DOCTYPE html><html><head><title>Mills | The Daily</title><meta property="og:title" content="Mills">
        <link rel="canonical" href="/mills#top"><style>p {{ color: red }}</style></head><body>
        <div class="cookie-banner">We use cookies. <button>Accept all</button></div>
        <nav><ul><li><a href="/">Home</a></li><li><a href="/sport">Sport</a></li></ul></nav>
        <article><h1>Mills</h1><p>{}</p><h2>Stones<a class="headerlink" href="/s">¶</a></h2><p>{}</p>
        <ul><li>wind<ul><li>post mill</li></ul></li><li>water</li></ul>
        <table><tr><th>Mill</th><th>Year</th></tr><tr><td>Old</td><td>1720</td></tr><tr><td>New</td><td>1840</td></tr></table>
        <pre><code>grind --fine
  --slow</code></pre></article>
        <script>var secret = 1;</script><footer>Copyright of the daily</footer></body></html>"#,
        sentences("flour"),
        sentences("stones"),
    );
    let ReadPage { about, text, .. } = read(&page);
    assert_eq!(about.title.as_deref(), Some("Mills"));
    assert_eq!(about.canonical_url.as_deref(), Some("https://example.org/mills"));
    assert_eq!(about.structure, TextMarkup::Markdown);
    for kept in [
        "## Stones\n\nThe first thing to know of stones",
        "- wind\n  - post mill\n- water",
        "| Mill | Year |\n| --- | --- |\n| Old | 1720 |\n| New | 1840 |",
        "```\ngrind --fine\n  --slow\n```",
    ] {
        assert!(text.contains(kept), "{kept:?} in {text}");
    }
    for left_out in ["cookies", "Sport", "secret", "Copyright", "color", "¶", "Accept"] {
        assert!(!text.contains(left_out), "{left_out:?} in {text}");
    }
}

#[test]
fn headings_are_kept_where_no_element_says_what_is_content() {
    let section = |about: &str| {
        format!(
            "<section><h2>All on {about}</h2><p>{}</p><p>And {}</p></section>",
            sentences(about),
            sentences(about)
        )
    };
    let page = format!(
        "<body><header><a href=/>Home</a></header><div id=wrap>{}{}{}</div><footer><h3>Imprint</h3><p>The daily</p></footer>",
        section("flour"),
        section("stones"),
        section("sacks")
    );
    let text = read(&page).text;
    for about in ["flour", "stones", "sacks"] {
        let kept = format!("## All on {about}\n\nThe first thing to know of {about}");
        assert_eq!(text.matches(&kept).count(), 1, "{text}");
    }
    assert!(!text.contains("Imprint"), "{text}");
}

#[test]
fn a_short_page_keeps_its_shape_and_not_its_menu_however_long_that_is() {
    let entry = |number: usize| format!("<li><a href='/{number}'>Menu entry {number}</a></li>");
    for entries in [5, 15, 60] {
        let menu = (0..entries).map(entry).collect::<String>();
        let content = "<h1>Contact</h1><p>Mill Street 5, Springfield</p><p>Open from nine to five.</p>";
        let footer = "<footer>The daily</footer>";
        for content in [content.to_owned(), format!("<main>{content}</main>")] {
            let page = format!("<title>Contact</title><body><nav><ul>{menu}</ul></nav>{content}{footer}");
            assert_eq!(
                read(&page).text,
                "# Contact\n\nMill Street 5, Springfield\n\nOpen from nine to five."
            );
        }
    }
    // What is said around the content alone is the content.
    let page = format!(
        "<body><header><p>{}</p></header><h2>More</h2><p><a href=/a>Read on</a></p>",
        sentences("flour")
    );
    assert!(read(&page).text.contains("The first thing to know of flour"));
}

#[test]
fn short_pages_give_what_they_have() {
    for (page, text) in [
        (
            "<body><nav><a href=/>Home</a></nav><div>The mill opens at nine. Bring sacks. Closed on Sundays.</div>",
            "The mill opens at nine. Bring sacks. Closed on Sundays.",
        ),
        ("<body><ul><li>Milk<li>Bread</ul>", "- Milk\n- Bread"),
        (
            "<table><tr><th>Item<th>Price<tr><td>Bolt<td>1.20<tr><td>Nut<td>0.80</table>",
            "| Item | Price |\n| --- | --- |\n| Bolt | 1.20 |\n| Nut | 0.80 |",
        ),
        ("<pre>RFC 1\n\n  A title\n</pre>", "```\nRFC 1\n\n  A title\n```"),
        ("Hello", "Hello"),
    ] {
        assert_eq!(read(page).text, text);
    }
}

#[test]
fn a_page_that_scripts_make_has_no_text_and_says_why() {
    for page in [
        "<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div><script src=a.js></script>",
        "<div id=app>Please enable JavaScript to continue.</div><script src=a.js></script>",
        "<div id=app></div><script>start()</script>",
    ] {
        let end = read_with(page.as_bytes(), &ParseOptions::default());
        assert!(matches!(end, Err(ParseAbort::Document(ParseError::ScriptedPage))), "{page}");
    }
    let ReadPage { text, warnings, .. } = read("<title>Nothing</title><img src=a.png>");
    assert!(text.is_empty() && warnings.is_empty());
}

#[test]
fn what_is_there_for_browsers_without_scripts_is_read() {
    let page = format!(
        "<div id=app></div><noscript><p>{}</p></noscript><script src=a.js></script>",
        sentences("bells")
    );
    assert!(read(&page).text.starts_with("The first thing to know of bells"));
}

#[test]
fn a_page_that_mentions_scripts_is_still_a_page() {
    let page = "<p>JavaScript is a language of the web. It was made in ten days.</p><script>1</script>";
    assert!(read(page).text.contains("ten days"));
}

#[test]
fn pages_in_other_encodings_are_read() {
    let (cyrillic, _, _) = WINDOWS_1251.encode("<meta charset=windows-1251><p>Мельница открыта</p>");
    assert_eq!(read_with(&cyrillic, &ParseOptions::default()).unwrap().text, "Мельница открыта");
    let (japanese, _, _) = SHIFT_JIS.encode("<p>水車小屋</p>");
    let charset = Some("shift_jis".to_owned());
    assert_eq!(
        read_with(&japanese, &ParseOptions { charset, ..ParseOptions::default() }).unwrap().text,
        "水車小屋"
    );
    let stray =
        [&b"<meta charset=utf-8><p>Die M\xfchle</p>"[..], "<p>Räder, Flügel, süß</p>".as_bytes()].concat();
    let ReadPage { text, warnings, .. } = read_with(&stray, &ParseOptions::default()).unwrap();
    assert!(text.contains("Die M\u{fffd}hle") && text.contains("Räder, Flügel, süß"), "{text}");
    assert_eq!(warnings, ["undecodable_bytes"]);
    let broken = b"<meta charset=utf-8><p>a\xff\xfe\xfd broken \xf0 text \xc3</p>";
    let charset = Some("gbk".to_owned());
    let ReadPage { warnings, .. } =
        read_with(broken, &ParseOptions { charset, ..ParseOptions::default() }).unwrap();
    assert_eq!(warnings, ["undecodable_bytes"]);
}

#[test]
fn no_bytes_and_too_much_text_are_errors() {
    let error = |page: &[u8], max_chars| match read_with(
        page,
        &ParseOptions { max_chars, ..ParseOptions::default() },
    ) {
        Err(ParseAbort::Document(error)) => Some(error),
        _ => None,
    };
    assert_eq!(error(b"", 100), Some(ParseError::Empty));
    assert_eq!(error(b"<p>Longer than it may be", 10), Some(ParseError::TooLarge { limit: 10 }));
}

#[test]
fn a_long_page_comes_in_parts_that_are_whole_lines() {
    let page = format!("<p>{}</p>", "Many words of a paragraph. ".repeat(10)).repeat(6000);
    let ReadPage { text, parts, .. } = read(&page);
    assert!(parts > 1);
    assert_eq!(text.lines().filter(|line| line.starts_with("Many words")).count(), 6000);
}

#[test]
fn deep_nesting_is_read_and_harms_nothing() {
    for tag in
        ["div", "b", "span", "ul><li", "blockquote", "table><tr><td", "button", "font size=1", "svg><tr"]
    {
        let page = format!(
            "<p>before</p>{}deep",
            format!("<{tag}>").repeat(if tag == "div" { 100_000 } else { 10_000 })
        );
        assert!(read(&page).text.contains("before"), "{tag}");
    }
}

#[test]
fn a_tag_with_countless_attributes_is_read_and_harms_nothing() {
    let attributes: String = (0..100_000).map(|n| ["a", &n.to_string(), "=1 "].concat()).collect();
    let page = format!("<track src=/a.vtt><p {attributes}>text<track src=/b.vtt>");
    assert_eq!(read(&page).text, "text");
    assert_eq!(tracks(&page, Some(&Url::parse("https://example.org").unwrap())).len(), 2);
}

#[test]
fn a_whole_chapter_is_read_with_everything_in_it() {
    let chapter = r#"<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>
        <body><h2>Chapter <br/>One</h2><p>It was a <i>dark</i> night<a id="n1"/>.</p><script src="x.js"/>
        <aside><p>A note.</p></aside><p># 5 of them</p></body></html>"#;
    assert_eq!(markdown_of(chapter), "## Chapter One\n\nIt was a dark night.\n\nA note.\n\n\\# 5 of them");
}

#[test]
fn the_tracks_of_a_video_are_found() {
    let page = r#"<base href="https://cdn.example.org/v/"><video src=a.mp4>
        <track src="en.vtt" srclang=en label=English kind=captions default>
        <track src="/de.vtt" srclang=de><track src="javascript:x"><track src="https://a:b@example.org/x.vtt"><track kind=chapters></video>"#;
    let tracks = tracks(page, Some(&Url::parse("https://example.org/watch").unwrap()));
    let seen: Vec<_> = tracks
        .iter()
        .map(|it| (it.url.as_str(), it.kind, it.language.as_deref(), it.label.as_deref(), it.is_default))
        .collect();
    assert_eq!(
        seen,
        [
            ("https://cdn.example.org/v/en.vtt", TrackKind::Captions, Some("en"), Some("English"), true),
            ("https://cdn.example.org/de.vtt", TrackKind::Subtitles, Some("de"), None, false),
        ]
    );
}

#[test]
fn a_page_names_only_addresses_that_can_be_opened() {
    for (head, canonical) in [
        (r#"<link rel="canonical" href="javascript:alert(1)">"#, None),
        (r#"<meta property="og:url" content="https://example.org/a">"#, Some("https://example.org/a")),
        (r#"<link rel="shortlink canonical" href="../b?x=1">"#, Some("https://example.org/b?x=1")),
        ("", None),
    ] {
        assert_eq!(read(&format!("{head}<p>text</p>")).about.canonical_url.as_deref(), canonical, "{head}");
    }
}

#[test]
fn a_page_names_no_address_that_is_too_long_once_it_is_written_out() {
    let canonical = |letters: usize| {
        let head = format!(r#"<link rel="canonical" href="/{}">"#, "ä".repeat(letters));
        read(&format!("{head}<p>text</p>")).about.canonical_url
    };
    assert!(canonical(100).is_some());
    // Of two bytes each, and of six when it is written out.
    assert_eq!(canonical(MAX_URL / 3), None);
}

#[test]
fn tables_keep_what_spans_rows_and_say_long_headers_again() {
    let page = "<table><caption>Prices</caption><tr><th>Kind<th>Size<th>Price<tr><td rowspan=2>Bolt<td>1<td>a|b<tr><td>2<td>3</table>";
    assert_eq!(
        markdown_of(page),
        "Prices\n\n| Kind | Size | Price |\n| --- | --- | --- |\n| Bolt | 1 | a\\|b |\n| Bolt | 2 | 3 |"
    );
    let facts = "<table><tr><th colspan=2>Mill<tr><th>Built:<td>1720<tr><th>Town<td>Ely</table>";
    assert_eq!(markdown_of(facts), "Mill\nBuilt: 1720\nTown: Ely");
    let rows = "<tr><td>some words of a row<td>more words of it</tr>".repeat(200);
    let long = markdown_of(&format!("<table><tr><th>One<th>Two</tr>{rows}</table>"));
    assert!(long.matches("| One | Two |\n| --- | --- |").count() > 3);
    let layout =
        "<table><tr><td><h2>Left</h2><p>one</p></td><td><table><tr><td>two</table></td></tr></table>";
    assert_eq!(markdown_of(layout), "## Left\n\none\n\ntwo");
}

#[test]
fn lists_quotations_and_code_keep_their_shape() {
    let page = "<ol start=3><li><p>three</p><p>more</p><li value=7>seven<pre>x\n\ny</pre></ol><blockquote><p>a<br>b</blockquote>\
                <p>run <code>it</code> now</p><pre class=language-sh>a ``` b</pre>";
    assert_eq!(
        markdown_of(page),
        "3. three\n\n   more\n7. seven\n\n   ```\n   x\n\n   y\n   ```\n\n> a\n> b\n\nrun it now\n\n````sh\na ``` b\n````"
    );
}

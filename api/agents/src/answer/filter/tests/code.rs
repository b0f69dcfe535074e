//! The filter and a Markdown parser agree on what is code, or the filter takes less for code than the parser.

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::{Seeded, in_pieces, passed};

/// Ways in which answers are shown.
fn readers() -> [Options; 6] {
    let front_matter =
        Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let all = Options::all().difference(front_matter);
    let usual = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let newest = all.difference(Options::ENABLE_OLD_FOOTNOTES) | Options::ENABLE_FOOTNOTES;
    let without = |extension| all.difference(extension);
    [Options::empty(), usual, newest, all, without(Options::ENABLE_MATH), without(Options::ENABLE_TABLES)]
}

/// Asserts that no reader finds a tag in the answer, or an image that nobody asked for.
pub(super) fn assert_no_tag(attack: &str, answer: &str) {
    for options in readers() {
        for event in Parser::new_ext(answer, options) {
            match &event {
                Event::Html(html) | Event::InlineHtml(html) => {
                    panic!("{attack:?} gave {answer:?}, and {options:?} finds {html:?}")
                }
                Event::Start(Tag::Image { dest_url, .. }) => {
                    let is_own = !dest_url.contains([':', '\\']) && !dest_url.contains("//");
                    let is_known = dest_url.as_ref() == "https://listed.example/logo.png";
                    assert!(is_own || is_known, "{attack:?} gave {answer:?} with the image {dest_url:?}");
                }
                _ => {}
            }
        }
    }
}

const PARTS: [&str; 86] = [
    "`",
    "`",
    "`",
    "``",
    "```",
    "```",
    "````",
    "~~~",
    "~~~~",
    "\n",
    "\n",
    "\n",
    "\n\n",
    "\n\n",
    "\n```\n",
    "\n```\n",
    "\n```html\n",
    "\n~~~\n",
    "\n   ```\n",
    "\n  ```\n",
    "\n    ```\n",
    " ",
    "  ",
    "   ",
    "    ",
    "\t",
    "- ",
    "\n- ",
    "\n  - ",
    "\n1. ",
    "\n* * *\n",
    "\n---\n",
    "\n===\n",
    "> ",
    "\n> ",
    "\n>\n",
    "\n> ```\n",
    "\n- ```\n",
    "\n# ",
    " #",
    "\n| a | b |\n|---|---|\n",
    "|",
    "\n|-|\n",
    "[^1]",
    "\n[^1]: ",
    "\n[a]: ",
    "[a]",
    "![a]",
    "![",
    "](",
    ")",
    "[",
    "]",
    "[`b]",
    "\n[`b]: /x\n",
    "](/x)",
    "\n: ",
    "$",
    "$$",
    "{",
    "}",
    "\\",
    "\\\\",
    "&lt;",
    "<b>",
    "<b>",
    "</b>",
    "<script>",
    "<!-- ",
    "-->",
    "<?",
    "<!X",
    "<div\n",
    "<T",
    "<a href=\"`\">",
    "<https://listed.example/`>",
    "<",
    ">",
    "x",
    "foo",
    "Bar baz",
    "\"",
    "\u{A0}",
    "\u{C}",
    "https://other.example/7.png",
    "![l](https://listed.example/logo.png)",
];

fn random_text(random: &mut Seeded, most: usize) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(most) {
        text.push_str(PARTS[random.below(PARTS.len())]);
    }
    text
}

#[test]
fn no_text_of_fences_lists_and_tags_lets_a_tag_through() {
    let mut random = Seeded(3);
    for _ in 0..TEXTS {
        let text = random_text(&mut random, 24);
        let whole = passed(&text);
        assert_no_tag(&text, &whole);
        let at = text.floor_char_boundary(random.below(text.len() + 1));
        assert_eq!(in_pieces([&text[..at], &text[at..]]), whole, "{text:?} cut at {at}");
    }
}

const TEXTS: usize = 6_000;

#[test]
fn what_came_before_does_not_matter_to_what_is_code() {
    let mut random = Seeded(5);
    for length in [900, 1_020, 1_030, 31_000, 33_000, 70_000] {
        for _ in 0..8 {
            let before = ["word ", "`a` ", "- b\n", "c\n\n", "> d\n", "  ```\n"][random.below(6)];
            let text = before.repeat(length / before.len()) + &random_text(&mut random, 24);
            assert_no_tag(&text, &passed(&text));
        }
    }
}

#[test]
fn long_code_stays_as_it_is_and_what_is_beyond_all_bounds_is_harmless() {
    let code =
        format!("Here:\n\n```html\n{}```\n\nThat is `<all>`.\n", "<p class=\"x\">y</p>\n".repeat(4_000));
    assert_eq!(passed(&code), code);
    let items: String = (0..400)
        .map(|n| format!("- `Vec<T{n}>` holds\n  ```\n  <T{n}>\n  ```\n"))
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(passed(&items), items);
    for flood in ["```x`\n", "- ```\n", "`<b>` ", "`<b> ", "```\n<b>", "- a\n  ```\n", "`\n<b>`"] {
        let text = flood.repeat((1 << 15) / flood.len());
        assert_no_tag(flood, &passed(&text));
    }
}

#[test]
fn backticks_close_nothing_as_long_as_they_may_become_more() {
    let tag = "<img src=x onerror=alert(1)>";
    for run in 1..=3 {
        let backticks = "`".repeat(run);
        for held in 1_000..=1_030 {
            let code = format!("a {backticks}{tag}{}{backticks}", "x".repeat(held - run - tag.len()));
            let longer = format!("{code}`\nb");
            let whole = passed(&longer);
            assert_no_tag(&longer, &whole);
            assert_eq!(in_pieces([&longer[..1_000], &longer[1_000..]]), whole, "{run} after {held} bytes");
            let closed = format!("{code}\nb");
            let whole = passed(&closed);
            assert_no_tag(&closed, &whole);
            assert!(held >= 1_024 || whole == closed, "{run} after {held} bytes");
        }
    }
}

#[test]
fn nesting_that_nobody_writes_ends_what_is_taken_for_code() {
    let step = |level: usize| format!("{}- a\n", "  ".repeat(level));
    let stairs = |levels: usize| (0..levels).map(step).collect::<Vec<_>>().concat();
    for usual in [
        "> > > a\n".to_owned(),
        "- [ ] a\n  - b\n    - c\n      1. d\n".to_owned(),
        format!("a\n{}\n", "* ".repeat(40)),
        "    deep in what is no list\n".to_owned(),
        "[^1]: A note.\n".to_owned(),
        stairs(8),
    ] {
        let text = format!("{usual}\n`<T>`\n");
        assert_eq!(passed(&text), text);
    }
    for deep in [
        "+ ".repeat(7_000) + "a\n",
        "> ".repeat(40) + "a\n",
        ">".repeat(40) + "\n",
        "1. ".repeat(20) + "a\n",
        "- [^a]:\n".repeat(40),
        stairs(60),
    ] {
        assert_eq!(passed(&format!("{deep}\n`<T>`\n")), format!("{deep}\n`< T>`\n"));
    }
}

#[test]
fn what_takes_a_parser_longer_than_its_bytes_say_is_not_looked_at_for_ever() {
    let columns = "|a".repeat(2_000);
    for (costly, is_cell) in [
        ("+ ".repeat(7_000) + "```\n" + &"\n".repeat(14_000) + &"```x`\n".repeat(560), false),
        (format!("[a](b \"{}\n", "\na".repeat(15_000)), false),
        (format!("{columns}\n{}\n{}", "|-".repeat(2_000), "|a\n".repeat(6_000)), true),
    ] {
        assert!(costly.len() < 32_000, "more would not be looked at in any case");
        let (before, after) = if is_cell { ("| `", "` |\n") } else { ("`", "`\n") };
        let answer = passed(&format!("{costly}{before}<T>{after}"));
        assert_eq!(answer, format!("{costly}{before}< T>{after}"));
    }
}

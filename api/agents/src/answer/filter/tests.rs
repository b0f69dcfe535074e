//! What passes, and what does not, however it is cut.

mod attacks;
mod code;

use super::AnswerFilter;

/// Sources 1 and 2; a host that the question names, with one image; and one that only a source names, with an image too.
fn filter() -> AnswerFilter {
    let mut filter = AnswerFilter::new();
    filter.allow_source(1);
    filter.allow_source(2);
    filter.allow_user_text("What does listed.example show?");
    filter.allow_hosts_in(
        "See https://listed.example/page?a=1&amp;b=2, ![logo](https://listed.example/logo.png) and \
         http://other.example, https://other.example/7.png. It was shown before [7].",
    );
    filter
}

/// The answer, when it comes in these pieces.
fn in_pieces<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
    let mut filter = filter();
    let mut answer = String::new();
    let (mut given, mut lost) = (0, 0);
    for piece in pieces {
        given += piece.len();
        answer.push_str(&filter.push(piece));
        let held = filter.markers.held_bytes() + filter.guard.held_bytes();
        lost = lost.max(held);
    }
    assert!(lost < 2048, "{lost} of {given} bytes were held back");
    answer + &filter.finish()
}

fn passed(answer: &str) -> String {
    in_pieces([answer])
}

struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// The text in two pieces for each place at which it can be cut, and in single characters.
fn assert_cuts_do_not_matter(text: &str) -> String {
    let whole = passed(text);
    for (at, _) in text.char_indices() {
        assert_eq!(in_pieces([&text[..at], &text[at..]]), whole, "{text:?} cut at {at}");
    }
    let single: Vec<String> = text.chars().map(String::from).collect();
    assert_eq!(in_pieces(single.iter().map(String::as_str)), whole, "{text:?} in single characters");
    whole
}

#[test]
fn plain_text_passes_at_once() {
    let mut filter = filter();
    for piece in [
        "The sky",
        " is blue: at noon",
        ", 5 < 6 & 7/8,",
        " x",
        " = (y)!!;",
        "\n\n# So",
        "\n- a\n- b",
        "`co",
        "de`.",
        "\n```html\n",
        "<div>\n<p>",
        "Vec<T>",
        "\n```\n",
    ] {
        assert_eq!(filter.push(piece), piece);
    }
    assert_eq!(filter.finish(), "");
}

#[test]
fn what_is_no_marker_and_no_foreign_address_stays_as_it_is() {
    for text in [
        "",
        "Blue [1], sea [1, 2]【2】.",
        "a  b\t\n\n  c \u{A0}",
        "in [2024], [a], [1a], [], [-1], [1-",
        "[a](/b) [c](d.html#e) [f](?g) [h](i%20j) [k](l \"m\") [n]()",
        "[a](https://listed.example) [b](HTTPS://LISTED.example:8443/x?y#z \"t\") <https://listed.example/x>",
        "https://listed.example, (http://other.example). **https://listed.example**; \"https://listed.example/x\"",
        "![logo](https://listed.example/logo.png) `Vec<String>` HashMap<String, u8> a < b <T: Clone>",
        "[a]: https://listed.example/logo.png\n[b]: /own \"title\"\n\n[x][a] [y][b]",
        "mailto:somebody@anywhere.example and <somebody@anywhere.example>",
        "// a comment\n//another\nlet x = y / 2; // z\n\\[ x = y \\] \\(z\\) C:\\Users\\x a//b.html https: http:",
        "if (a < b && c > d) { x[i](y); } !important, wow!",
        "data: a JSON text, {data:{x:1}}, file: x, javascript: a language, www. is a prefix, h ht http",
        "AT&T &amp; &lt;b&gt; &#65; & &x \\* \\\\ 1/2 //",
        "```html\n<script src=\"app.js\"></script>\n<link href='a.css'>\n```\n",
        "“it was shown before [7]”",
        "»it was shown before [7]«, ”before [7]” and d’« avant [7] »",
        "A note[^1].\n\n[^1]: It is in https://listed.example/x.\n\n- [ ] [a](b) [Note]: x",
        "[![logo](https://listed.example/logo.png)](https://listed.example/x)",
        "1. So:\n   ```html\n   <b>x</b>\n\n   <script>y</script>\n   ```\n2. `a[0] <b>`, ``<`>``\n",
        "| type | of |\n|---|---|\n| `Vec<T>` | `![x][y]` |\n",
        "~~~~ js\n```\n<b>\n~~~\n<i>\n~~~~\n",
        "```rust\nlet x: Vec<u8> = vec![1]; // <!-- -->\n```\n",
        "[[a page]] [[AT&T|a name]] [[a, b], [c, d]] [[https://listed.example/x|y]]",
        "`[[x:y]]` [[a page]]",
        "| a | b |\n|---|---|\n| `$A<T>` | `$B<T>` |\n",
    ] {
        assert_eq!(assert_cuts_do_not_matter(text), text);
    }
}

#[test]
fn unknown_numbers_go_with_the_blank_before_them() {
    for (answer, cleaned) in [
        ("Blue [9].", "Blue."),
        ("Blue [1] [9] sky", "Blue [1] sky"),
        ("Blue [1, 9, 2].", "Blue [1, 2]."),
        ("Blue【9】, sea【2】", "Blue, sea【2】"),
        ("[7] Blue\n[8] sky", "Blue\nsky"),
        ("Blue [1-3].", "Blue [1, 2]."),
        ("Blue [0][3].", "Blue."),
        ("Blue [7] “or [9]”", "Blue “or”"),
        // Behind a quotation it is no part of one, whatever it ends with.
        ("»Blue« [7] sky »blue« [7]", "»Blue« sky »blue«"),
        ("« Blue\nsky » [7] and ”blue” [7]", "« Blue\nsky » and ”blue”"),
        ("»Blue«[7] ”sky”[7]", "»Blue« ”sky”"),
        ("Blue [9]", "Blue"),
        ("x[9](see", "x(see"),
        ("htt[9]ps://evil.example", "(link removed)"),
    ] {
        assert_eq!(assert_cuts_do_not_matter(answer), cleaned);
    }
}

#[test]
fn numbers_in_code_and_labels_are_left_alone() {
    for answer in [
        "`a[9]` and ``b ` [9]``",
        "```rust\nx[9]\n```\n",
        "~~~\nx[9]\n```\n[9]",
        "[9](b \"title\") and [1](ibid)",
        "![1](https://listed.example/logo.png) and [1] (https://listed.example/x)",
        "\\[9]",
    ] {
        assert_eq!(assert_cuts_do_not_matter(answer), answer);
    }
    assert_eq!(passed("`open [9] and\n\nnext [9] one"), "`open [9] and\n\nnext one");
    assert_eq!(passed("```\n[9]\n```\n[9] after [1](see there)"), "```\n[9]\n```\nafter [1](see there)");
}

#[test]
fn a_link_whose_text_is_a_marker_is_the_marker() {
    let long = "a/".repeat(300);
    for (answer, cleaned) in [
        ("In the cellar [1](https://evil.example/a).".to_owned(), "In the cellar [1]."),
        ("In the cellar [2](https://listed.example/x_(y) \"t\").".to_owned(), "In the cellar [2]."),
        ("In the cellar [9](https://listed.example/x).".to_owned(), "In the cellar."),
        ("In the cellar[1, 9](#source-1) [2](/a)".to_owned(), "In the cellar[1] [2]"),
        (format!("In the cellar [1](https://listed.example/{long}x) so."), "In the cellar [1] so."),
        (format!("In the cellar [9](https://evil.example/({long})) so."), "In the cellar so."),
        (format!("In the cellar [1](https://evil.example/{long} so"), "In the cellar [1] so"),
    ] {
        assert_eq!(assert_cuts_do_not_matter(&answer), cleaned, "{}", &answer[..30]);
    }
}

#[test]
fn a_marker_may_have_a_word_behind_a_dagger() {
    for (answer, cleaned) in [
        ("In the cellar【1†source】.", "In the cellar[1]."),
        ("In the cellar 【1†rules.pdf】【9†source】【2, 9†x】.", "In the cellar [1][2]."),
        ("In the cellar 【9†source】.", "In the cellar."),
        (
            "In 【4:0†source】 and 【a†b】 and 【1†b\n】 and 【1†",
            "In 【4:0†source】 and 【a†b】 and 【1†b\n】 and 【1†",
        ),
        // Neither number is that of a source, though both may be known.
        ("In 【1:0†source】【1:2†source】 [1].", "In 【1:0†source】【1:2†source】 [1]."),
        ("In [1†source]", "In [1†source]"),
    ] {
        assert_eq!(assert_cuts_do_not_matter(answer), cleaned, "{answer}");
    }
    let endless = format!("【1†{}】", "x".repeat(5_000));
    assert_eq!(passed(&endless), endless);
}

#[test]
fn ranges_without_their_unknown_numbers_do_not_swell_the_answer() {
    let flood = "[0-49]".repeat(20_000);
    let mut filter = AnswerFilter::new();
    (1..50).for_each(|n| filter.allow_source(n));
    let text = filter.push(&flood) + &filter.finish();
    assert!(text.starts_with("[1, 2, 3, 4"));
    assert!(text.len() < flood.len() + 100_000);
}

#[test]
fn line_ends_become_line_feeds_and_nul_is_dropped() {
    assert_eq!(assert_cuts_do_not_matter("a\r\nb\rc\n\r\nd\0e\r"), "a\nb\nc\n\nde\n");
}

#[test]
fn a_mark_of_an_order_of_bytes_is_dropped_so_that_all_agree_on_where_a_fence_begins() {
    let fence = "```\n\na\n```\n<b>c</b>\n\u{FEFF}";
    for begin in
        ["\u{FEFF}", "\u{FEFF}\u{FEFF}", "[9]\u{FEFF}", "<b>\u{FEFF}", "[](https://evil.example/x)\u{FEFF}"]
    {
        let seen = assert_cuts_do_not_matter(&format!("{begin}{fence}"));
        assert_eq!(seen, "```\n\na\n```\nc\n\u{FEFF}", "{begin:?}");
    }
}

#[test]
fn foreign_links_become_their_text() {
    for (answer, cleaned) in [
        ("See [this](https://evil.example/x) now.", "See this now."),
        ("See [this](<https://evil.example/x y> 'title').", "See this."),
        ("([this](https://evil.example))", "(this)"),
        ("![A chart](https://evil.example/c.png?d=secret)", "A chart"),
        ("![A chart](https://listed.example/c.png?d=secret)", "A chart"),
        ("See https://evil.example/x(y)/z. Next", "See (link removed). Next"),
        ("(see https://evil.example).", "(see (link removed))."),
        ("at www.evil.example, or", "at (link removed), or"),
        ("<https://evil.example/x> y", "(link removed) y"),
        ("a <img src=\"https://evil.example/x\"> b", "a  b"),
        ("<a href='https://evil.example'>text</a>", "text"),
        ("[a]: https://evil.example/x\nnext", "\nnext"),
        ("[a]: https://listed.example/x\nnext", "[a]: https://listed.example/x\nnext"),
        ("![A](https://other.example/7.png)", "A"),
        ("[A](https://other.example/7.png)", "[A](https://other.example/7.png)"),
        ("[h](<i j> \"t\")", "[h](i%20j \"t\")"),
        ("`curl https://evil.example`", "`curl (link removed)`"),
        ("[https://evil.example](https://listed.example)", "[(link removed)](https://listed.example)"),
        ("[a](https://listed.example/?to=https://evil.example)", "a"),
        ("mailto:a@b.example?body=secret x", "(link removed) x"),
        ("https://sub.listed.example/", "(link removed)"),
        ("[[a](https://evil.example)](https://evil.example)", "a"),
    ] {
        assert_eq!(assert_cuts_do_not_matter(answer), cleaned, "{answer}");
    }
}

#[test]
fn tags_outside_of_code_go_or_are_made_harmless() {
    for (answer, cleaned) in [
        ("<script>alert(1)</script>", "alert(1)"),
        ("a<br>b <BR/>c", "a b  c"),
        ("<p align='left'>So <strong>it</strong> is.</p>", "So it is."),
        ("a Vec<T> of <T> and List<a>", "a Vec< T> of < T> and List< a>"),
        ("if a <b and c> d", "if a  d"),
        ("if a <n and c> d", "if a < n and c> d"),
        ("<T: Clone> is no address, <ab: c> may be", "<T: Clone> is no address, < ab: c> may be"),
        ("\\<T> and \\<div>, \\\\<T>", "\\<T> and \\< div>, \\\\< T>"),
        ("<!-- <b> --> <?php ?> <![CDATA[x]]> </>", "< !--  --> < ?php ?> < ! [CDATA[x]]> </>"),
        ("    <pre>\n", "    \n"),
        ("x `<T>", "x `< T>"),
        ("x `\n\n<T>`", "x `\n\n< T>`"),
        ("`` <T> `", "`` < T> `"),
        ("\\`<T>`", "\\`< T>`"),
        ("> ```\n> <T>\n<T>", "> ```\n> < T>\n< T>"),
        ("- ```\n  <T>\n<T>", "- ```\n  <T>\n< T>"),
        ("```\n<T>\n```\n<T>", "```\n<T>\n```\n< T>"),
        ("``` a`b\n<T>\n```\n", "``` a`b\n< T>\n```\n"),
        ("``\n<T>\n``\n", "``\n< T>\n``\n"),
        ("```\n<T>\n    ```\n<T>\n ```\n<T>", "```\n<T>\n    ```\n<T>\n ```\n< T>"),
        (
            "![x][r] ![r] ![r][]\n\n[r]: https://other.example/7.png",
            "! [x][r] ! [r] ! [r][]\n\n[r]: https://other.example/7.png",
        ),
    ] {
        assert_eq!(assert_cuts_do_not_matter(answer), cleaned, "{answer}");
    }
}

#[test]
fn images_show_only_what_a_person_has_named() {
    let digits = "![](https://evil.example/1.png)![](https://evil.example/7.png)";
    let mut filter = AnswerFilter::new();
    filter.allow_hosts_in("https://evil.example/1.png https://evil.example/7.png");
    filter.allow_tool_result("evil.example");
    assert_eq!(filter.push(digits) + &filter.finish(), "");
    for named in ["Show me evil.example!", "https://evil.example/"] {
        let mut filter = AnswerFilter::new();
        filter.allow_hosts_in("https://evil.example/1.png https://evil.example/7.png");
        filter.allow_user_text(named);
        assert_eq!(filter.push(digits) + &filter.finish(), digits);
    }
    let mut filter = AnswerFilter::new();
    filter.allow_hosts_in("https://evil.example/1.png");
    filter.allow_image_host("evil.example");
    assert_eq!(filter.push(digits) + &filter.finish(), "![](https://evil.example/1.png)");
}

#[test]
fn long_addresses_stream_on_or_go_to_their_end() {
    let path = "a/".repeat(5_000);
    for text in [
        format!("https://listed.example/{path} end"),
        format!("[x](https://listed.example/{path}) end"),
        format!("[x](/own/{path}) end"),
    ] {
        assert_eq!(passed(&text), text);
    }
    assert_eq!(passed(&format!("https://evil.example/{path}. End")), "(link removed). End");
    assert_eq!(passed(&format!("[x](https://evil.example/{path}) end")), "[x] ((link removed)) end");
    assert!(!passed(&format!("![x](https://listed.example/{path}) end")).contains("!["));
    assert_eq!(passed(&format!("https://{} end", "e".repeat(5_000))), "(link removed) end");
}

#[test]
fn what_is_said_later_may_be_linked_later() {
    let mut filter = AnswerFilter::new();
    assert_eq!(filter.push("https://new.example/x\n"), "(link removed)\n");
    filter.allow_user_text(r#"{"url":"https:\/\/new.example\/a.png","name":"bare.example.org"}"#);
    let text = "https://new.example/x ![a](https://new.example/a.png) https://bare.example.org/\n";
    assert_eq!(filter.push(text), text);
}

#[test]
fn a_host_in_another_script_is_known_by_its_encoded_name() {
    let mut filter = AnswerFilter::new();
    filter.allow_hosts_in("https://bücher.example/x");
    let text = "https://xn--bcher-kva.example/y https://BÜCHER.example/z\n";
    assert_eq!(filter.push(text), text);
}

#[test]
fn the_answer_is_the_same_however_it_is_cut() {
    const PARTS: [&str; 60] = [
        "[",
        "]",
        "(",
        ")",
        "<",
        ">",
        "!",
        "![",
        "](",
        "](//",
        "[1]",
        "[9]",
        "【9】",
        "1",
        ",",
        "-",
        ":",
        "//",
        "/",
        "\\",
        "`",
        "```",
        "\n",
        "\n\n",
        " ",
        "  ",
        "\"",
        "'",
        "=",
        "a",
        "img ",
        "src=",
        "href=",
        "https:",
        "https://",
        "http",
        "s",
        "www.",
        "evil.example",
        "listed.example",
        "listed.example/logo.png",
        "@",
        "&",
        "&#58;",
        "&sol;",
        ";",
        "javascript:",
        "data:text/html,",
        "mailto:",
        "?",
        "#",
        "é",
        "中",
        "\u{200B}",
        "\r",
        "\0",
        "“",
        "”",
        "~~~",
        ".",
    ];
    let mut random = Seeded(7);
    for _ in 0..1_500 {
        let mut text = String::new();
        for _ in 0..random.below(40) {
            text.push_str(PARTS[random.below(PARTS.len())]);
        }
        let whole = passed(&text);
        attacks::assert_harmless(&text, &whole);
        for _ in 0..3 {
            let mut pieces = Vec::new();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, after) =
                    rest.split_at(rest.ceil_char_boundary(1 + random.below(8)).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            assert_eq!(in_pieces(pieces), whole, "{text:?}");
        }
    }
}

#[test]
fn floods_are_filtered_in_one_go() {
    const LENGTH: usize = 1 << 14;
    for part in [
        "[",
        "![",
        "](",
        "[a](",
        "<a ",
        "<a href=\"",
        "https://",
        "https:",
        "//",
        "/",
        "\\",
        "&",
        "&#",
        "[1",
        "[9](",
        "`",
        "![`",
        "www.",
        " ",
        "[a]:",
        "(",
        "<a b='<a c=\"",
        "data:",
        "[1-50]",
        "https://listed.example/",
        "[a](//b.example)",
    ] {
        let text = part.repeat(LENGTH / part.len());
        let whole = in_pieces(text.as_bytes().chunks(512).map(|piece| std::str::from_utf8(piece).unwrap()));
        assert!(whole.len() <= 20 * LENGTH, "{part}");
    }
}

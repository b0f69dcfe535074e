//! Every format, with what is odd about it in the wild.

use super::*;

#[test]
fn the_format_is_told_from_the_beginning() {
    use CaptionFormat::{Json3, Sbv, Srv, SubRip, Ttml, WebVtt};
    for (head, expected) in [
        ("WEBVTT", Some(WebVtt)),
        ("\u{feff}WEBVTT - A title\n\n", Some(WebVtt)),
        ("\n\nWEBVTT\n", Some(WebVtt)),
        ("WEBVTTS are files", None),
        ("1\n00:00:01,000 --> 00:00:02,000\nHi", Some(SubRip)),
        ("00:01.000 --> 00:02.000\nHi", Some(SubRip)),
        ("Subtitles by Ann\n\n1\n00:00:01,000 --> 00:00:02,000\nHi", Some(SubRip)),
        ("0:00:01.000,0:00:02.000\nHi", Some(Sbv)),
        (
            "<?xml version=\"1.0\"?>\n<!-- made by hand -->\n<tt xmlns=\"http://www.w3.org/ns/ttml\">",
            Some(Ttml),
        ),
        ("<!DOCTYPE tt><tt:tt xmlns:tt=\"http://www.w3.org/ns/ttml\">", Some(Ttml)),
        ("<transcript><text start=\"0\" dur=\"1\">Hi</text></transcript>", Some(Srv)),
        ("<transcript></transcript>", Some(Srv)),
        ("<transcript><grades/></transcript>", None),
        ("<timedtext format=\"3\"><body>", Some(Srv)),
        ("{\"wireMagic\":\"pb3\",\"events\":[]}", Some(Json3)),
        ("{\n \"events\": [{\"tStartMs\": 0}]}", Some(Json3)),
        ("{\"events\":[{\"name\":\"party\"}]}", None),
        ("<html><body>", None),
        ("<!-- never closed", None),
        ("At 10:30 -> 11:00 we eat.", None),
        ("10:30 --> 11:00 lunch\n", None),
        ("# Guide\n\n```\n1\n00:00:01,000 --> 00:00:02,000\n```\n", None),
        ("Just a text.\nWith lines.", None),
        ("1,2\n3,4\n", None),
        ("", None),
        (" \n ", None),
    ] {
        assert_eq!(detect(head), expected, "{head:?}");
    }
    let far = "A line that says something.\n".repeat(30) + "\n00:00:01,000 --> 00:00:02,000\nHi";
    assert_eq!(detect(&far), None, "a text that quotes captions far below is a text");
}

#[test]
fn webvtt_is_read_with_its_oddities() {
    let table: &[(&str, &str, &[&str])] = &[
        (
            "plain",
            "WEBVTT\n\n00:01.000 --> 00:02.500\nHello\n\n00:03.000 --> 00:04.000\nthere",
            &["1-2.5 Hello", "3-4 there"],
        ),
        (
            "mark of byte order and CRLF",
            "\u{feff}WEBVTT\r\n\r\n00:01.000 --> 00:02.000\r\nHello\r\nyou\r\n",
            &["1-2 Hello|you"],
        ),
        (
            "metadata",
            "WEBVTT\nKind: captions\nLanguage: en\n\n00:01.000 --> 00:02.000\nHello",
            &["1-2 Hello"],
        ),
        ("no blank line after the header", "WEBVTT\n00:01.000 --> 00:02.000\nHello", &["1-2 Hello"]),
        (
            "comments, styles and regions",
            "WEBVTT\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:fred\n\nNOTE one\ntwo\n\nNOTE\n\n00:01.000 --> 00:02.000\nNOTE me\n\nNOTE\nlast\n",
            &["1-2 NOTE me"],
        ),
        (
            "names of cues",
            "WEBVTT\n\nintro - 1\n00:01.000 --> 00:02.000\nHello\n\n2\n00:03.000 --> 00:04.000\nthere\n",
            &["1-2 Hello", "3-4 there"],
        ),
        ("settings", "WEBVTT\n\n00:01.000 --> 00:02.000 align:start position:0%\nHello", &["1-2 Hello"]),
        (
            "commas and hours beyond a hundred",
            "WEBVTT\n\n123:00:01,5 --> 123:00:02,25\nHello",
            &["442801.5-442802.25 Hello"],
        ),
        (
            "no blank lines",
            "WEBVTT\n00:01.000 --> 00:02.000\nA\n00:02.000 --> 00:03.000\nB",
            &["1-2 A", "2-3 B"],
        ),
        (
            "blank lines in a cue",
            "WEBVTT\n\n00:01.000 --> 00:02.000\nA\n\nB\nC\n\n00:02.000 --> 00:03.000\nD",
            &["1-2 A|B|C", "2-3 D"],
        ),
        (
            "cues without text",
            "WEBVTT\n\n00:01.000 --> 00:02.000\n\n00:02.000 --> 00:03.000\n<i> </i>\n\n00:04.000 --> 00:05.000\nA",
            &["4-5 A"],
        ),
        (
            "out of order",
            "WEBVTT\n\n00:05.000 --> 00:06.000\nB\n\n00:01.000 --> 00:02.000\nA",
            &["1-2 A", "5-6 B"],
        ),
        ("negative", "WEBVTT\n\n-00:00:01.000 --> 00:02.000\nA", &["0-2 A"]),
        (
            "reversed",
            "WEBVTT\n\n00:05.000 --> 00:02.000\nA\n\n00:08.000 --> 00:09.000\nB",
            &["5-8 A", "8-9 B"],
        ),
        (
            "voices",
            "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Hi <v Tom>Ho",
            &["1-2 {Ann} Hi", "1-2 {Tom} Ho"],
        ),
        (
            "an arrow that is text",
            "WEBVTT\n\n00:01.000 --> 00:02.000\nA --> B\n1 --> 2",
            &["1-2 A --> B|1 --> 2"],
        ),
        ("cut off", "WEBVTT\n\n00:01.000 --> 00:02.000\nA\n\n00:05.000 --> 00:", &["1-2 A"]),
        ("text beside the times", "WEBVTT\n\n00:01.000 --> 00:02.000 line:1 Hello\nyou", &["1-2 Hello|you"]),
        ("nothing", "WEBVTT\n", &[]),
    ];
    for (name, text, expected) in table {
        assert_eq!(cues(text), *expected, "{name}");
    }
}

#[test]
fn subrip_is_read_with_its_oddities() {
    let table: &[(&str, &str, &[&str])] = &[
        (
            "plain",
            "1\n00:00:01,000 --> 00:00:02,500\nHello\n\n2\n00:00:03,000 --> 00:00:04,000\nthere\n\n",
            &["1-2.5 Hello", "3-4 there"],
        ),
        ("CRLF", "1\r\n00:00:01,000 --> 00:00:02,000\r\nHello\r\n", &["1-2 Hello"]),
        (
            "no numbers",
            "00:00:01,000 --> 00:00:02,000\nHello\n\n00:00:03,000 --> 00:00:04,000\n42\n00:00:05,000 --> 00:00:06,000\nA",
            &["1-2 Hello", "3-4 42", "5-6 A"],
        ),
        (
            "no blank lines",
            "1\n00:00:01,000 --> 00:00:02,000\nHello\n2\n00:00:03,000 --> 00:00:04,000\n42\n3\n00:00:05,000 --> 00:00:06,000\nA",
            &["1-2 Hello", "3-4 42", "5-6 A"],
        ),
        (
            "tags",
            "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}<font color=red>Hello</font>\\Nyou",
            &["1-2 Hello|you"],
        ),
        ("coordinates", "1\n00:00:01,000 --> 00:00:02,000 X1:1 X2:2 Y1:3 Y2:4\nHello", &["1-2 Hello"]),
        ("a number cut off", "1\n00:00:01,000 --> 00:00:02,000\nHello\n\n2", &["1-2 Hello"]),
        (
            "times cut off",
            "1\n00:00:01,000 --> 00:00:02,000\nHello\n\n2\n00:00:05,000 --> 00:0",
            &["1-2 Hello"],
        ),
    ];
    for (name, text, expected) in table {
        assert_eq!(cues(text), *expected, "{name}");
    }
}

#[test]
fn times_that_cannot_be_read_come_from_the_neighbours_and_are_told() {
    let text = "1\n00:00:01,000 --> 00:00:02,000\nA\n\n2\n00:00:::3 --> 00:00:04,000\nB\n\n3\n00:00:05,000 -->\nC\n\n4\n00:00:08,000 --> 00:00:06,000\nD\n";
    assert_eq!(cues(text), ["1-2 A", "2-4 B", "5-8 C", "8-8 D"]);
    assert_eq!(codes(&read(text)), [("unreadable_cue_time", 3)]);
}

#[test]
fn text_before_the_first_cue_is_left_out_and_told() {
    let text = "Subtitles by Ann\nfor you\n\n1\n00:00:01,000 --> 00:00:02,000\nHello\n";
    assert_eq!(cues(text), ["1-2 Hello"]);
    assert_eq!(codes(&read(text)), [("text_outside_cues", 2)]);
    assert_eq!(codes(&read("WEBVTT\nKind: captions\n\nintro\n00:01.000 --> 00:02.000\nHello")), []);
}

#[test]
fn sbv_is_read() {
    let text = "0:00:01.000,0:00:02.500\n>> ANN: Hi, I'm Ann\nLee\n\n0:00:03.000,0:00:04.000\n1,2[br]three\n";
    assert_eq!(cues(text), ["1-2.5 >> ANN: Hi, I'm Ann|Lee", "3-4 1,2|three"]);
    assert_eq!(cues("0:00:01.000,0:00:02.000\nA\n0:00:02.000,0:0"), ["1-2 A"]);
}

#[test]
fn ttml_is_read_with_prefixes_spans_and_every_kind_of_time() {
    let tt = |attributes: &str, body: &str| {
        format!(
            "<?xml version=\"1.0\"?><tt xmlns=\"http://www.w3.org/ns/ttml\" xmlns:ttp=\"http://www.w3.org/ns/ttml#parameter\" {attributes}><head><styling><style id=\"s\"/></styling></head><body><div>{body}</div></body></tt>"
        )
    };
    let table: &[(&str, &str, &[&str])] = &[
        ("", "<p begin=\"00:00:01.000\" end=\"00:00:02.500\">Hello<br/>you</p>", &["1-2.5 Hello|you"]),
        ("", "<p begin=\"1s\" dur=\"1500ms\">A</p><p begin=\"0.05m\" end=\"4\">B</p>", &["1-2.5 A", "3-4 B"]),
        ("ttp:tickRate=\"10000000\"", "<p begin=\"15000000t\" end=\"25000000t\">A</p>", &["1.5-2.5 A"]),
        (
            "ttp:frameRate=\"25\"",
            "<p begin=\"00:00:01:05\" end=\"00:00:02:00\">A</p><p begin=\"75f\" end=\"100f\">B</p>",
            &["1.2-2 A", "3-4 B"],
        ),
        (
            "ttp:frameRate=\"30\" ttp:frameRateMultiplier=\"1000 1001\"",
            "<p begin=\"30f\" end=\"60f\">A</p>",
            &["1.001-2.002 A"],
        ),
        (
            "",
            "<p begin=\"1s\" end=\"2s\">  one\n   two <span tts:color=\"red\">th<span>re</span>e</span>\n</p>",
            &["1-2 one two three"],
        ),
        (
            "",
            "<p begin=\"1s\" end=\"9s\"><span begin=\"0s\" end=\"1s\">A</span> <span begin=\"1s\" end=\"2s\">B</span></p>",
            &["1-2 A", "2-3 B"],
        ),
        (
            "",
            "<p begin=\"10s\" end=\"19s\"><span begin=\"11s\" end=\"12s\">A</span><span begin=\"12s\" end=\"13s\">B</span></p>",
            &["11-12 A", "12-13 B"],
        ),
        (
            "",
            "<p begin=\"1s\" end=\"2s\">Fish &amp; chips &eacute;&#x27;<![CDATA[<3]]></p>",
            &["1-2 Fish & chips é'<3"],
        ),
        ("", "<p begin=\"1s\" end=\"2s\"><metadata><title>not me</title></metadata>A</p>", &["1-2 A"]),
        (
            "",
            "<p begin=\"1s\" end=\"2s\"></p><p begin=\"3s\" end=\"4s\"/><p begin=\"5s\" end=\"6s\">A</p>",
            &["5-6 A"],
        ),
        ("", "<p begin=\"1s\" end=\"2s\">A</p><p begin=\"3s\" end=\"4s\">cut", &["1-2 A", "3-4 cut"]),
    ];
    for (attributes, body, expected) in table {
        assert_eq!(cues(&tt(attributes, body)), *expected, "{body}");
    }
    let seq = "<tt><body begin=\"10s\"><div timeContainer=\"seq\"><p dur=\"2s\">A</p><p begin=\"1s\" dur=\"2s\">B</p></div></body></tt>";
    assert_eq!(cues(seq), ["10-12 A", "13-15 B"]);
}

#[test]
fn ttml_with_prefixed_elements_and_agents_names_who_speaks() {
    let text = "<tt:tt xmlns:tt=\"a\" xmlns:ttm=\"b\"><tt:head><tt:metadata/><ttm:agent xml:id=\"a1\" type=\"person\"><ttm:name type=\"full\">Ann &amp; Co</ttm:name></ttm:agent></tt:head>\
        <tt:body><tt:div><tt:p begin=\"1s\" end=\"2s\" ttm:agent=\"a1\">Hi<tt:br/>you</tt:p><tt:p begin=\"2s\" end=\"3s\" ttm:agent=\"zz\">Ho</tt:p></tt:div></tt:body></tt:tt>";
    assert_eq!(cues(text), ["1-2 {Ann & Co} Hi|you", "2-3 Ho"]);
}

#[test]
fn damaged_xml_and_json_are_read_as_far_as_they_go() {
    for text in [
        "<tt><body><div><p begin=\"1s\" end=\"2s\">A</p></span></div><p begin=\"3s\" ",
        "<transcript><text start=\"1\" dur=\"1\">A</text><text start=\"3",
        "{\"events\":[{\"tStartMs\":1000,\"dDurationMs\":1000,\"segs\":[{\"utf8\":\"A\"}]},{\"tStartMs\":20",
    ] {
        assert_eq!(cues(text), ["1-2 A"], "{text}");
        assert_eq!(codes(&read(text)), [("captions_cut_off", 1)], "{text}");
    }
}

#[test]
fn nesting_without_end_is_given_up() {
    let text = format!("<tt><body><p begin=\"1s\" end=\"2s\">A</p>{}", "<div>".repeat(200_000));
    assert_eq!(cues(&text), ["1-2 A"]);
    let text = format!("{{\"wireMagic\":\"pb3\",\"x\":{}", "[".repeat(200_000));
    assert_eq!(cues(&text), [] as [&str; 0]);
}

#[test]
fn timed_text_of_video_sites_is_read() {
    let first = "<?xml version=\"1.0\" encoding=\"utf-8\" ?><transcript><text start=\"0.16\" dur=\"3.44\">it&amp;#39;s &amp;quot;A&amp;quot;\nand</text><text start=\"4\">B</text><text start=\"6\" dur=\"1\"></text></transcript>";
    assert_eq!(cues(first), ["0.16-3.6 it's \"A\"|and", "4-4 B"]);
    let third = "<timedtext format=\"3\"><head><pen id=\"1\"/></head><body><w t=\"0\" id=\"1\"/><p t=\"160\" d=\"3440\" w=\"1\"><s ac=\"0\">hello</s><s t=\"300\"> you</s></p><p t=\"2000\" d=\"10\" a=\"1\">\n</p><p t=\"4000\" d=\"1000\">B &lt;3</p></body></timedtext>";
    assert_eq!(cues(third), ["0.16-3.6 hello you", "4-5 B <3"]);
    let json = r#"{"wireMagic":"pb3","pens":[{}],"events":[{"tStartMs":0,"dDurationMs":9000,"id":1},
        {"tStartMs":160,"dDurationMs":3440,"wWinId":1,"segs":[{"utf8":"hello","acAsrConf":0},{"utf8":" you","tOffsetMs":300}]},
        {"tStartMs":2000,"dDurationMs":10,"aAppend":1,"segs":[{"utf8":"\n"}]},
        {"tStartMs":"4000","segs":[{"utf8":"B & <i>"}, {}]}]}"#;
    assert_eq!(cues(json), ["0.16-3.6 hello you", "4-4 B & <i>"]);
}

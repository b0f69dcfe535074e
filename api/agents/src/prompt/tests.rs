use std::collections::BTreeMap;

use super::{
    LONGEST_NAME, PromptTemplate, TemplateError, TemplateFormatError,
    TemplateProblem::{
        self, Attribute, Conversion, Empty, FormatSpec, Index, NameTooLong, NotAName, Positional,
        SingleClose, SingleOpen,
    },
    TemplateSegment, VariableMismatch, is_variable_name,
};

fn parsed(text: &str) -> PromptTemplate {
    PromptTemplate::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn refused(text: &str) -> (usize, TemplateProblem) {
    let TemplateError { position, problem } = PromptTemplate::parse(text).expect_err(text);
    (position, problem)
}

fn filled(text: &str, values: &[(&str, &str)]) -> Result<String, TemplateFormatError> {
    let values: BTreeMap<_, _> = values.iter().copied().collect();
    parsed(text).format(|name| values.get(name), usize::MAX)
}

fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// The text that a template was read from.
fn source(template: &PromptTemplate) -> String {
    let source = |piece: &TemplateSegment| match piece {
        TemplateSegment::Literal(text) => escaped(text),
        TemplateSegment::Variable(name) => format!("{{{name}}}"),
    };
    template.pieces.iter().map(source).collect()
}

/// Every text of at most `longest` of these characters.
fn every_text(alphabet: &[char], longest: u32) -> impl Iterator<Item = String> {
    let count = alphabet.len();
    (0..=longest).flat_map(move |length| {
        (0..count.pow(length)).map(move |mut number| {
            let mut text = String::new();
            for _ in 0..length {
                text.push(alphabet[number % count]);
                number /= count;
            }
            text
        })
    })
}

#[test]
fn values_are_put_where_their_names_stand() {
    for (text, expected) in [
        ("", ""),
        ("no variable", "no variable"),
        ("{a}", "1"),
        ("{a}{b}{a}", "121"),
        ("x{a}y{b}z", "x1y2z"),
        ("{{a}}", "{a}"),
        ("{{{a}}}", "{1}"),
        ("{{{{a}}}}", "{{a}}"),
        ("{a}}}", "1}"),
        ("{{}}", "{}"),
        ("{{\"json\": \"{a}\"}}", "{\"json\": \"1\"}"),
        ("Ä {größe}\n🙂 {問い}", "Ä 3\n🙂 4"),
        ("{_}{__x9}", "56"),
    ] {
        let values = [
            ("a", "1"),
            ("b", "2"),
            ("größe", "3"),
            ("問い", "4"),
            ("_", "5"),
            ("__x9", "6"),
            ("unused", "7"),
        ];
        assert_eq!(filled(text, &values).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn a_value_is_taken_as_it_is() {
    let values = [("a", "{b} {{ }} {0} {"), ("b", "never")];
    assert_eq!(filled("<{a}>", &values).as_deref(), Ok("<{b} {{ }} {0} {>"));
}

#[test]
fn a_missing_value_is_named() {
    assert_eq!(filled("{a} {b} {c}", &[("a", "1")]), Err(TemplateFormatError::Missing("b".to_owned())));
    assert_eq!(filled("{a}", &[("A", "1"), ("a ", "1")]), Err(TemplateFormatError::Missing("a".to_owned())));
}

#[test]
fn a_result_is_never_longer_than_its_caller_wants() {
    let template = parsed(&format!("é{}", "{a}".repeat(30_000)));
    let long = "x".repeat(2 << 20);
    assert_eq!(template.format(|_| Some(&long), 8 << 20), Err(TemplateFormatError::TooLong(8 << 20)));
    let template = parsed("é{a}");
    assert_eq!(template.format(|_| Some("12"), 4).as_deref(), Ok("é12"));
    assert_eq!(template.format(|_| Some("12"), 3), Err(TemplateFormatError::TooLong(3)));
}

#[test]
fn what_is_no_template_is_refused_by_what_it_is_and_where() {
    for (text, position, problem) in [
        ("{", 1, SingleOpen),
        ("{a", 1, SingleOpen),
        ("äö {a", 4, SingleOpen),
        ("{a{b}}", 1, SingleOpen),
        ("{\"a\": {\"b\": 1}}", 1, SingleOpen),
        ("{{{", 3, SingleOpen),
        ("}", 1, SingleClose),
        ("🙂{a}}", 5, SingleClose),
        ("}}}", 3, SingleClose),
        ("{}", 1, Empty),
        ("a {} b", 3, Empty),
        ("{!r}", 1, Empty),
        ("{:>3}", 1, Empty),
        ("{.a}", 1, Empty),
        ("{0}", 1, Positional),
        ("{12}", 1, Positional),
        ("{0.a}", 1, Positional),
        ("{a.b}", 3, Attribute),
        ("{größe.b}", 7, Attribute),
        ("{a.}", 3, Attribute),
        ("{a[0]}", 3, Index),
        ("{a[}]}", 3, Index),
        ("{a!r}", 3, Conversion),
        ("{a:>3}", 3, FormatSpec),
        ("{a:}", 3, FormatSpec),
        ("{a b}", 1, NotAName),
        ("{ a }", 1, NotAName),
        ("{a\n}", 1, NotAName),
        ("{1a}", 1, NotAName),
        ("{a-b}", 1, NotAName),
        ("{\"a\": 1}", 1, NotAName),
        ("x {-1}", 3, NotAName),
        ("{🙂}", 1, NotAName),
        ("{\u{301}a}", 1, NotAName),
    ] {
        assert_eq!(refused(text), (position, problem), "{text}");
    }
    // The first of several.
    assert_eq!(refused("{a} } {0}"), (5, SingleClose));
}

#[test]
fn a_refusal_says_where_and_what_would_be_right() {
    for (text, says) in [
        ("a }", "character 3: this `}` closes nothing; write `}}` for a brace in the text"),
        ("{", "character 1: this `{` is not closed; write `{{` for a brace in the text"),
        ("{}", "character 1: `{}` names no variable; write `{name}`, or `{{}}` for braces in the text"),
        ("{0}", "character 1: variables have names, not numbers; write `{name}`"),
    ] {
        assert_eq!(PromptTemplate::parse(text).unwrap_err().to_string(), says);
    }
}

#[test]
fn names_are_letters_digits_and_underscores_of_any_script() {
    let longest = "x".repeat(LONGEST_NAME);
    for name in [
        "input",
        "chat_history",
        "tools",
        "tool_names",
        "agent_scratchpad",
        "class",
        "_",
        "a1",
        "Größe",
        "cafe\u{301}",
        "вопрос",
        "प्रश्न",
        "質問",
        "سؤال",
        &longest,
    ] {
        assert!(is_variable_name(name), "{name}");
        assert_eq!(parsed(&format!("{{{name}}}")).variables(), [name]);
    }
    let too_long = "é".repeat(LONGEST_NAME + 1);
    for name in
        ["", " ", "a ", "1", "1a", "a.b", "a[0]", "a!r", "a:b", "a-b", "a{", "}", "a\0", "\u{301}", &too_long]
    {
        assert!(!is_variable_name(name), "{name}");
    }
    assert_eq!(refused(&format!("ab{{{too_long}}}")), (3, NameTooLong));
}

#[test]
fn the_variables_are_each_once_in_the_order_of_their_use() {
    assert_eq!(parsed("{b}{a}{{c}}{b} {a}{d}").variables(), ["b", "a", "d"]);
    assert!(parsed("{{a}}").variables().is_empty());
}

#[test]
fn a_template_agrees_with_exactly_its_own_variables() {
    let template = parsed("{b} {a} {b}");
    assert_eq!(template.disagreement(&["a", "b"]), None);
    assert_eq!(template.disagreement(&["b", "a"]), None);
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (declared, undeclared, unused) in [
        (&[][..], &["b", "a"][..], &[][..]),
        (&["a"], &["b"], &[]),
        (&["z", "a", "b", "c"], &[], &["z", "c"]),
        (&["A", "b"], &["a"], &["A"]),
    ] {
        let expected = VariableMismatch { undeclared: owned(undeclared), unused: owned(unused) };
        assert_eq!(template.disagreement(declared), Some(expected), "{declared:?}");
    }
    assert_eq!(parsed("text").disagreement::<&str>(&[]), None);
}

#[test]
fn every_text_is_a_template_or_refused_within_itself() {
    for text in every_text(&['{', '}', 'a', '0', '.', '[', '!', ':', ' ', 'é'], 5) {
        match PromptTemplate::parse(&text) {
            Ok(template) => {
                assert_eq!(source(&template), text, "nothing is lost or added");
                assert_eq!(template.disagreement(&template.variables()), None, "{text}");
                let filled = template.format(|name| Some(format!("{{{name}}}")), usize::MAX);
                let unescaped = text.replace("{{", "{").replace("}}", "}");
                // A variable beside doubled braces is the one thing that a plain replacement does not tell apart.
                if !text.contains("{{{") && !text.contains("}}}") {
                    assert_eq!(filled, Ok(unescaped));
                }
            }
            Err(error) => {
                let place = text.chars().nth(error.position - 1);
                let expected: &[char] = match error.problem {
                    SingleOpen | Empty | Positional | NotAName | NameTooLong => &['{'],
                    SingleClose => &['}'],
                    Attribute => &['.'],
                    Index => &['['],
                    Conversion => &['!'],
                    FormatSpec => &[':'],
                };
                assert!(place.is_some_and(|place| expected.contains(&place)), "{text}: {error}");
            }
        }
    }
}

#[test]
fn every_text_comes_back_when_its_braces_are_doubled() {
    for text in every_text(&['{', '}', 'a', '0', '.', '\n', '🙂'], 5) {
        let template = parsed(&escaped(&text));
        assert!(template.variables().is_empty(), "{text}");
        assert_eq!(template.format(|_| None::<&str>, usize::MAX).as_deref(), Ok(text.as_str()));
    }
}

#[test]
fn long_templates_are_read_as_short_ones_are() {
    let text = "{".repeat(100_001);
    assert_eq!(refused(&text), (100_001, SingleOpen));
    assert_eq!(parsed(&"{a}".repeat(33_333)).variables(), ["a"]);
    assert_eq!(refused(&"{a".repeat(50_000)), (1, SingleOpen));
}

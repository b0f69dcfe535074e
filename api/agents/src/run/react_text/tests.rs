//! Texts as models write them, and texts as nobody should.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::Value;

use super::{ReactDirective, ReactFormatError, STOP, cut_at_stop, parse, prose, without_thinking};

fn call(text: &str) -> (String, String) {
    match parse(text).map(|turn| turn.directive) {
        Ok(ReactDirective::Call { tool, input }) => (tool, input),
        other => panic!("no call in {text:?}: {other:?}"),
    }
}

fn answer(text: &str) -> String {
    match parse(text).map(|turn| turn.directive) {
        Ok(ReactDirective::Finish(answer)) => answer,
        other => panic!("no answer in {text:?}: {other:?}"),
    }
}

fn thought(text: &str) -> String {
    parse(text).unwrap().thought
}

#[track_caller]
fn calls(text: &str, tool: &str, input: &str) {
    assert_eq!(call(text), (tool.to_owned(), input.to_owned()), "{text:?}");
}

#[track_caller]
fn answers(text: &str, expected: &str) {
    assert_eq!(answer(text), expected, "{text:?}");
}

#[track_caller]
fn fails(text: &str, expected: ReactFormatError) {
    assert_eq!(parse(text), Err(expected), "{text:?}");
}

#[test]
fn every_agreed_case_is_read_as_agreed() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    assert!(cases.len() >= 28);
    for case in cases {
        let (id, text, expected) = (&case["id"], case["text"].as_str().unwrap(), &case["expected"]);
        let read = match parse(text).map(|turn| turn.directive) {
            Ok(ReactDirective::Call { tool, input }) => serde_json::json!({ "tool": tool, "input": input }),
            Ok(ReactDirective::Finish(answer)) => serde_json::json!({ "finish": answer }),
            Err(error) => serde_json::json!({ "error": error.code() }),
        };
        assert_eq!(read, *expected, "{id}");
    }
}

#[test]
fn labels_count_in_any_case_and_decoration() {
    for text in [
        "ACTION: Search\nACTION INPUT: cats",
        "action: Search\naction input: cats",
        "\t action :Search\n \taction input :cats",
        "Action 3: Search\nAction 3 Input 3: cats",
        "Action #3: Search\nAction Input 3: cats",
        "## Action: Search\n## Action Input: cats",
        "### Action\nSearch\n### Action Input\ncats",
        "**Action**: Search\n**Action Input**: cats",
        "**Action**\nSearch\n**Action Input**\ncats",
        "**Action: Search**\n**Action Input:** cats",
        "## **Action:** Search\n_Action Input:_ cats",
        "Action: **Search**\nAction Input: cats",
        "Action：Search\nAction Input：cats",
        "Action_Input: none\nAction: Search\nAction_Input: cats",
        "Action: \"[`Search`]\"\nActionInput: cats",
        "Action: ```Search```\nAction Input: cats",
        "Action:\n```\nSearch\n```\nAction Input: cats",
        "Action: Search\r\nAction Input: cats\r\nObservation: x\r\n",
        "Action: Search\nAction Input: cats\n**Observation:** x",
        "Action: Search\nAction Input: cats\n## Observation\nx",
        "Action: Search\nAction Input: cats\nThought: and then",
        "Action: Search\nAction Input: cats\nFinal Answer: dogs",
    ] {
        calls(text, "Search", "cats");
    }
}

#[test]
fn action_labels_do_not_count_inside_lines_fences_or_as_part_of_words() {
    for text in [
        "Thought: Action: Search Action Input: cats",
        "I would take Action: Search\nand Action Input: cats",
        "```\nAction: Search\nAction Input: cats\n```",
        "~~~text\nAction: Search\n```\nAction Input: cats\n~~~",
        "Actions: Search\nAction Inputs: cats",
        "`Action: Search`\n`Action Input: cats`",
        "Reaction: Search\nAction Input: cats",
        "",
        " \n\n ",
        "Thought:",
        "Action:\nAction Input: cats",
        "Action: `` ` ``\nAction Input: cats",
    ] {
        fails(text, ReactFormatError::MissingAction);
    }
}

#[test]
fn a_fence_that_is_never_closed_hides_nothing() {
    calls("```\nAction: Search\nAction Input: cats", "Search", "cats");
    calls("Action: Search\nAction Input: ```\ncats\nObservation: none", "Search", "```\ncats");
}

#[test]
fn an_answer_counts_inside_a_line_of_thought() {
    answers("Thought: I know it now. Final Answer: 42", "42");
    answers("Thought: I know it now. **Final Answer:** 42", "42");
    answers("**Thought:** I know it now. **Final Answer: 42**", "42");
    answers("**Final Answer: **forty** two", "**forty** two");
    answers("**Final Answer: **42**", "**42**");
    answers("I know it now. Final Answer: 42\nReally.", "42\nReally.");
    answers(
        "Thought: see Final Answer: ```\nAction: a\nAction Input: b\n```",
        "```\nAction: a\nAction Input: b\n```",
    );
    assert_eq!(thought("Thought: I know it now. Final Answer: 42"), "I know it now.");
}

#[test]
fn speaking_of_the_answer_in_a_thought_is_no_answer() {
    calls("Thought: for the final answer: more facts.\nAction: Search\nAction Input: cats", "Search", "cats");
    calls(
        "Thought: later I write `Final Answer:` first.\nAction: Search\nAction Input: cats",
        "Search",
        "cats",
    );
    fails("First line.\nA second one with Final Answer: 42", ReactFormatError::MissingAction);
}

#[test]
fn the_first_directive_wins_and_a_later_answer_replaces_an_earlier_one() {
    answers("Final Answer: a\nAction: Search\nAction Input: cats", "a");
    answers("Final Answer: a\nThought: or not?\nAction: Search\nAction Input: cats", "a");
    answers("Final Answer: a\nb\n\nAction:\n```json\n{\"action\": \"s\", \"action_input\": 1}\n```", "a\nb");
    answers("Final Answer: a\nFinal Answer: b\nFinal Answer: c", "c");
    answers("Final Answer: a\nThought: better: Final Answer: b", "b");
    answers("Final Answer: a\nFinal Answer:\n", "a");
    answers("Final Answer:\nFinal Answer: b", "b");
    answers("Final Answer: a\nAction: none\nFinal Answer: b", "b");
}

#[test]
fn an_action_without_input_does_not_end_or_stop_an_answer() {
    answers("Action: None needed\nFinal Answer: 42", "42");
    answers("Final Answer: Steps:\nAction: one\nAction: two", "Steps:\nAction: one\nAction: two");
    calls("Action: Search\nThought: oh, the input\nAction: Search\nAction Input: cats", "Search", "cats");
}

#[test]
fn an_invented_observation_ends_the_text() {
    answers("Final Answer: 42\nObservation: well done", "42");
    answers("Final Answer: 42\n  observation 2: well done\nFinal Answer: 43", "42");
    answers("Final Answer: the\n## Observation\nof a bird", "the\n## Observation\nof a bird");
    fails("Observation: it is 42\nFinal Answer: 42", ReactFormatError::MissingAction);
    fails("Action: Search\nObservation: 42\nAction Input: cats", ReactFormatError::MissingActionInput);
}

#[test]
fn thinking_is_never_read() {
    answers("<think>\nFinal Answer: no\n</think>\n\nFinal Answer: ok", "ok");
    answers("<THINK>a</THINK><thinking>Final Answer: b</thinking>Final Answer: ok", "ok");
    answers("Final Answer: ok\n<think>was it?", "ok");
    answers("Final Answer: ok</think>", "ok");
    answers("Final Answer: so\nI guess\n</think>\nFinal Answer: ok", "ok");
    answers("Final Answer: the `<think>` tag, and `</think>`", "the `<think>` tag, and `</think>`");
    answers("Final Answer:\n```html\n<think>\n```\nis it", "```html\n<think>\n```\nis it");
    answers("<think>```</think>\nFinal Answer: ok\n```", "ok\n```");
    answers("<think>a</think>Final Answer: close it with </think> then", "close it with </think> then");
    fails("<think>Final Answer: no", ReactFormatError::MissingAction);
}

#[test]
fn objects_are_read_fenced_bare_and_after_an_action() {
    for text in [
        "{\"action\": \"Search\", \"action_input\": \"cats\"}",
        "Thought: look\n{\"action\": \"Search\", \"action_input\": \"cats\"} and so on",
        "Action: {\"action\": \"Search\", \"action_input\": \"cats\"}",
        "Action: ```{\"action\": \"Search\", \"action_input\": \"cats\"}```",
        "Action: ```json {\"action\": \"Search\", \"action_input\": \"cats\"}\n```",
        "Action: ```json\n{\n  \"action\": \"`Search`\",\n  \"action_input\": \" cats \"\n}\n```\nObservation: none",
        "{\"thought\": \"hm\"}\n{\"action\": \"Search\", \"action_input\": \"cats\"}",
        "Action: use\nit so:\n{\"action\": \"Search\", \"action_input\": \"cats\"}",
        "{\"action\": \"Search\", \"action_input\": \"cats\"}\nFinal Answer: dogs",
    ] {
        calls(text, "Search", "cats");
    }
    calls("{\"action\": \"now\", \"action_input\": null}", "now", "");
    calls("{\"action\": \"now\", \"action_input\": {}}", "now", "{}");
    calls("{\"action\": \"run\", \"action_input\": \"a\n\tb \\\"c\\\"\n\"}", "run", "a\n\tb \"c\"");
    answers("Action: {\"action\": \"final answer\", \"action_input\": \"42\"}", "42");
    answers("Action: Final Answer\nAction Input: 42", "42");
    fails("{\"action\": \"Final Answer\", \"action_input\": \" \"}", ReactFormatError::EmptyAnswer);
    assert_eq!(thought("Thought: t\n{\"action\": \"a\", \"action_input\": \"b\"}"), "t");
}

#[test]
fn other_objects_are_text() {
    fails("{\"action\": \"Search\"}", ReactFormatError::MissingAction);
    fails("{\"action\": 1, \"action_input\": 1}", ReactFormatError::MissingAction);
    fails("{\"action\": \"Search\", \"action_input\": \"cats\"", ReactFormatError::MissingAction);
    fails(
        "Action Input: {\"action\": \"Search\", \"action_input\": \"cats\"}",
        ReactFormatError::MissingAction,
    );
    let sent = "Send this:\n{\"action\": \"Search\", \"action_input\": \"cats\"}";
    answers(&format!("Final Answer: {sent}"), sent);
}

#[test]
fn an_input_loses_one_clean_pair_of_quotes_and_no_more() {
    for (input, expected) in [
        ("'cats'", "cats"),
        ("“cats”", "cats"),
        ("\" cats \"", "cats"),
        ("\"\"", ""),
        ("\"", "\""),
        ("\"cats", "\"cats"),
        ("\"say \\\"hi\\\"\"", "\"say \\\"hi\\\"\""),
        ("'it's'", "'it's'"),
        ("'\"cats\"'", "\"cats\""),
        ("```JSON\n\"cats\"\n```", "cats"),
        ("```json\n```", ""),
        ("```json\n{}\n```\nand more", "```json\n{}\n```\nand more"),
    ] {
        calls(&format!("Action: S\nAction Input: {input}"), "S", expected);
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_an_error() {
    fails("Action: Final Answer: 42", ReactFormatError::ActionWithAnswer);
    fails("Action: Search, final answer: 42\nAction Input: cats", ReactFormatError::ActionWithAnswer);
    fails("Final Answer:", ReactFormatError::EmptyAnswer);
    fails("Thought: done. Final Answer: \n \nObservation: 42", ReactFormatError::EmptyAnswer);
    fails("Action: Search", ReactFormatError::MissingActionInput);
}

#[test]
fn every_error_tells_the_model_what_to_write() {
    for (error, code) in [
        (ReactFormatError::MissingAction, "missing_action"),
        (ReactFormatError::MissingActionInput, "missing_action_input"),
        (ReactFormatError::EmptyAnswer, "empty_answer"),
        (ReactFormatError::ActionWithAnswer, "action_with_answer"),
    ] {
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains(". Write") || error.to_string().contains("write `"), "{error}");
    }
}

#[test]
fn prose_is_shown_without_what_only_frames_it() {
    for (text, expected) in [
        ("Just text.\n\n  With two parts. ", "Just text.\n\n  With two parts."),
        ("Thought: Just text.", "Just text."),
        ("<think>hm</think>**Thought:** Just text.", "Just text."),
        ("Thought: It is 42.\nFinal Answer:", "It is 42."),
        ("Thought:\nIt is 42.\nAction:\n", "It is 42."),
        ("Action: Final Answer: 42", "42"),
        ("It is 42.\nObservation: yes", "It is 42."),
        ("```\nThought: kept\n```", "```\nThought: kept\n```"),
        ("Try it.\nAction: restart", "Try it.\nAction: restart"),
        ("<think>hm", ""),
        ("", ""),
    ] {
        assert_eq!(prose(text), expected, "{text:?}");
    }
}

#[test]
fn a_text_is_cut_where_the_model_should_have_stopped() {
    for (text, expected) in [
        ("Action: a\nAction Input: b\nObservation: c\nd", "Action: a\nAction Input: b\n"),
        ("Action Input: b\n\tObservation 1: c", "Action Input: b\n"),
        ("Action Input: b\nObservation", "Action Input: b\n"),
        ("Action Input: b\nObservation\n\nObservation\nObservation: c", "Action Input: b\n"),
        ("The word\nObservation\nalone", "The word\nObservation\nalone"),
        ("Observation: c", ""),
        ("an Observation: c\nObservations: d", "an Observation: c\nObservations: d"),
        ("```\nObservation: c\n```\n", "```\nObservation: c\n```\n"),
        (
            "<think>\nObservation: c\n</think>\nd\n**Observation:** e",
            "<think>\nObservation: c\n</think>\nd\n",
        ),
        ("<think>Observation: c", "<think>Observation: c"),
    ] {
        assert_eq!(cut_at_stop(text), expected, "{text:?}");
    }
    for stop in STOP {
        assert_eq!(cut_at_stop(&format!("b{stop} c")), "b\n", "{stop:?}");
    }
}

const FRAGMENTS: [&str; 56] = [
    "Thought:",
    "Thought: ",
    "Action:",
    "Action: ",
    "Action Input:",
    "action 1 input 2: ",
    "Observation:",
    "Observation",
    "Final Answer:",
    "Final Answer: ",
    "**Final Answer: ",
    "**Action:**",
    "## Action",
    "## Action Input",
    "_Thought_:",
    "Search",
    "cats",
    "42",
    "é",
    "日本語",
    "🙂",
    "\u{301}",
    "\u{a0}",
    "\u{feff}",
    "：",
    "\n",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    " ",
    "\t",
    "```",
    "```json\n",
    "~~~",
    "````",
    "`",
    "\"",
    "'",
    "“",
    "”",
    "{",
    "}",
    "[",
    "]",
    "{\"action\": \"a\", \"action_input\": ",
    "\"b\"}",
    "{\"action\":\"Final Answer\",\"action_input\":\"c\"}",
    "\\",
    "<think>",
    "</think>",
    "<think",
    "</",
    "*",
    "#",
    "**",
];

fn check(text: &str) {
    let named = &text[..text.floor_char_boundary(300)];
    let clear = without_thinking(text);
    assert!(text.starts_with(cut_at_stop(text)), "{named:?}");
    assert_eq!(cut_at_stop(cut_at_stop(text)), cut_at_stop(text), "{named:?}");
    let shown = prose(text);
    assert_eq!(shown, shown.trim(), "{named:?}");
    let Ok(turn) = parse(text) else { return };
    assert!(clear.contains(&turn.thought), "{named:?}");
    let piece = |piece: &str| {
        // JSON writes a text in its own way; without it, every piece is one of the text.
        assert!(clear.contains(piece) || clear.contains("action_input"), "{named:?}");
        assert_eq!(piece, piece.trim(), "{named:?}");
    };
    match turn.directive {
        ReactDirective::Call { tool, input } => {
            assert!(!tool.is_empty() && !tool.contains('\n'), "{named:?}");
            piece(&tool);
            piece(&input);
        }
        ReactDirective::Finish(answer) => {
            assert!(!answer.is_empty(), "{named:?}");
            piece(&answer);
        }
    }
}

#[test]
fn no_text_breaks_the_reader() {
    for seed in 0..20_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let length = random.random_range(0..40);
        let text: String = (0..length).map(|_| FRAGMENTS[random.random_range(0..FRAGMENTS.len())]).collect();
        check(&text);
    }
}

/// Texts that have a reader start over and over, if it looks for what is not there from each place anew.
const RESTARTS: [&str; 26] = [
    "<think></think>",
    "<think>\n```\n</think>",
    "Thought: <think></think>```",
    "</think>x",
    "</think>\n",
    "<",
    "`x`",
    "```x\n",
    "~~~\n````\n",
    "Thought: Final Answer:",
    "Final ",
    "final answer ",
    "Action 1",
    "Observation\n",
    "[",
    "'",
    "# ",
    "**",
    " ",
    "{\"a\":[\n",
    "{\"a\": 1}\n",
    "{\"action\":\"",
    "Action: a\nAction: {\n",
    "Final Answer: a\nAction: {\"a\":[",
    "Action: a\nAction Input: b\n",
    "Final Answer: a\nAction: b\nAction Input: c\n",
];

#[test]
fn a_long_text_of_repeated_fragments_is_read_to_its_end() {
    for part in RESTARTS {
        let indent = " ".repeat(1 << 18);
        let text = indent + &part.repeat((1 << 18) / part.len());
        assert!(text.starts_with(cut_at_stop(&text)), "{part:?}");
        assert!(prose(&text).len() <= text.len(), "{part:?}");
        assert!(parse(&text).map_or(0, |turn| turn.thought.len()) <= text.len(), "{part:?}");
    }
}

#[test]
fn repeated_fragments_after_any_start_do_not_break_the_reader() {
    for part in FRAGMENTS.iter().map(|part| format!("{part}\n")).chain(RESTARTS.map(str::to_owned)) {
        for start in [
            "",
            "Final Answer: ",
            "Action: ",
            "Thought: ",
            "<think>",
            "{\"action\":[",
            "Action: a\nAction Input: ",
        ] {
            check(&format!("{start}{}", part.repeat((1 << 10) / part.len())));
        }
    }
}

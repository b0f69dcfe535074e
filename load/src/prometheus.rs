//! Reads what `/metrics` says: the Prometheus text format.

/// One line: a name, its labels and a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricSample {
    name: String,
    labels: Vec<(String, String)>,
    /// The value.
    pub(crate) value: f64,
}

impl MetricSample {
    /// The value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

/// The samples of one metric. Lines that are none are left out.
pub(crate) fn samples_of(text: &str, name: &str) -> Vec<MetricSample> {
    text.lines().filter_map(sample).filter(|sample| sample.name == name).collect()
}

/// A value that cannot be negative, as a whole number: bytes, or a count.
pub(crate) fn whole(value: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    (value.is_finite() && (0.0..9e15).contains(&value)).then_some(value as u64)
}

fn sample(line: &str) -> Option<MetricSample> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    // A time may follow.
    let value = rest.split_whitespace().next()?;
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        number => number.parse().ok()?,
    };
    Some(MetricSample { name: name.to_owned(), labels, value })
}

/// Reads labels up to the closing brace, and returns what follows it.
fn labels(mut rest: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = rest.split_once('=')?;
        let mut value = String::new();
        let mut characters = after.trim_start().strip_prefix('"')?.chars();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => value.push(match characters.next()? {
                    'n' => '\n',
                    other => other,
                }),
                other => value.push(other),
            }
        }
        labels.push((name.trim().to_owned(), value));
        rest = characters.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# HELP lectern_jobs Jobs by state.
# TYPE lectern_jobs gauge
lectern_jobs{state="due"} 3
lectern_jobs{state="running",} 1
lectern_jobs_oldest_due_seconds 0.5
process_resident_memory_bytes 8.5983232e+07 1395066363000
odd{a="x \"y\" {z} \\ , =",b="two"} +Inf
half{a="x
nothing
"#;

    #[test]
    fn values_are_found_by_name_and_label() {
        let jobs = samples_of(TEXT, "lectern_jobs");
        let states: Vec<_> = jobs.iter().map(|job| (job.label("state"), job.value)).collect();
        assert_eq!(states, [(Some("due"), 3.0), (Some("running"), 1.0)]);
        assert_eq!(jobs[0].label("other"), None);
    }

    #[test]
    fn exponents_and_times_are_understood() {
        let memory = samples_of(TEXT, "process_resident_memory_bytes");
        assert_eq!(memory.len(), 1);
        assert_eq!(whole(memory[0].value), Some(85_983_232));
    }

    #[test]
    fn labels_may_hold_quotes_braces_and_commas() {
        let odd = samples_of(TEXT, "odd");
        assert_eq!(odd[0].label("a"), Some(r#"x "y" {z} \ , ="#));
        assert_eq!(odd[0].label("b"), Some("two"));
        assert!(odd[0].value.is_infinite());
    }

    #[test]
    fn what_is_no_sample_is_left_out() {
        assert_eq!(samples_of(TEXT, "half"), []);
        assert_eq!(samples_of(TEXT, "nothing"), []);
        assert_eq!(samples_of("<!doctype html><p>It works!", "lectern_jobs"), []);
        for wrong in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(whole(wrong), None);
        }
    }
}

//! Things that are chosen by their names.

use std::collections::HashMap;

/// Characters of an id that tell a thing from others of its name. They are its last ones: ids of one hour begin alike.
const END: usize = 6;

/// Choices by id and name, of which no two look the same: where one name is that of several, each has the end of its id behind it.
pub(super) fn told_apart<I: ToString>(choices: impl IntoIterator<Item = (I, String)>) -> Vec<(I, String)> {
    let mut choices: Vec<(I, String)> = choices.into_iter().collect();
    let mut named: HashMap<String, usize> = HashMap::new();
    for (_, name) in &choices {
        *named.entry(as_shown(name)).or_default() += 1;
    }
    for (id, name) in &mut choices {
        if named.get(&as_shown(name)).is_some_and(|count| *count > 1) {
            *name = format!("{name} (id …{})", end_of(&id.to_string()));
        }
    }
    choices
}

/// A name as browsers show it in a list: with one space wherever there are several.
fn as_shown(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn end_of(id: &str) -> &str {
    id.len().checked_sub(END).and_then(|from| id.get(from..)).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_of_one_name_have_the_end_of_their_ids_and_others_nothing() {
        let choices = [
            ("019a8f60-1b2c-7d3e-8f4a-5b6c7d8e9f01", "Guide"),
            ("019a8f60-1b2c-7d3e-8f4a-5b6c7daaaaaa", "Clerk"),
            ("019a8f60-1b2c-7d3e-8f4a-5b6c7d8e9f02", "Guide"),
            ("short", " Guide"),
            ("019a8f60-1b2c-7d3e-8f4a-5b6c7dbbbbbb", "guide"),
        ];
        let told = told_apart(choices.map(|(id, name)| (id, name.to_owned())));
        let names: Vec<_> = told.iter().map(|(_, name)| name.as_str()).collect();
        let expected = ["Guide (id …8e9f01)", "Clerk", "Guide (id …8e9f02)", " Guide (id …short)", "guide"];
        assert_eq!(names, expected);
        assert_eq!(told.iter().map(|(id, _)| *id).collect::<Vec<_>>(), choices.map(|(id, _)| id));
    }
}

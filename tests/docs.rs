//! What the README says is what the program does.

use std::fmt::Write;

use lectern_shared::config::SETTINGS;

#[test]
fn the_table_of_settings_is_that_of_the_program() {
    let mut table = String::from("| setting | default | meaning |\n|---|---|---|\n");
    for setting in SETTINGS {
        writeln!(table, "| `{}` | {} | {} |", setting.name, setting.default, setting.meaning)
            .expect("a string takes all");
    }
    let readme = include_str!("../README.md");
    assert!(readme.contains(&table), "README.md must hold this table:\n{table}");
}

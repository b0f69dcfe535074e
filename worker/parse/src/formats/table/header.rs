//! Where the names of a table's columns are, if it has any.

/// Rows that may stand above a table.
const MAX_ABOVE: usize = 20;
/// A name that is longer, in bytes, is none.
const LONG: usize = 120;

/// The first rows of a table that are not blank: where each one is, counted from 0, and its fields.
pub(crate) type SampleRows = [(u64, Vec<String>)];

/// The row with the names of the columns, by what the first rows look like.
///
/// It is the first row unless it plainly is data, or the first one below a title if that looks like names.
pub(crate) fn find(sample: &SampleRows) -> Option<u64> {
    let usual = usual_width(sample);
    let candidate = sample.iter().take(MAX_ABOVE).position(|(_, row)| filled(row).count() * 2 > usual)?;
    if candidate > 0 && is_below_title(sample, candidate) {
        return place_of_names(sample, candidate);
    }
    let (_, first) = sample.first()?;
    // A row of names may leave some out, such as that of the column with numbers.
    if filled(first).count() * 2 >= usual { place_of_names(sample, 0) } else { None }
}

/// Whether the row looks like names, and what stands above it like a title: one that begins further to the right than the table
/// is the names of some of its columns.
fn is_below_title(sample: &SampleRows, candidate: usize) -> bool {
    let begins = |row: &[String]| row.iter().position(|field| !field.trim().is_empty());
    let (above, below) = sample.split_at_checked(candidate).unwrap_or_default();
    below.first().is_some_and(|(_, names)| {
        filled(names).all(is_name) && above.iter().all(|(_, row)| begins(row) <= begins(names))
    })
}

fn place_of_names(sample: &SampleRows, at: usize) -> Option<u64> {
    let mut rows = sample.get(at..)?.iter();
    let (place, names) = rows.next()?;
    let below: Vec<&[String]> = rows.map(|(_, row)| row.as_slice()).collect();
    is_header(names, &below).then_some(*place)
}

/// How many fields most rows have that are not blank.
fn usual_width(sample: &SampleRows) -> usize {
    let mut widths: Vec<usize> = sample.iter().map(|(_, row)| filled(row).count()).collect();
    widths.sort_unstable();
    widths
        .chunk_by(|one, other| one == other)
        .max_by_key(|same| same.len())
        .and_then(|same| same.first().copied())
        .unwrap_or(0)
}

fn filled(row: &[String]) -> impl Iterator<Item = &str> {
    row.iter().map(|field| field.trim()).filter(|field| !field.is_empty())
}

fn is_header(header: &[String], below: &[&[String]]) -> bool {
    if below.is_empty() {
        return is_alone(header);
    }
    if filled(header).all(is_figure) {
        return false;
    }
    let names: Vec<&str> = filled(header).collect();
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < names.len() && names.len() < header.len() {
        return false;
    }
    if names.iter().filter(|name| name.len() > LONG).count() * 2 > names.len() {
        return false;
    }
    // Compared once and not for each column: a row can have 16,384 fields.
    let others: Vec<&[String]> = below.iter().copied().filter(|row| *row != header).collect();
    let (mut names_seen, mut data_seen) = (0, 0);
    for (column, name) in header.iter().enumerate().map(|(column, name)| (column, name.trim())) {
        let values: Vec<&str> = others
            .iter()
            .filter_map(|row| row.get(column))
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
            .collect();
        if name.is_empty() || values.is_empty() {
            continue;
        }
        let figures = values.iter().filter(|value| is_figure(value)).count() * 5 >= values.len() * 4;
        if is_figure(name) {
            // Years are names of columns as often as not.
            let may_be_name = is_year(name) && !values.iter().all(|value| is_year(value));
            data_seen += usize::from(figures && !may_be_name);
        } else if is_address(name) || values.contains(&name) {
            data_seen += 1;
        } else {
            names_seen += usize::from(figures);
        }
    }
    names_seen >= data_seen
}

/// Whether a row that nothing stands below is a header: several fields, each a name of its own.
fn is_alone(row: &[String]) -> bool {
    let mut names: Vec<&str> = filled(row).collect();
    let is_several =
        names.len() > 1 && names.iter().all(|name| is_name(name)) && !names.iter().all(|name| is_year(name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    is_several && names.len() == count
}

/// Whether a field can be a name: words, or a year.
fn is_name(field: &str) -> bool {
    field.len() <= LONG && (!is_figure(field) || is_year(field)) && !is_address(field)
}

/// Whether a field is a number, a date, a time or a truth value, in whatever way they are written.
fn is_figure(field: &str) -> bool {
    if field.eq_ignore_ascii_case("true") || field.eq_ignore_ascii_case("false") {
        return true;
    }
    let allowed = |c: char| c.is_ascii_digit() || " +-.,/:%$€£¥()'\u{a0}\u{202f}−TZEe".contains(c);
    field.contains(|c: char| c.is_ascii_digit())
        && !field.starts_with(|c: char| c.is_ascii_alphabetic())
        && field.chars().all(allowed)
}

fn is_year(field: &str) -> bool {
    field.len() == 4 && field.parse::<u16>().is_ok_and(|year| (1800..2200).contains(&year))
}

fn is_address(field: &str) -> bool {
    let mail = field.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'));
    mail || field.starts_with("http://") || field.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_of(rows: &[&str]) -> Option<u64> {
        let rows = rows.iter().enumerate().filter(|(_, row)| !row.replace(',', "").is_empty());
        let sample: Vec<_> =
            rows.map(|(at, row)| (at as u64, row.split(',').map(str::to_owned).collect())).collect();
        find(&sample)
    }

    #[test]
    fn the_first_row_names_the_columns_unless_it_plainly_is_data() {
        for (rows, header) in [
            (&["a,b,c", "1,2,3"][..], Some(0)),
            (&["name,city", "Ann,Rome", "Bob,Oslo"], Some(0)),
            (&["country,2019,2020", "Peru,31,33", "Chad,4,5"], Some(0)),
            (&["name", "Ann", "Bob"], Some(0)),
            (&["x,y", "1,a", "x,y", "2,b"], Some(0)),
            (&["id,,total", "1,,4"], Some(0)),
            (&[",label", "a,x", "b,y"], Some(0)),
            (&["name", "Ann,5", "Bob,6"], Some(0)),
            (&["1,2,3", "4,5,6"], None),
            (&["2024-05-01,12.50", "2024-05-02,13.00"], None),
            (&["John,35,Rome", "Ann,28,Oslo"], None),
            (&["Ann,Rome,ann@example.org", "Bob,Oslo,bob@example.org"], None),
            (&["red,,red", "blue,,red"], None),
            (&["name,city,age"], Some(0)),
            (&["country,2019,2020"], Some(0)),
            (&["", "Sales of 2024,,", "region,units,price"], Some(2)),
            (&["Ann,Rome,35"], None),
            (&["Ann,ann@example.org"], None),
            (&["2019,2020"], None),
            (&["red,red"], None),
            (&["word"], None),
            (&[], None),
        ] {
            assert_eq!(header_of(rows), header, "{rows:?}");
        }
    }

    #[test]
    fn names_are_found_below_a_title_and_blank_rows() {
        assert_eq!(header_of(&["", "Sales of 2024,,", "", "region,units,price", "North,3,1.5"]), Some(3));
        assert_eq!(header_of(&["Prices", "item,price", "salt,3", "rice,4"]), Some(1));
        assert_eq!(header_of(&["Sales of 2024,,", "1,2,3", "4,5,6"]), None);
    }

    /// A sheet can be as wide as this with one cell: with all rows compared for each column, it took minutes.
    #[test]
    fn names_of_a_very_wide_table_are_found() {
        let row = |last: String| {
            let mut row = vec![String::new(); 16_384];
            row[16_383] = last;
            row
        };
        let mut sample = vec![(0, row("count".to_owned()))];
        sample.extend((1..100).map(|at| (at, row(at.to_string()))));
        assert_eq!(find(&sample), Some(0));
    }
}

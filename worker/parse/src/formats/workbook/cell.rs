//! What a cell shows.

use calamine::{DataType, ExcelDateTime};

/// The text of a cell: numbers as people see them, dates as in ISO 8601. `format` is the code by which its number is shown.
pub(super) fn text(value: &impl DataType, format: Option<&str>) -> String {
    if let Some(text) = value.get_string() {
        text.to_owned()
    } else if let Some(number) = value.get_float() {
        self::number(number, format)
    } else if let Some(number) = value.get_int() {
        match format.and_then(digits) {
            Some(width) => format!("{number:0width$}"),
            None => number.to_string(),
        }
    } else if let Some(truth) = value.get_bool() {
        (if truth { "TRUE" } else { "FALSE" }).to_owned()
    } else if let Some(moment) = value.get_datetime() {
        date(&moment)
    } else if let Some(moment) = value.get_datetime_iso() {
        moment.strip_suffix("T00:00:00").unwrap_or(moment).to_owned()
    } else if let Some(duration) = value.get_duration_iso() {
        clock(duration).unwrap_or_else(|| duration.to_owned())
    } else if let Some(error) = value.get_error() {
        error.to_string()
    } else {
        String::new()
    }
}

fn number(number: f64, format: Option<&str>) -> String {
    if let Some(width) = format.and_then(digits)
        && number.fract() == 0.0
        && number.abs() < 1e15
    {
        return format!("{number:0width$.0}");
    }
    if format.is_some_and(is_percent) {
        return plain(number * 100.0) + "%";
    }
    plain(number)
}

/// To fifteen digits, as spreadsheet programs keep and show them, and without a fraction of zeros.
fn plain(number: f64) -> String {
    let rounded: f64 = format!("{number:.14e}").parse().unwrap_or(number);
    if rounded == 0.0 {
        "0".to_owned()
    } else if (1e-7..1e21).contains(&rounded.abs()) {
        rounded.to_string()
    } else {
        format!("{rounded:E}")
    }
}

/// A format of zeros only shows codes with the zeros before them.
fn digits(format: &str) -> Option<usize> {
    (format.len() > 1 && format.len() <= 20 && format.bytes().all(|byte| byte == b'0'))
        .then_some(format.len())
}

/// Whether a percent sign stands in a format outside of what it quotes.
fn is_percent(format: &str) -> bool {
    format.split('"').step_by(2).any(|code| code.contains('%') && !code.contains("\\%"))
}

fn date(moment: &ExcelDateTime) -> String {
    if moment.is_duration() {
        return duration(moment.as_f64());
    }
    let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
    let seconds = if milli == 0 { format!("{second:02}") } else { format!("{second:02}.{milli:03}") };
    let time = format!("{hour:02}:{minute:02}:{seconds}");
    if (0.0..1.0).contains(&moment.as_f64()) {
        time
    } else if time == "00:00:00" {
        format!("{year:04}-{month:02}-{day:02}")
    } else {
        format!("{year:04}-{month:02}-{day:02}T{time}")
    }
}

/// Days as hours, minutes and seconds.
fn duration(days: f64) -> String {
    let seconds = (days.abs() * 86_400.0).round();
    let sign = if days < 0.0 && seconds > 0.0 { "-" } else { "" };
    let (hours, minutes) = ((seconds / 3_600.0).floor(), (seconds / 60.0).floor() % 60.0);
    format!("{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60.0)
}

/// `PT12H30M00S` as a clock shows it.
fn clock(duration: &str) -> Option<String> {
    let (hours, rest) = duration.strip_prefix("PT")?.split_once('H')?;
    let (minutes, rest) = rest.split_once('M')?;
    let seconds = rest.strip_suffix('S')?;
    let whole = seconds.split_once(['.', ',']).map_or(seconds, |(whole, _)| whole);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    [hours, minutes, whole]
        .into_iter()
        .all(is_number)
        .then(|| format!("{hours:0>2}:{minutes:0>2}:{whole:0>2}"))
}

#[cfg(test)]
mod tests {
    use calamine::{CellErrorType, Data, ExcelDateTimeType};

    use super::*;

    fn moment(value: f64, r#type: ExcelDateTimeType) -> Data {
        Data::DateTime(ExcelDateTime::new(value, r#type, false))
    }

    #[test]
    fn cells_read_as_people_see_them() {
        for (value, format, expected) in [
            (Data::Float(1.0), None, "1"),
            (Data::Float(0.1 + 0.2), None, "0.3"),
            (Data::Float(-1234.5), None, "-1234.5"),
            (Data::Float(-0.0), None, "0"),
            (Data::Float(1e30), None, "1E30"),
            (Data::Float(123_456_789_012_345.0), None, "123456789012345"),
            (Data::Float(0.125), Some("0.00%"), "12.5%"),
            (Data::Float(0.07), Some("0%"), "7%"),
            (Data::Float(5.0), Some("0\" %\""), "5"),
            (Data::Float(8123.0), Some("00000"), "08123"),
            (Data::Int(7), None, "7"),
            (Data::Bool(true), None, "TRUE"),
            (Data::Error(CellErrorType::Div0), None, "#DIV/0!"),
            (moment(45_413.0, ExcelDateTimeType::DateTime), None, "2024-05-01"),
            (moment(45_413.562_5, ExcelDateTimeType::DateTime), None, "2024-05-01T13:30:00"),
            (moment(0.75, ExcelDateTimeType::DateTime), None, "18:00:00"),
            (moment(1.5, ExcelDateTimeType::TimeDelta), None, "36:00:00"),
            (Data::DateTimeIso("2024-05-01".to_owned()), None, "2024-05-01"),
            (Data::DurationIso("PT07H05M09S".to_owned()), None, "07:05:09"),
            (Data::Empty, None, ""),
        ] {
            assert_eq!(text(&value, format), expected, "{value:?}");
        }
    }
}

//! A line of a text with a caret under the place that is meant.

use std::fmt::Write;

/// Bytes shown on each side of the caret: PTX lines of a megabyte exist.
const WINDOW: usize = 100;

/// The line as a compiler shows it, with a caret; `line` and `column` (in bytes) count from 1. Empty where there is no such line.
pub fn excerpt(text: &str, line: usize, column: usize) -> String {
    excerpt_of(text, line, column, line)
}

/// The same for a text that stands inside of a file, whose own number of the line is `shown_as`.
pub fn excerpt_of(text: &str, line: usize, column: usize, shown_as: usize) -> String {
    let mut out = String::new();
    // What lies behind the last line break is a line too: a file that is cut off ends there.
    let Some(line) = text.split('\n').nth(line.saturating_sub(1)) else {
        return out;
    };
    let floor = |mut at: usize| {
        while !line.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let column = floor(column.saturating_sub(1).min(line.len()));
    let from = floor(column.saturating_sub(WINDOW));
    let to = floor((column + WINDOW).min(line.len()));
    let shown: String = line[from..to]
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let number = shown_as.to_string();
    let margin = " ".repeat(number.len());
    let caret = " ".repeat(line[from..column].chars().count());
    // Writing to a `String` can't fail.
    let _ = write!(
        out,
        "{margin} |\n{number} | {}\n{margin} | {caret}^\n",
        shown.trim_end()
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_byte() {
        assert_eq!(
            excerpt("a\nxé = ?\n", 2, 7),
            "  |\n2 | xé = ?\n  |      ^\n"
        );
        assert_eq!(excerpt("\tab", 1, 2), "  |\n1 |  ab\n  |  ^\n");
        assert_eq!(excerpt_of("ab", 1, 3, 12), "   |\n12 | ab\n   |   ^\n");
    }

    #[test]
    fn places_that_are_not_there_are_no_panic() {
        assert_eq!(excerpt("a", 2, 1), "");
        assert_eq!(excerpt("", 1, 1), "  |\n1 | \n  | ^\n");
        assert_eq!(excerpt("a\n", 2, 1), "  |\n2 | \n  | ^\n");
        assert_eq!(excerpt("é", 1, 2), "  |\n1 | é\n  | ^\n");
        assert_eq!(excerpt("a", 0, 0), "  |\n1 | a\n  | ^\n".replace('1', "0"));
        assert_eq!(excerpt("a", 1, usize::MAX), "  |\n1 | a\n  |  ^\n");
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let text = format!("{}!{}", "x".repeat(5000), "y".repeat(5000));
        let shown = excerpt(&text, 1, 5001);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(shown.len() < 500, "{shown}");
        assert_eq!(lines[1].find('!'), lines[2].find('^'));
    }
}

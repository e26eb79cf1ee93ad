//! Wrong usage in one line, where clap would write a paragraph.

use crate::args::Cli;
use clap::CommandFactory;
use clap::error::ErrorKind;

/// What is wrong, and where to look.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// One line, without `error:`.
    pub message: String,
    /// One line, without `hint:`.
    pub hint: String,
}

/// The problem, unless help or the version was asked for (or shown in place of an error). `first` is the command line's first
/// word behind the program.
pub fn problem(error: &clap::Error, first: Option<&str>) -> Option<Problem> {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        return None;
    }
    let text = error.render().to_string();
    let mut message = String::new();
    // Not every error of clap's shows the usage.
    let known = first.filter(|word| Cli::command().find_subcommand(word).is_some());
    let mut command = known.map_or("gsan".to_string(), |word| format!("gsan {word}"));
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if let Some(usage) = line.strip_prefix("Usage:") {
            command = words(usage);
        } else if !line.starts_with("For more information") {
            append(&mut message, line.strip_prefix("error: ").unwrap_or(line));
        }
    }
    Some(Problem {
        message,
        hint: format!("`{command} --help` says what there is"),
    })
}

/// Puts the next line of clap's paragraph behind what is there.
fn append(message: &mut String, line: &str) {
    let separator = match message.chars().last() {
        None => "",
        Some(':') => " ",
        Some(_) if line.starts_with('[') => " ",
        Some(_) => "; ",
    };
    message.push_str(separator);
    message.push_str(line);
}

/// The words of a usage line up to its first placeholder or option: the command.
fn words(usage: &str) -> String {
    let command = usage.split_whitespace().take_while(|w| {
        w.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !w.starts_with('-')
    });
    command.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[track_caller]
    fn check(args: &[&str], message: &str, hint: &str) {
        let all = std::iter::once("gsan").chain(args.iter().copied());
        let error = Cli::try_parse_from(all).unwrap_err();
        let got = problem(&error, args.first().copied()).unwrap();
        assert_eq!(got.message, message);
        assert_eq!(got.hint, format!("`{hint} --help` says what there is"));
        assert!(!got.message.contains('\n'));
    }

    #[test]
    fn one_line_says_what_is_wrong_and_one_where_to_look() {
        check(
            &["run", "x.ptx", "--formt", "json"],
            "unexpected argument '--formt' found; tip: a similar argument exists: '--format'",
            "gsan run",
        );
        check(
            &["run", "x.ptx", "--format", "xml"],
            "invalid value 'xml' for '--format <FORMAT>' [possible values: text, json, sarif]",
            "gsan run",
        );
        check(
            &["run", "x.ptx", "--no-class", "intra"],
            "invalid value 'intra' for '--no-class <CLASS>': there is no such class; there are: race, scope-too-narrow, \
             missing-acquire, missing-release, mixed-width, stale-nc, intra-block, missing-wait",
            "gsan run",
        );
        check(
            &["instrument", "x.ptx"],
            "the following required arguments were not provided: --output <OUT.ptx>",
            "gsan instrument",
        );
        check(&["rnu"], "unrecognized subcommand 'rnu'", "gsan");
    }

    #[test]
    fn help_is_no_problem() {
        for args in [&["gsan", "--help"][..], &["gsan", "--version"], &["gsan"]] {
            assert_eq!(problem(&Cli::try_parse_from(args).unwrap_err(), None), None);
        }
    }
}

//! `cargo xtask parity RESULTS`: puts what `tests/litmus.sh --parity --results RESULTS` found on a GPU into the last column
//! of docs/parity.md.

use crate::process::{Context, Failure, Result, root, write};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How the sentence begins that says where the column comes from.
const LEGEND: &str = "\"GPU\" ";

/// What tests/litmus.sh calls the simulated device.
const SIMULATOR: &str = "the simulator";

/// Merges a result list into the table.
pub fn merge(list: &Path) -> Result {
    let text = fs::read_to_string(list).about(list.display())?;
    let results = Results::parse(&text)
        .map_err(|(line, why)| Failure::new(format!("{}:{line}: {why}", list.display())))?;
    if results.device == SIMULATOR {
        return Err(Failure::new(format!(
            "{} was made on the simulator; the column is for a GPU",
            list.display()
        )));
    }
    let page = root().join("docs/parity.md");
    let table = fs::read_to_string(&page).about(page.display())?;
    let shown = list.strip_prefix(root()).unwrap_or(list);
    let (merged, rows) = merged(&table, &results, &shown.display().to_string());
    if rows == 0 {
        return Err(Failure::new(
            "no row of docs/parity.md names a scenario of the list",
        ));
    }
    write(&page, &merged)?;
    println!(
        "{rows} rows of docs/parity.md filled in from {} scenarios",
        results.by_name.len()
    );
    Ok(())
}

/// A result list.
#[derive(Debug, Default, PartialEq, Eq)]
struct Results {
    /// Where it was run: what stands behind `# device:`.
    device: String,
    /// By scenario: whether its `[expect]` held, and in how many runs.
    by_name: BTreeMap<String, (bool, u64)>,
}

impl Results {
    /// Lines of folder, name, `ok` or `WRONG`, and runs; `#` begins a comment. An error has its line.
    fn parse(text: &str) -> std::result::Result<Results, (usize, String)> {
        let mut results = Results::default();
        for (number, line) in text.lines().enumerate() {
            if let Some(comment) = line.strip_prefix('#') {
                if let Some(device) = comment.trim().strip_prefix("device:") {
                    results.device = device.trim().to_string();
                }
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                ["parity", name, verdict @ ("ok" | "WRONG"), runs] => {
                    let runs = runs
                        .parse()
                        .map_err(|_| (number + 1, format!("`{runs}` is no number of runs")))?;
                    let entry = (verdict == "ok", runs);
                    results.by_name.insert(name.to_string(), entry);
                }
                // The litmus tests have no table.
                ["litmus", ..] => {}
                _ => {
                    let why = "a line is: parity NAME ok|WRONG RUNS";
                    return Err((number + 1, why.to_string()));
                }
            }
        }
        Ok(results)
    }

    /// What the column says of a row that names these scenarios; `None` if it was not run.
    fn cell(&self, names: &[&str]) -> Option<String> {
        let known: Vec<(&str, (bool, u64))> = names
            .iter()
            .filter_map(|n| Some((*n, *self.by_name.get(*n)?)))
            .collect();
        let runs = known.iter().map(|(_, (_, runs))| *runs).min()?;
        let wrong: Vec<String> = known
            .iter()
            .filter(|(_, (ok, _))| !ok)
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        Some(if wrong.is_empty() {
            format!("as on the simulator, {runs} runs")
        } else {
            format!("**differs**: {}", wrong.join(", "))
        })
    }
}

/// The page with the column filled in, and how many rows were.
fn merged(page: &str, results: &Results, list: &str) -> (String, usize) {
    let mut rows = 0;
    let mut in_table = false;
    let mut out = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with(LEGEND) {
            out.push_str(&format!(
                "{LEGEND}says whether each scenario's `[expect]` held on {} (`{list}`); – : not run there.\n",
                if results.device.is_empty() { "a GPU" } else { &results.device },
            ));
            // The sentence may go over several lines.
            while lines.peek().is_some_and(|l| !l.trim().is_empty()) {
                lines.next();
            }
            continue;
        }
        in_table = line.starts_with('|') && (in_table || line.ends_with("| GPU |"));
        let filled = in_table.then(|| row(line, results)).flatten();
        rows += usize::from(filled.is_some());
        out.push_str(filled.as_deref().unwrap_or(line));
        out.push('\n');
    }
    (out, rows)
}

/// A row with its last cell filled in.
fn row(line: &str, results: &Results) -> Option<String> {
    let cells: Vec<&str> = line
        .strip_prefix('|')?
        .strip_suffix('|')?
        .split('|')
        .collect();
    let [first, ours, middle @ .., _] = &cells[..] else {
        return None;
    };
    let names: Vec<&str> = ours.split('`').skip(1).step_by(2).collect();
    let cell = results.cell(&names)?;
    let mut all = vec![*first, *ours];
    all.extend(middle);
    Some(format!("|{}| {cell} |", all.join("|")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Parity

\"Simulator\" is one thing.
\"GPU\" is filled in from
somewhere.

| row | ours | simulator | GPU |
|---|---|---|---|
| a | `one`; shadow `s` | same | – |
| b | `two`, `three` | RAW @ load | – |
| c | shadow `s` | same | – |
| d | superseded: `four` is not | | |

| row | ours | result |
|---|---|---|
| e | `one` | same |
";

    const LIST: &str = "\
# device: NVIDIA H200, driver 580
litmus anything ok 10000
parity one ok 16
parity two ok 16

parity three WRONG 16
";

    #[test]
    fn rows_get_what_their_scenarios_did() {
        let results = Results::parse(LIST).unwrap();
        let (page, rows) = merged(PAGE, &results, "bench/results/x.txt");
        assert_eq!(rows, 2);
        for line in [
            "\"Simulator\" is one thing.\n\"GPU\" says whether each scenario's `[expect]` held on NVIDIA H200, driver 580 \
             (`bench/results/x.txt`); – : not run there.\n\n| row",
            "| a | `one`; shadow `s` | same | as on the simulator, 16 runs |\n",
            "| b | `two`, `three` | RAW @ load | **differs**: `three` |\n",
            "| c | shadow `s` | same | – |\n",
            "| d | superseded: `four` is not | | |\n",
            "| e | `one` | same |\n",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn merging_again_changes_nothing_and_newer_results_win() {
        let results = Results::parse(LIST).unwrap();
        let (once, _) = merged(PAGE, &results, "x");
        assert_eq!(merged(&once, &results, "x").0, once);
        let better = Results::parse("parity three ok 16\nparity two ok 4\n").unwrap();
        let (page, _) = merged(&once, &better, "y");
        assert!(
            page.contains("| RAW @ load | as on the simulator, 4 runs |"),
            "{page}"
        );
    }

    #[test]
    fn a_list_that_is_none_is_refused_with_its_line() {
        for (text, line) in [
            ("parity x ok", 1),
            ("\nparity x fine 3", 2),
            ("# c\nparity x ok many", 2),
            ("hello", 1),
        ] {
            assert_eq!(Results::parse(text).unwrap_err().0, line, "{text}");
        }
        assert_eq!(Results::parse("").unwrap(), Results::default());
    }

    #[test]
    fn the_real_page_has_rows_to_fill() {
        let page = fs::read_to_string(root().join("docs/parity.md")).unwrap();
        let all: String = fs::read_dir(root().join("tests/scenarios/parity"))
            .unwrap()
            .filter_map(|e| {
                let name = e.ok()?.file_name().into_string().ok()?;
                Some(format!("parity {} ok 16\n", name.strip_suffix(".toml")?))
            })
            .collect();
        let (_, rows) = merged(&page, &Results::parse(&all).unwrap(), "x");
        assert!(rows > 15, "{rows}");
    }
}

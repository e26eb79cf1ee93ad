//! Text reports, word for word. `GSAN_BLESS=1 cargo test -p gsan-tests --test golden` writes them anew; read the
//! difference before you commit it.

use gsan_tests::{Gsan, repository, scenario};
use std::fs;

/// What may differ between two good versions is blanked: addresses, offsets, how often, how much was done. (A change of the
/// detector changes the schedule that a seed stands for.)
fn steady(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut line = blank_offsets(&blank_addresses(line));
        if [
            "checked",
            "schedule",
            "= found",
            " by thread (",
            " by block (",
        ]
        .iter()
        .any(|w| line.contains(w))
        {
            line = blank_numbers(&line);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// `0x7f00` → `0x…`
fn blank_addresses(line: &str) -> String {
    let mut parts = line.split("0x");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push_str("0x…");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    out
}

/// `` `data`+16 `` → `` `data`+N ``
fn blank_offsets(line: &str) -> String {
    let mut parts = line.split("`+");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push_str("`+N");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

/// Each run of digits → `N`
fn blank_numbers(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if out.ends_with('N') => {}
            '0'..='9' => out.push('N'),
            c => out.push(c),
        }
    }
    out
}

/// One schedule of a scenario whose findings do not depend on the schedule.
fn check(name: &str) {
    if std::env::var_os("GSAN_TEST_TREE").is_some() {
        println!(
            "not compared: another compiler made the PTX, and its columns and counts may differ"
        );
        return;
    }
    let done = Gsan::run(&scenario::path(name))
        .args(["--schedules", "1"])
        .finish();
    let path = repository()
        .join("tests/golden")
        .join(format!("{name}.txt"));
    let got = steady(&done.out);
    if std::env::var_os("GSAN_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &got).unwrap();
        return;
    }
    let want = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(got == want, "not as in {}:\n{got}\n{done}", path.display());
}

#[test]
fn a_read_after_an_unordered_write() {
    check("flag_handoff_racy");
}

#[test]
fn two_findings_of_one_kernel() {
    check("volatile_flag_racy");
}

#[test]
fn a_race_and_then_a_deadlock() {
    check("ending_deadlock");
}

#[test]
fn a_hand_over_by_a_static() {
    check("module_static_racy");
}

#[test]
fn a_fault() {
    check("ending_off_the_end");
}

#[test]
fn two_streams() {
    check("pinned_mailbox_racy");
}

#[test]
fn a_load_that_may_be_stale() {
    check("stale_nc_racy");
}

#[test]
fn a_bulk_copy_that_was_not_waited_for() {
    check("bulk_groups_racy");
}

#[test]
fn a_source_that_is_given_away_when_its_copy_is_issued() {
    check("tensor_load_early_racy");
}

#[test]
fn nothing_found() {
    check("flag_handoff_fixed");
}

#[test]
fn blanking_leaves_the_rest() {
    assert_eq!(
        steady("at 0x7f00, 4 bytes \n12 accesses checked, 3 not"),
        "at 0x…, 4 bytes\nN accesses checked, N not\n"
    );
}

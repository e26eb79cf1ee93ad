//! SARIF 2.1.0, for code-scanning services and editors.

use super::demangle::demangle;
use super::findings::{advice, current_access, hidden, past_end, warp, what};
use super::text::{outcome_sentence, place};
use super::{describe_access, plural, triple};
use crate::names::Named;
use gsan_host::report::{Outcome, Race, RaceClass, Report, Side, Site};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The report as a SARIF document, with a newline at its end.
pub fn render(report: &Report) -> String {
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "gsan",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": RaceClass::TABLE.iter().map(|(id, class)| rule(id, *class)).collect::<Vec<_>>(),
            }},
            "columnKind": "utf16CodeUnits",
            "invocations": [invocation(report)],
            "results": report.races.iter().map(|r| result(report, r)).collect::<Vec<_>>(),
        }],
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn rule(id: &str, class: RaceClass) -> Value {
    let title = match class {
        RaceClass::Race => "Accesses without any order between them",
        RaceClass::ScopeTooNarrow => "Synchronisation whose scope does not cover both sides",
        RaceClass::MissingAcquire => "Release without a matching acquire",
        RaceClass::MissingRelease => "Acquire without a matching release",
        RaceClass::MixedWidth => "Atomics of different width on one word",
        RaceClass::StaleNc => "Non-coherent load of memory that the launch writes",
        RaceClass::IntraBlock => "Race between two warps of one block",
        RaceClass::MissingWait => "Dependent launch that never waits for the kernel before it",
    };
    json!({ "id": id, "shortDescription": { "text": title }, "defaultConfiguration": { "level": "error" } })
}

fn invocation(report: &Report) -> Value {
    let mut notifications = Vec::new();
    if report.outcome != Outcome::Completed {
        let message = report.message.as_deref().unwrap_or("no more is known");
        notifications.push(json!({
            "level": "error",
            "message": { "text": format!("{}: {message}", outcome_sentence(report.outcome)) },
        }));
    }
    for u in &report.unsupported {
        let mut notification = json!({
            "level": "warning",
            "message": { "text": format!("{}: {}: {}", if u.partly { "approximated" } else { "not checked" }, u.text, u.why) },
        });
        if !u.module.is_empty() {
            notification["locations"] =
                json!([{ "physicalLocation": physical(&u.module, u.ptx_line, None) }]);
        }
        notifications.push(notification);
    }
    for past in &report.past_end {
        let mut notification = json!({ "level": "warning", "message": { "text": past_end(past) } });
        if let Some(site) = &past.access.site {
            notification["locations"] = json!([location(&past.access, site)]);
        }
        notifications.push(notification);
    }
    for sentence in hidden(report) {
        notifications.push(json!({ "level": "note", "message": { "text": sentence } }));
    }
    json!({
        "executionSuccessful": report.outcome == Outcome::Completed,
        "toolExecutionNotifications": notifications,
    })
}

fn result(report: &Report, race: &Race) -> Value {
    let rule_index = RaceClass::TABLE
        .iter()
        .position(|(_, c)| *c == race.class)
        .unwrap_or(0);
    let mut related = Vec::new();
    if let Some(site) = &race.current.site {
        let inlined = site.inlined_at.iter().map(|p| (p, "inlined here"));
        let called = site
            .called_from
            .iter()
            .map(|p| (p, "called here, or at another such place"));
        let near = site.near.iter().map(|p| (p, "near here"));
        for ((file, line, column), what) in inlined.chain(called).chain(near) {
            related.push(json!({
                "physicalLocation": physical(file, *line, Some(*column)),
                "message": { "text": what },
            }));
        }
    }
    if let Some(site) = &race.prior.site {
        let mut prior = location(&race.prior, site);
        prior["message"] =
            json!({ "text": format!("the earlier access: {}", describe_access(&race.prior)) });
        related.push(prior);
    }
    if let Some(flag) = &race.flag
        && let Some(site) = &flag.access.site
    {
        let mut access = location(&flag.access, site);
        let text = format!("the flag: {}", describe_access(&flag.access));
        access["message"] = json!({ "text": text });
        related.push(access);
    }
    for (id, location) in related.iter_mut().enumerate() {
        location["id"] = json!(id);
    }
    json!({
        "ruleId": race.class.word(),
        "ruleIndex": rule_index,
        "level": "error",
        "message": { "text": message(report, race) },
        "locations": race.current.site.iter().map(|s| location(&race.current, s)).collect::<Vec<_>>(),
        "relatedLocations": related,
        "occurrenceCount": race.count.max(1),
        "partialFingerprints": { "gsanRace/v1": fingerprint(race) },
        "properties": properties(report, race),
    })
}

fn message(report: &Report, race: &Race) -> String {
    let by = match (
        &race.current.kernel,
        race.current.block,
        race.current.thread,
    ) {
        (Some(k), Some(b), Some(t)) => {
            format!(
                " in kernel {}, block {}, thread {}",
                demangle(k),
                triple(b),
                triple(t)
            )
        }
        (Some(k), ..) => format!(" in kernel {}", demangle(k)),
        _ => String::new(),
    };
    if race.class == RaceClass::MissingWait {
        return format!(
            "Dependent launch of {}: {}, found {}. {}.",
            current_access(race),
            what(race),
            plural(race.count, "time"),
            capitalised(&advice(race, report)),
        );
    }
    let prior = race.prior.kernel.as_deref().map_or(String::new(), |k| {
        format!(
            " The earlier access: {} in kernel {}.",
            describe_access(&race.prior),
            demangle(k)
        )
    });
    format!(
        "{} race on {}: {} ({}{by}), found {}.{prior} {}.",
        race.kind.word(),
        place(race).replace('`', "'"),
        what(race),
        current_access(race),
        plural(race.count, "time"),
        capitalised(&advice(race, report)),
    )
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

fn location(side: &Side, site: &Site) -> Value {
    let mut location = json!({ "physicalLocation": physical(&site.file, site.line, site.column) });
    if let Some(kernel) = &side.kernel {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": demangle(kernel), "decoratedName": kernel, "kind": "function" }]);
    }
    location
}

/// A place in a file; SARIF's lines and columns start at 1.
fn physical(file: &str, line: u32, column: Option<u32>) -> Value {
    let mut physical = json!({ "artifactLocation": { "uri": uri(file) } });
    if line > 0 {
        let mut region = Map::new();
        region.insert("startLine".into(), json!(line));
        if let Some(column) = column.filter(|c| *c > 0) {
            region.insert("startColumn".into(), json!(column));
        }
        physical["region"] = Value::Object(region);
    }
    physical
}

/// A path as a URI reference: absolute ones with `file://`, everything unusual percent-encoded.
fn uri(file: &str) -> String {
    let mut uri = String::new();
    if Path::new(file).is_absolute() {
        uri.push_str("file://");
    }
    for byte in file.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// The same finding in the next run has the same one: no addresses, no counts.
fn fingerprint(race: &Race) -> String {
    let site = race.current.site.as_ref();
    let file = site.map_or("", |s| s.file.as_str());
    let line = site.map_or(0, |s| s.line);
    let kernel = race.current.kernel.as_deref().unwrap_or("");
    let prior = race.prior.kernel.as_deref().unwrap_or("");
    format!(
        "{}:{kernel}:{file}:{line}:{prior}:{}",
        race.class.word(),
        race.buffer.as_deref().unwrap_or("")
    )
}

fn properties(report: &Report, race: &Race) -> Value {
    json!({
        "kind": race.kind.word(),
        "address": format!("{:#x}", race.address),
        "buffer": race.buffer,
        "offset": race.offset,
        "size": race.size,
        "block": race.current.block,
        "thread": race.current.thread,
        "warp": warp(&race.current, report),
        "priorBlock": race.prior.block,
        "priorThread": race.prior.thread,
        "priorWarp": warp(&race.prior, report),
        "schedulesWithRace": race.schedules,
        "schedules": report.schedules,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::*;

    fn parsed(report: &Report) -> Value {
        serde_json::from_str(&render(report)).unwrap()
    }

    #[test]
    fn a_race_is_a_result_with_its_place() {
        let value = parsed(&racy_report());
        assert_eq!(value["version"], "2.1.0");
        let run = &value["runs"][0];
        let result = &run["results"][0];
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert_eq!(result["ruleId"], "missing-acquire");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "handoff.cu");
        assert_eq!(
            place["region"],
            json!({ "startLine": 12, "startColumn": 13 })
        );
        assert_eq!(
            result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"],
            30
        );
        assert_eq!(
            result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"],
            "consumer(unsigned int*, unsigned int*)"
        );
        assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    }

    #[test]
    fn a_failed_run_says_so() {
        let value = parsed(&broken_report());
        let invocation = &value["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false);
        let notes = invocation["toolExecutionNotifications"].as_array().unwrap();
        assert!(
            notes[0]["message"]["text"]
                .as_str()
                .unwrap()
                .contains("memory fault")
        );
        assert_eq!(notes[1]["level"], "warning");
        assert_eq!(value["runs"][0]["results"][0]["locations"], json!([]));
    }

    #[test]
    fn hidden_findings_are_a_note_and_no_result() {
        let mut report = racy_report();
        report.hide(&[RaceClass::MissingAcquire]);
        let value = parsed(&report);
        assert_eq!(value["runs"][0]["results"], json!([]));
        let notes = &value["runs"][0]["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(notes[0]["level"], "note");
        let text = notes[0]["message"]["text"].as_str().unwrap();
        assert!(
            text.contains("1 finding of class missing-acquire"),
            "{text}"
        );
    }

    #[test]
    fn an_access_past_the_end_is_a_warning_with_its_place() {
        let value = parsed(&past_end_report());
        let note = &value["runs"][0]["invocations"][0]["toolExecutionNotifications"][0];
        assert_eq!(note["level"], "warning");
        let text = note["message"]["text"].as_str().unwrap();
        assert!(text.contains("past the end of 'data'"), "{text}");
        let place = &note["locations"][0]["physicalLocation"];
        assert_eq!(place["region"]["startLine"], 12);
        assert_eq!(value["runs"][0]["results"], json!([]));
    }

    #[test]
    fn both_warps_of_a_block_are_there() {
        let mut report = racy_report();
        report.launches[1].block = [128, 1, 1];
        let race = &mut report.races[0];
        race.class = RaceClass::IntraBlock;
        race.prior = Side {
            thread: Some([70, 0, 0]),
            ..race.current.clone()
        };
        let value = parsed(&report);
        let result = &value["runs"][0]["results"][0];
        assert_eq!(result["ruleId"], "intra-block");
        assert_eq!(
            (
                &result["properties"]["warp"],
                &result["properties"]["priorWarp"]
            ),
            (&json!(0), &json!(2))
        );
        let text = result["message"]["text"].as_str().unwrap();
        assert!(
            text.contains("Warp 0 and warp 2 of block (1,0,0): no barrier"),
            "{text}"
        );
    }

    #[test]
    fn no_race_is_an_empty_list_of_results() {
        assert_eq!(parsed(&clean_report())["runs"][0]["results"], json!([]));
    }

    #[test]
    fn places_obey_the_schema() {
        assert_eq!(
            physical("a b.cu", 0, Some(3)),
            json!({ "artifactLocation": { "uri": "a%20b.cu" } })
        );
        assert_eq!(uri("/x/ä:1"), "file:///x/%C3%A4%3A1");
        assert_eq!(
            physical("a.cu", 4, Some(0))["region"],
            json!({ "startLine": 4 })
        );
    }
}

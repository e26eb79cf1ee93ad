//! A module's scenario file: buffers, streams, graphs, and the rounds of the host's steps.

use super::Entry;
use crate::boxes;
use crate::program::{HostStep, Space};
use crate::ptx::emit::{self, packed_name};
use std::collections::BTreeSet;
use std::fmt::Write;

/// All but its module and what it expects. The entries have one shape.
pub(super) fn write(text: &mut String, entries: &[Entry], rounds: usize) {
    let words = Space::SIZE as usize / 4 * entries.len();
    for (name, memory) in [("data", "device"), ("foreign", "foreign")] {
        let _ = writeln!(
            text,
            "[[buffer]]\nname = \"{name}\"\ntype = \"u32\"\nlen = {words}\nmemory = \"{memory}\"\n"
        );
    }
    let Some(host) = entries.first().map(|e| &e.program.host) else {
        return;
    };
    let streams: BTreeSet<usize> = host.iter().map(|s| s.stream()).collect();
    for stream in streams.iter().copied().chain([usize::MAX]) {
        let name = stream_name(stream);
        let _ = writeln!(
            text,
            "[[stream]]\nname = \"{name}\"\nflags = \"non-blocking\"\n"
        );
    }
    graphs(text, entries);
    for round in 0..rounds {
        if round > 0 {
            let grid = entries.len();
            let words = Space::SIZE / 4;
            let _ = writeln!(
                text,
                "[[step]]\nlaunch = \"{}\"\nstream = \"{}\"\ngrid = [{grid}]\nblock = [{words}]\nargs = [\"data\", \"foreign\"]\n",
                emit::RESET,
                stream_name(usize::MAX),
            );
            text.push_str("[[step]]\nsynchronize = \"device\"\n\n");
        }
        steps(text, round, host, entries);
        text.push_str("[[step]]\nsynchronize = \"device\"\n\n");
    }
}

/// The program's streams, and one for the rest.
fn stream_name(stream: usize) -> String {
    if stream == usize::MAX {
        "between".to_string()
    } else {
        format!("s{stream}")
    }
}

/// A launch of the `kernel`-th kernels of all programs, but for the stream.
fn launch(kernel: usize, entries: &[Entry]) -> String {
    let kernels = || entries.iter().filter_map(|e| e.program.kernels.get(kernel));
    let blocks: usize = kernels().map(|k| k.blocks.len()).sum();
    let threads = kernels().map(|k| k.block_threads()).max().unwrap_or(32);
    let cluster = match kernels().next().map_or(1, |k| k.cluster) {
        0 | 1 => String::new(),
        size => format!("cluster = [{size}]\n"),
    };
    let dependent = kernels().next().is_some_and(|k| k.dependent);
    let pdl = if dependent { "pdl = true\n" } else { "" };
    let [words, rows] = boxes::EXTENTS;
    let [width, height] = boxes::BOX;
    let map = format!(
        "{{ tensor = \"data+{}\", extents = [{words}, {rows}, {}], box = [{width}, {height}, 1], strides = [{}, {}] }}",
        boxes::AT,
        entries.len(),
        boxes::STRIDE,
        Space::SIZE
    );
    format!(
        "launch = \"{}\"\ngrid = [{blocks}]\nblock = [{threads}]\n{cluster}{pdl}args = [\"data\", \"foreign\", {map}]\n",
        packed_name(kernel),
    )
}

fn graph_name(graph: usize) -> String {
    format!("g{graph}")
}

fn graphs(text: &mut String, entries: &[Entry]) {
    let graphs = entries.first().map_or(&[][..], |e| &e.program.graphs);
    for (g, graph) in graphs.iter().enumerate() {
        let _ = writeln!(text, "[[graph]]\nname = \"{}\"\n", graph_name(g));
        for (n, node) in graph.nodes.iter().enumerate() {
            let Some(&kernel) = node.kernels.first() else {
                continue;
            };
            let after: Vec<String> = node.after.iter().map(|a| format!("\"n{a}\"")).collect();
            let after = match after.is_empty() {
                true => String::new(),
                false => format!("after = [{}]\n", after.join(", ")),
            };
            let launch = launch(kernel, entries);
            let _ = writeln!(text, "[[graph.node]]\nname = \"n{n}\"\n{after}{launch}");
        }
    }
}

/// The host's steps of all programs at once.
fn steps(text: &mut String, round: usize, host: &[HostStep], entries: &[Entry]) {
    let mut recorded = BTreeSet::new();
    for step in host {
        let stream = stream_name(step.stream());
        let lines = match *step {
            HostStep::Launch { kernel, .. } => {
                format!("{}stream = \"{stream}\"\n", launch(kernel, entries))
            }
            HostStep::Record { event, .. } => {
                recorded.insert(event);
                format!("record = \"e{round}_{event}\"\nstream = \"{stream}\"\n")
            }
            // To wait for what was never recorded is to wait for nothing.
            HostStep::Wait { event, .. } if !recorded.contains(&event) => continue,
            HostStep::Wait { event, .. } => {
                format!("wait = \"e{round}_{event}\"\nstream = \"{stream}\"\n")
            }
            HostStep::Synchronize { .. } => format!("synchronize = \"{stream}\"\n"),
            HostStep::Graph { graph, .. } => {
                let name = graph_name(graph);
                format!("graph = \"{name}\"\nstream = \"{stream}\"\n")
            }
        };
        let _ = writeln!(text, "[[step]]\n{lines}");
    }
}

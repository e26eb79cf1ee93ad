//! The words of the text output that only GE's users know, each with one sentence. An output ends with those it used.

use crate::passes::Stage;

/// A word, other forms of it, and what it means.
type Entry = (&'static str, &'static [&'static str], &'static str);

/// In the order in which they are explained. Words in the meanings are explained by entries further down.
const WORDS: &[Entry] = &[
    (
        "NAME.in.N, NAME.out.N",
        &[".in.", ".out."],
        "input N and output N of the operator NAME, counted from 0; an output and the inputs that it leads to are one piece of memory",
    ),
    (
        "GE",
        &["GE's"],
        "Graph Engine, the part of Huawei's CANN software that prepares such graphs and runs them",
    ),
    (
        "hazard",
        &[],
        "how bad it is if nothing is done, in GE's words: High is the top of its scale, and the words in brackets say what goes wrong",
    ),
    ("W18888", &[], "GE's own number of this warning"),
    (
        "RW_WRONG_GRAPH",
        &[],
        "this program's own name of the warning that a graph contradicts itself about who reads and who writes",
    ),
    (
        "mark",
        &["marks"],
        "an attribute that a pass sets for later steps: no conflict, and nothing to do",
    ),
    (
        "HCCL, collective",
        &["HCCL", "Hcom", "collective"],
        "HCCL is the library that exchanges data between devices, and a collective is one of its operators (types that begin with Hcom); it may use an input as scratch space",
    ),
    (
        "scratch space",
        &[],
        "memory that an operator overwrites for its own use: what was in it is lost, and what is in it afterwards is of no use to anybody, unless an output of the operator is that memory",
    ),
    (
        "in place",
        &[],
        "an operator that works in place writes its output over an input, so both are one piece of memory",
    ),
    (
        "Identity",
        &[],
        "the operator that copies its input into new memory",
    ),
    (
        "copy",
        &["copies"],
        "an operator (Identity) that copies a value into memory of its own, so that one side can't disturb the other",
    ),
    ("MemSet", &[], "the operator that sets memory to zero"),
    (
        "MemcpyAddrAsync",
        &[],
        "the operator that hands an address on while the program runs",
    ),
    (
        "Assign",
        &["AssignAdd", "AssignSub"],
        "the operator that writes a value into a variable, in place",
    ),
    (
        "Data",
        &["RefData", "AippData", "AnnData"],
        "an operator that computes nothing and stands for an input of its graph: in the root graph a buffer that the caller fills, in a subgraph an input of the operator around it",
    ),
    (
        "NetOutput",
        &[],
        "the operator whose inputs are a graph's results",
    ),
    (
        "Const",
        &["Constant", "FileConstant"],
        "an operator that computes nothing and stands for a constant",
    ),
    (
        "Variable",
        &["VariableV2", "variable"],
        "memory that keeps its value between runs; in the graph, an operator (Variable) that stands for it",
    ),
    (
        "While, loop",
        &["While", "StatelessWhile", "loop"],
        "a While is a loop: one subgraph is its condition, the other its body, which runs once per round and makes the next round's inputs",
    ),
    (
        "state",
        &["states"],
        "what a loop hands from round to round: state N is its input N, the input of its condition and body for that, and its output N",
    ),
    (
        "If, branch",
        &[
            "(If",
            "an If",
            "StatelessIf",
            "Case",
            "StatelessCase",
            "branch",
        ],
        "a branch (If, Case) has several subgraphs, its ways, and runs one of them",
    ),
    (
        "PartitionedCall",
        &["StatefulPartitionedCall"],
        "runs its subgraph, as a function call does",
    ),
    (
        "PhonyConcat, PhonySplit",
        &["PhonyConcat", "PhonySplit"],
        "a concatenation and a split that move nothing: the parts lie one after the other in memory already",
    ),
    (
        "StreamSwitch",
        &["LabelSwitchByIndex", "StreamMerge"],
        "an operator of the device itself that chooses or joins sequences of operators (StreamSwitch, LabelSwitchByIndex, StreamMerge); its addresses are fixed once it is loaded",
    ),
    (
        "Reshape",
        &[],
        "gives its input another shape without touching it",
    ),
    (
        "subgraph",
        &["inside", "body"],
        "a graph inside an operator, which that operator runs",
    ),
    (
        "root",
        &[],
        "graph root, or the first graph of the file: the one that the caller runs; the others are inside its operators",
    ),
    (
        "control edge",
        &["control edges"],
        "an edge that carries no data and only makes one operator run before another (in the JSON form, \"control\" of an operator lists those that run before it)",
    ),
    (
        "place in the file",
        &["in the file", "places in the file"],
        "the device runs operators in the order in which the file lists them (or of their \"id\"s, if it gives them) unless edges demand another, but only edges guarantee an order",
    ),
    (
        "row",
        &["rows"],
        "inputs or outputs of one operator that must lie one after the other in memory",
    ),
    (
        "the caller",
        &["caller's", "caller"],
        "the program that runs the graph",
    ),
    (
        "special memory",
        &[],
        "memory of another kind than the device's ordinary one, such as memory that other devices reach (p2p) or that the task scheduler owns (ts)",
    ),
    (
        "streams",
        &["stream"],
        "sequences of operators that the device may run at the same time",
    ),
    (
        "precaution",
        &[],
        "a copy that the rule demands without looking whether somebody would be disturbed; it costs time and memory, but changes no result",
    ),
    ("rule", &[], "the rule of GE by which this is found"),
    (
        "pass",
        &[],
        "one step of the check; --stage PASS runs it alone",
    ),
];

/// The section for a text; empty if it used none of the words.
pub fn of(text: &str) -> String {
    let used: Vec<&Entry> = WORDS
        .iter()
        .filter(|(word, forms, _)| {
            std::iter::once(word)
                .chain(forms.iter())
                .any(|w| occurs(text, w))
        })
        .collect();
    let passes = Stage::ALL
        .into_iter()
        .filter(|p| occurs(text, &format!("pass {}", p.name())));
    if used.is_empty() {
        return String::new();
    }
    let mut s = String::from("Words used above:\n");
    for (word, _, meaning) in used {
        s += &super::text::wrapped(&format!("  {word}: "), meaning, 6);
    }
    for p in passes {
        s += &super::text::wrapped(&format!("  pass {}: ", p.name()), p.words(), 6);
    }
    s
}

/// Whether a word stands in a text as a whole word (or, for `.in.` and `Hcom`, at all).
fn occurs(text: &str, word: &str) -> bool {
    let whole = !word.starts_with('.') && word != "Hcom";
    let edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !whole
            || (edge(text[..at].chars().next_back())
                && edge(text[at + word.len()..].chars().next())
                && (word != "pass hccl" || !text[at + word.len()..].starts_with('-')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_count() {
        assert!(occurs("an Identity, a copy", "Identity"));
        assert!(!occurs("x_input_0_Identity stands", "Identity"));
        assert!(!occurs("If0 and IfX", "If"));
        assert!(occurs("HcomAllReduce", "Hcom"));
    }

    #[test]
    fn only_what_was_used_is_explained() {
        let s = of("conflict: a MemSet");
        assert!(s.contains("MemSet: ") && !s.contains("Identity"), "{s}");
        assert_eq!(of("nothing special"), "");
    }
}

//! The words of the text output that only GE's users know, each with one sentence. An output ends with those it used.

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
        "HCCL, collective",
        &["HCCL", "Hcom", "collective"],
        "HCCL is the library that exchanges data between devices, and a collective is one of its operators (types that begin with Hcom); it may use an input as scratch space",
    ),
    (
        "scratch space",
        &[],
        "memory that an operator overwrites for its own use: afterwards it holds nothing that anybody should read",
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
        "the type of a graph's inputs: the caller's, or in a subgraph what the operator around it hands in",
    ),
    (
        "NetOutput",
        &[],
        "the operator whose inputs are a graph's results",
    ),
    (
        "Const",
        &["Constant", "FileConstant"],
        "the type of constants",
    ),
    (
        "Variable",
        &["VariableV2"],
        "the type of memory that keeps its value between runs",
    ),
    (
        "While, loop",
        &["While", "StatelessWhile", "loop"],
        "a While is a loop: one subgraph is its condition, the other its body, which runs once per round and makes the next round's inputs",
    ),
    (
        "If, branch",
        &["If", "StatelessIf", "Case", "StatelessCase", "branch"],
        "a branch (If, Case) has several subgraphs, its ways, and runs one of them",
    ),
    (
        "PartitionedCall",
        &["StatefulPartitionedCall"],
        "runs its subgraph, as a function call does",
    ),
    (
        "PhonyConcat",
        &["PhonySplit"],
        "a concatenation or split (PhonyConcat, PhonySplit) that moves nothing: its parts lie one after the other in memory already",
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
        "control edge",
        &["control edges"],
        "an edge that carries no data and only makes one operator run before another",
    ),
    (
        "order of execution",
        &["by the operators' ids"],
        "the numbers (ids) of the operators in the file; the device runs them in this order unless it has a reason not to, but only edges guarantee an order",
    ),
    (
        "row",
        &["rows"],
        "inputs or outputs of one operator that must lie one after the other in memory",
    ),
    (
        "pass",
        &[],
        "one step of the check; --stage PASS runs it alone",
    ),
    (
        "the caller",
        &["caller's"],
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
    if used.is_empty() {
        return String::new();
    }
    let mut s = String::from("Words used above:\n");
    for (word, _, meaning) in used {
        s += &super::text::wrapped(&format!("  {word}: "), meaning, 6);
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
                && edge(text[at + word.len()..].chars().next()))
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
